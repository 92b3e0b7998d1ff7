"""The checkpoints of one trial: written whole or not at all, and removed once nothing needs them.

A checkpoint is a folder. It is written as a draft, flushed to the disk and renamed (or uploaded,
its manifest last: see `trials.checkpoints.store_folder`). A process that is killed at any moment
therefore leaves the checkpoints before it untouched. A manifest with the SHA-256 of every file
shows when one is damaged.

    trial/
      step-120/          the one before
      step-240/          manifest.json, model.safetensors, config.json, state.pt, ...
      last -> step-240   replaced in one step
      best -> step-120   the best value of the monitored metric so far

A run is divided into stretches by its reports. All checkpoints of one stretch have its name in
their manifests. A run that continues from one of them uses the newest whole one, because the same
reports come before it.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trials.checkpoints.checkpoint_folder import is_checkpoint, order_of
from trials.checkpoints.disk.whole_folders import removed_on_error
from trials.checkpoints.disk_folder import DiskFolder
from trials.checkpoints.folders import folder_at, split
from trials.checkpoints.manifests import CheckpointError, Label, check, seal
from trials.contract import Unit

KEEP = 2
VALUE = ".value.json"
"""In a checkpoint that was found to be the best after it was written: the value it is best by."""


@dataclass(frozen=True, slots=True)
class _Reported:
    resource: float
    newest: str
    best: str | None


class Checkpoints:
    """The checkpoints of a trial. Raises FolderError if no installed library can read or write the
    URL.

    Args:
        folder: The trial's folder, a path or a URL; made on the first save.
        keep: The number of those on record that are kept whole: the newest, and those before it in
            case it is damaged.
    """

    def __init__(self, folder: Path | str, keep: int = KEEP, unit: Unit = Unit.STEPS) -> None:
        self._folder = str(folder)
        self._unit = unit
        self._here = folder_at(folder)
        self._keep = keep
        self._reported: list[_Reported] = []
        self._best_on_record: str | None = None
        self._best_is_lost = False
        self._without_state: set[str] = set()
        self._left_behind = self._here.drafts()

    @contextmanager
    def drafting(self) -> Iterator[Path]:
        """The first half of a save: a local folder to write in. An exception removes it."""
        draft = self._here.draft()
        with removed_on_error(draft):
            yield draft

    def commit(self, draft: Path, label: Label) -> Path | str:
        """The second half of a save: hash, flush, put in place and point. Works in any thread.
        Returns the checkpoint's folder, which `last` names now, and also `best` where the label
        says so."""
        with removed_on_error(draft):
            is_on_disk = isinstance(self._here, DiskFolder)
            seal(draft, label, best_before=self._here.target("best"), durable=is_on_disk)
            name = self._publish(draft, label)
        return self._here.path(name)

    def _publish(self, draft: Path, label: Label) -> str:
        pointers = ["last", "best"] if label.is_best else ["last"]
        while True:
            name = self._here.free_name(self._unit, label.level)
            try:
                self._here.publish(draft, name, pointers)
            except FileExistsError:
                continue  # an attempt that was given up and still runs took the name meanwhile
            return name

    @property
    def last(self) -> Path | str | None:
        return self._target("last")

    @property
    def best(self) -> Path | str | None:
        return self._target("best")

    def _target(self, pointer: str) -> Path | str | None:
        name = self._here.target(pointer)
        return None if name is None else self._here.path(name)

    def best_until(self, path: Path | str) -> Path | str | None:
        """The checkpoint of the best value up to a checkpoint. Returns None before the first, or if
        an earlier attempt found the best after `path`: no report on record names that one."""
        name = self._here.target("best")
        _, until = split(path)
        if name is None or order_of(name) > order_of(until):
            return None
        return self._here.path(name)

    def newest_of(self, stretch: str) -> Path | str | None:
        here = self._here
        names = here.of_stretch(here.checkpoints(), stretch)
        return here.path(names[-1]) if names else None

    def mark_best(self, path: Path | str, value: float) -> None:
        """Let `best` name an existing checkpoint. The best before it stays until a report that
        names this one is on record."""
        _, name = split(path)
        content = json.dumps(value).encode()
        self._here.add(name, VALUE, content)
        self._here.point("best", name)

    def best_value(self) -> float | None:
        """The value that `mark_best` gave to the best checkpoint; None if it gave none."""
        best = self._here.target("best")
        return None if best is None else self._value_of(best)

    def _value_of(self, name: str) -> float | None:
        try:
            content = self._here.read(name, VALUE)
            return float(json.loads(content))
        except (FileNotFoundError, ValueError):
            return None

    def continue_from(self, source: Path | str, opened: Path | str) -> bool:
        """Let `best` name the best checkpoint that a run knows of when it continues.

        An earlier attempt may have found a better one whose report was lost with it; and where the
        newest checkpoint is damaged, the best one may be, too. A run that trains the same part
        again need not come to the same values, and so might never replace it. Returns whether the
        best one so far is there. If it is lost, the next report is the best. `opened`: the one that
        it continues from, an older one if `source` is damaged."""
        here = self._here
        best = here.target("best")
        folder, continued = split(opened)
        if best is None or str(folder) != self._folder:
            return True
        _, asked = split(source)
        recorded = order_of(here.named(asked))
        reached = order_of(continued)
        if order_of(best) <= max(recorded, reached):
            fell_back = reached < recorded
            if not fell_back or self._is_whole(best):
                return True
        known = self._best_known_to(continued)
        if known is not None and (known == continued or self._is_whole(known)):
            here.point("best", known)
            return True
        here.dissolve("best")
        self._best_is_lost = True
        return False

    def _best_known_to(self, name: str) -> str | None:
        manifest = self._here.manifest(name)
        if manifest.get("is_best") or self._value_of(name) is not None:
            return name
        before = manifest.get("best_before")
        if isinstance(before, str) and is_checkpoint(before):
            return before
        return None

    def _is_whole(self, name: str) -> bool:
        try:
            check(self._here.path(name))
        except CheckpointError:
            return False
        return True

    def reported(self, resource: float, path: Path | str) -> Path | str | None:
        """Note that a report names a checkpoint, and return the best one that it names too."""
        best = self.best_until(path)
        best_name = None
        if best is not None:
            _, best_name = split(best)
        _, name = split(path)
        self._reported.append(_Reported(resource, name, best_name))
        return best

    def recorded(self, resource: float) -> None:
        """Remove the checkpoints that no report needs once those up to `resource` are on record.

        The newest checkpoint on record and `keep` - 1 before it are kept whole, and of the best
        before those, the weights. Newer ones are never touched: they may belong to another process,
        whose driver has died or has not heard of them yet. Where `best` names a checkpoint that no
        report of this process has named, nothing is removed, because this process does not know
        which one the record names."""
        newest = self._put_on_record(resource)
        if newest is None:
            return
        best = self._here.target("best")
        if self._best_on_record is None and (best is not None or self._best_is_lost):
            return
        self._remove_before(newest, {self._best_on_record, best})
        for draft in self._left_behind:
            self._here.remove(draft)
        self._left_behind = []

    def _put_on_record(self, resource: float) -> str | None:
        newest: str | None = None
        later = []
        for report in self._reported:
            if report.resource > resource:
                later.append(report)
                continue
            newest = report.newest
            # A report may name no best checkpoint, and then the record keeps the one before.
            if report.best is not None:
                self._best_on_record = report.best
        self._reported = later
        return newest

    def _remove_before(self, newest: str, best: set[str | None]) -> None:
        here = self._here
        needed = best | {report.best for report in self._reported}
        older = here.older_than(newest)
        excess = max(len(older) - self._keep + 1, 0)
        for name in older[:excess]:
            if name not in needed:
                here.remove(name)
            elif name not in self._without_state:
                here.take_state(name)
                self._without_state.add(name)
