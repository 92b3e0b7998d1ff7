"""Checkpoints that are either whole or not there.

A checkpoint is a folder. It is written under a temporary name, flushed to the disk and renamed, so that a process
killed at any moment leaves the ones before it untouched; a manifest with the SHA-256 of every file tells a damaged one.

    trial/
      step-00000120/          the one before
      step-00000240/          manifest.json, model.safetensors, config.json, state.pt, ...
      last -> step-00000240   replaced atomically
      best -> step-00000120   the best value of the monitored metric so far
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

MANIFEST = "manifest.json"
FORMAT = 1
_NAME = re.compile(r"step-(\d+)(?:-(\d+))?")
_TEMPORARY = ".writing-"


class CheckpointError(Exception):
    """A checkpoint that is missing or damaged, and no older one to fall back on."""


class Checkpoints:
    """The checkpoints in a trial's folder.

    Args:
        folder: The trial's folder; made on the first save.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._reported: list[tuple[float, Path]] = []
        self._left_behind = list(folder.glob(f"{_TEMPORARY}*"))

    def save(self, number: int, fill: Callable[[Path], None], best: bool = False) -> Path:
        """Write a checkpoint and make it `last` (and `best` if told so).

        Args:
            number: The step it is of.
            fill: Writes the files into the folder it is given.
            best: Whether it is the best so far.

        Returns: The checkpoint's folder.
        """
        with self.writing(number, best) as folder:
            fill(folder)
        return self.last or folder

    @contextmanager
    def writing(self, number: int, best: bool = False) -> Iterator[Path]:
        """Like `save`: yields the folder to write the files into. An exception leaves everything as it was."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f"{_TEMPORARY}{uuid.uuid4().hex}"
        temporary.mkdir()
        try:
            yield temporary
            _seal(temporary, number)
            final = self._free_name(number)
            temporary.rename(final)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        self._point("last", final)
        if best:
            self._point("best", final)
        _flush(self.folder)

    def reported(self, resource: float, path: Path) -> None:
        """A report at `resource` names the checkpoint at `path`."""
        self._reported.append((resource, path))

    def recorded(self, resource: float) -> None:
        """The reports up to `resource` are on record: remove what only older ones named.

        Kept are the newest checkpoint on record and all after it, the one before it in case it is damaged, and the
        best. Newer ones are never touched: they may be another process's, whose driver has died or is not yet told.
        """
        known = [path for level, path in self._reported if level <= resource]
        if not known:
            return
        self._reported = [entry for entry in self._reported if entry[0] > resource]
        older = sorted((p for p in _checkpoints_in(self.folder) if _order(p) < _order(known[-1])), key=_order)
        for path in [*older[:-1], *self._left_behind]:
            if path != self.best:
                shutil.rmtree(path, ignore_errors=True)
        self._left_behind = []

    @property
    def last(self) -> Path | None:
        """The newest checkpoint, or None."""
        return self._target("last")

    @property
    def best(self) -> Path | None:
        """The checkpoint of the best value so far, or None."""
        return self._target("best")

    def next_number(self) -> int:
        """A number above all that are there, for those who do not count steps."""
        return max((_order(path)[0] for path in _checkpoints_in(self.folder)), default=0) + 1

    def _target(self, link: str) -> Path | None:
        path = self.folder / link
        return self.folder / path.readlink() if path.is_symlink() else None

    def _free_name(self, number: int) -> Path:
        """A step saved twice (after a resume, or with more known about it) gets a second name: a folder that is
        there cannot be replaced atomically."""
        name, again = f"step-{number:08d}", 2
        while (self.folder / name).exists():
            name, again = f"step-{number:08d}-{again}", again + 1
        return self.folder / name

    def _point(self, link: str, target: Path) -> None:
        temporary = self.folder / f".{link}-{os.getpid()}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(target.name)
        temporary.replace(self.folder / link)


def intact(source: Path) -> Path:
    """The checkpoint to continue from: `source`, or where that is damaged, the newest whole one before it.

    Args:
        source: A checkpoint's folder, or a link to one.

    Raises:
        CheckpointError: Neither it nor one before it can be used.
    """
    folder = source.resolve()
    before = [path for path in _checkpoints_in(folder.parent) if _order(path) < _order(folder)]
    complaints = []
    for candidate in [folder, *sorted(before, key=_order, reverse=True)]:
        try:
            verify(candidate)
        except CheckpointError as damage:
            complaints.append(str(damage))
            continue
        if complaints:
            log.warning("%s; continuing from %s", "; ".join(complaints), candidate.name)
        return candidate
    raise CheckpointError("; ".join(complaints) + "; there is none before it, so start the trial afresh")


def verify(folder: Path) -> None:
    """Compare every file of a checkpoint with its manifest.

    Raises:
        CheckpointError: Something is missing or was changed.
    """
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        files: dict[str, str] = manifest["files"]
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is no checkpoint: it has no {MANIFEST}") from None
    except (ValueError, KeyError, TypeError):
        raise CheckpointError(f"{folder} is damaged: its {MANIFEST} cannot be read") from None
    if manifest.get("format") != FORMAT:
        raise CheckpointError(f"{folder} has format {manifest.get('format')}; this program reads {FORMAT}")
    for name, digest in files.items():
        path = folder / name
        if not path.is_file():
            raise CheckpointError(f"{folder} is damaged: {name} is missing")
        if _sha256(path) != digest:
            raise CheckpointError(f"{folder} is damaged: {name} was changed or cut short")


def _checkpoints_in(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return [path for path in folder.iterdir() if _NAME.fullmatch(path.name)]


def _order(path: Path) -> tuple[int, int]:
    """Sorts checkpoints from old to new: by step, then by how often the step was saved."""
    match = _NAME.fullmatch(path.name)
    return (int(match[1]), int(match[2] or 1)) if match else (0, 0)


def _seal(folder: Path, number: int) -> None:
    """Flush every file to the disk, and write the manifest last."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    for path in files:
        path.chmod(folder.stat().st_mode & 0o666)  # safetensors makes its files private; others may have to continue
    digests = {path.relative_to(folder).as_posix(): _sha256(path) for path in files}
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps({"format": FORMAT, "number": number, "files": digests}, indent=1))
    for path in [*files, manifest, *(path for path in folder.rglob("*") if path.is_dir()), folder]:
        _flush(path)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
