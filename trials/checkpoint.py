"""Checkpoints that are either whole or not there.

A checkpoint is a folder. It is written as a draft, flushed to the disk and renamed (or uploaded, its manifest last: see
`trials.places`), so that a process killed at any moment leaves the ones before it untouched; a manifest with the
SHA-256 of every file tells a damaged one.

    trial/
      step-00000120/          the one before
      step-00000240/          manifest.json, model.safetensors, config.json, state.pt, ...
      last -> step-00000240   replaced atomically
      best -> step-00000120   the best value of the monitored metric so far

A run is cut into stretches by its reports. All checkpoints of one stretch carry the same name of it in their
manifests, and whoever continues from one of them gets the newest whole one: it has the same reports behind it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trials.places import MANIFEST, Place, place, split

log = logging.getLogger(__name__)

FULL_BYTES = 1 << 20
"""A disk with less room than that counts as full."""
FORMAT = 1
KEEP = 2
VALUE = ".value.json"
"""Beside a checkpoint that was found to be the best after it was written: the value it is the best by."""
_NAME = re.compile(r"step-(\d+)(?:-(\d+))?")


class CheckpointError(Exception):
    """A checkpoint that is missing or damaged, and no older one to fall back on."""


class Checkpoints:
    """The checkpoints of a trial.

    Args:
        folder: The trial's folder, a path or a URL; made on the first save.
        keep: How many of those on record are kept: the newest, and the ones before it in case it is damaged.

    Raises:
        PlaceError: A URL that nothing here can read or write.
    """

    def __init__(self, folder: Path | str, keep: int = KEEP) -> None:
        self._place = place(folder)
        self._keep = keep
        self._reported: list[tuple[float, str]] = []
        self._surpassed: list[tuple[float, str]] = []
        self._left_behind = self._place.drafts()

    def save(self, number: int, fill: Callable[[Path], None], best: bool = False) -> Path | str:
        """Write a checkpoint and make it `last` (and `best` if told so).

        Args:
            number: The step it is of.
            fill: Writes the files into the folder it is given.
            best: Whether it is the best so far.

        Returns: The checkpoint's folder.
        """
        return self.commit(self.draft(fill), number, best)

    @contextmanager
    def writing(self, number: int, best: bool = False) -> Iterator[Path]:
        """Like `save`: yields the folder to write the files into. An exception leaves everything as it was."""
        draft = self._place.draft()
        with _whole_or_gone(draft):
            yield draft
        self.commit(draft, number, best)

    def draft(self, fill: Callable[[Path], None]) -> Path:
        """The first half of a save: the files, in a folder of this machine, not yet flushed to the disk."""
        draft = self._place.draft()
        with _whole_or_gone(draft):
            fill(draft)
        return draft

    def commit(self, draft: Path, number: int, best: bool = False, stretch: str | None = None) -> Path | str:
        """The second half of a save: hash, flush, put in place and point. Works in any thread.

        Args:
            draft: What `draft` returned; gone afterwards.
            number: The step it is of.
            best: Whether it is the best so far.
            stretch: Names the run and the report before it; None where nothing else continues the same stretch.

        Returns: The checkpoint's folder.
        """
        with _whole_or_gone(draft):
            _seal(draft, number, stretch)
            return self._place.path(self._publish(draft, number, ["last", "best"] if best else ["last"]))

    def reported(self, resource: float, path: Path | str) -> None:
        """A report at `resource` names the checkpoint at `path`."""
        self._reported.append((resource, split(path)[1]))

    def mark_best(self, path: Path | str, value: float, resource: float) -> None:
        """Let `best` name the checkpoint of a report; the one before stays until that report is on record.

        Args:
            path: A checkpoint that is there.
            value: By which it is the best.
            resource: The report's.
        """
        name, before = split(path)[1], self._place.target("best")
        self._place.add(name, VALUE, json.dumps(value).encode())
        self._place.point("best", name)
        if before is not None:
            self._surpassed.append((resource, before))

    def best_value(self, continued: Path | str) -> float | None:
        """The value that `mark_best` remembered; None without one, or where it is of a time that `continued`, the
        checkpoint a run goes on from, knows nothing of."""
        best, name = self._place.target("best"), split(continued)[1]
        name = name if _NAME.fullmatch(name) else self._place.target(name) or name
        if best is None or _order(best) > _order(name):
            return None
        try:
            return float(json.loads(self._place.read(best, VALUE)))
        except (FileNotFoundError, ValueError):
            return None

    def recorded(self, resource: float) -> None:
        """The reports up to `resource` are on record: remove what only older ones named.

        Kept are the newest checkpoint on record and all after it, the ones before it in case it is damaged, and the
        best. Newer ones are never touched: they may be another process's, whose driver has died or is not yet told.
        """
        known = [name for level, name in self._reported if level <= resource]
        if not known:
            return
        self._reported = [entry for entry in self._reported if entry[0] > resource]
        older = _before(self._place, known[-1])
        self._surpassed = [entry for entry in self._surpassed if entry[0] > resource]
        kept = {self._place.target("best"), *(name for _, name in self._surpassed)}
        for name in [*older[: max(len(older) - self._keep + 1, 0)], *self._left_behind]:
            if name not in kept:
                self._place.remove(name)
        self._left_behind = []

    @property
    def last(self) -> Path | str | None:
        """The newest checkpoint, or None."""
        return self._target("last")

    @property
    def best(self) -> Path | str | None:
        """The checkpoint of the best value so far, or None."""
        return self._target("best")

    def newest_of(self, stretch: str) -> Path | str | None:
        """The newest checkpoint of a stretch, or None."""
        names = _of_stretch(self._place, stretch)
        return self._place.path(names[-1]) if names else None

    def next_number(self) -> int:
        """A number above all that are there, for those who do not count steps."""
        return max((_order(name)[0] for name in _checkpoints_in(self._place)), default=0) + 1

    def _publish(self, draft: Path, number: int, pointers: list[str]) -> str:
        """Put a draft in place under a free name, which it returns."""
        while True:
            name = self._free_name(number)
            try:
                self._place.publish(draft, name, pointers)
            except OSError as error:  # an attempt that was given up, and does not know it, took the name meanwhile
                if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                    raise
                continue
            return name

    def _target(self, pointer: str) -> Path | str | None:
        name = self._place.target(pointer)
        return None if name is None else self._place.path(name)

    def _free_name(self, number: int) -> str:
        """A step saved twice (after a resume, or with more known about it) gets a second name: a folder that is
        there cannot be replaced atomically."""
        name, again = f"step-{number:08d}", 2
        while self._place.taken(name):
            name, again = f"step-{number:08d}-{again}", again + 1
        return name


@contextmanager
def _whole_or_gone(draft: Path) -> Iterator[None]:
    """Take a draft away where it could not be written, and say so where the disk was full: not every writer does."""
    try:
        yield
    except BaseException as error:
        free = shutil.disk_usage(draft).free if draft.is_dir() else None
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, Exception) and not is_disk_full(error) and free is not None and free < FULL_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(draft)) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    """Whether an error says that a disk, or somebody's share of it, has no room left."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return True
    return os.strerror(errno.ENOSPC).lower() in str(error).lower()


@contextmanager
def opened(source: Path | str) -> Iterator[Path]:
    """The checkpoint to continue from, as a folder of this machine: the newest whole one of the stretch that `source`
    is of; where that is damaged too, the newest whole one before it.

    Args:
        source: A checkpoint's folder or URL, or a pointer to one.

    Raises:
        CheckpointError: Neither it nor one before it can be used.
        PlaceError: A URL that nothing here can read.
    """
    folder, name = split(source)
    where = place(folder)
    if not _NAME.fullmatch(name):
        name = where.target(name) or name
    stretch = _manifest(where, name).get("stretch")
    later = [n for n in _of_stretch(where, stretch) if _order(n) > _order(name)] if stretch else []
    complaints = []
    for candidate in [*reversed(later), name, *reversed(_before(where, name))]:
        with where.local(candidate) as files:
            try:
                verify(files, str(where.path(candidate)))
            except CheckpointError as damage:
                complaints.append(str(damage))
                continue
            if complaints:
                log.warning("%s; continuing from %s", "; ".join(complaints), candidate)
            yield files
            return
    raise CheckpointError("; ".join(complaints) + "; there is none before it, so start the trial afresh")


def check(source: Path | str) -> None:
    """Verify exactly this checkpoint, wherever it lies; `opened` would make do with another one.

    Args:
        source: A checkpoint's folder or URL.

    Raises:
        CheckpointError: It is not there, or not whole.
        PlaceError: A URL that nothing here can read.
    """
    folder, name = split(source)
    with place(folder).local(name) as files:
        verify(files, str(source))


def verify(folder: Path, name: str | None = None) -> None:
    """Compare every file of a checkpoint with its manifest.

    Args:
        folder: Where its files are.
        name: What to call it in complaints, where that is not the folder.

    Raises:
        CheckpointError: Something is missing or was changed.
    """
    name = name or str(folder)
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        files: dict[str, str] = manifest["files"]
    except FileNotFoundError:
        raise CheckpointError(f"{name} is no checkpoint: it has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"{name} is damaged: its {MANIFEST} cannot be read") from None
    if manifest.get("format") != FORMAT:
        raise CheckpointError(f"{name} has format {manifest.get('format')}; this program reads {FORMAT}")
    for file, digest in files.items():
        path = folder / file
        if not path.is_file():
            raise CheckpointError(f"{name} is damaged: {file} is missing")
        if _sha256(path) != digest:
            raise CheckpointError(f"{name} is damaged: {file} was changed or cut short")


def _checkpoints_in(where: Place) -> list[str]:
    """From old to new."""
    return sorted((name for name in where.names() if _NAME.fullmatch(name)), key=_order)


def _before(where: Place, name: str) -> list[str]:
    """Those older than `name`, from old to new."""
    return [other for other in _checkpoints_in(where) if _order(other) < _order(name)]


def _of_stretch(where: Place, stretch: str) -> list[str]:
    """Those of one stretch, from old to new."""
    return [name for name in _checkpoints_in(where) if _manifest(where, name).get("stretch") == stretch]


def _manifest(where: Place, name: str) -> dict[str, Any]:
    """What a manifest says; nothing where it cannot be read."""
    try:
        manifest = json.loads(where.read(name, MANIFEST))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _order(name: str) -> tuple[int, int]:
    """Sorts checkpoints from old to new: by step, then by how often the step was saved."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2] or 1)) if match else (0, 0)


def _seal(folder: Path, number: int, stretch: str | None) -> None:
    """Write the manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        path.chmod(folder.stat().st_mode & 0o666)  # safetensors makes its files private; others may have to continue
    digests = {path.relative_to(folder).as_posix(): _sha256(path) for path in files}
    manifest = {"format": FORMAT, "number": number, "stretch": stretch, "files": digests}
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
