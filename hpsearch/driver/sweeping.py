"""Removes checkpoints that no record names any more, in a thread.

It watches what the driver has written: files go only after the database has forgotten them. What a
driver that died had not removed yet, the next one removes. A trial that a worker still holds is
waited for.

Only folders that carry the study's mark are looked into (`hpsearch.checkpoint_folders`). Each is
listed once, so that a trial whose files are gone already costs no call. What a store does not
remove is tried again when the driver ends, and by the next driver.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from hpsearch.brain.study import Study
from hpsearch.checkpoint_folders import Mark, mark_of, trials_in
from hpsearch.domain.history import Changes
from hpsearch.domain.records import Trial
from hpsearch.driver.background import Background, held_by_workers
from trials.checkpoints.folders import folder_at, trial_folder

log = logging.getLogger("hpsearch")


class Sweeper:
    """The removals of one study, in all folders that it keeps or has kept checkpoints in, the
    present one first: paths or URLs."""

    def __init__(self, mark: Mark, folders: Sequence[str]) -> None:
        self._folders = [_SweptFolder(mark, folder) for folder in folders]
        self._waiting: set[int] = set()  # trials whose files must go, once no worker holds them
        self._inherited: set[int] = set()
        """The same, where an earlier driver may have removed the files."""
        self._removals = Background("sweeper", self._sweep, self._finish)

    def begin(self, trials: list[Trial]) -> None:
        """Take in a study as it was left: what its last driver had not removed."""
        self._inherited |= _gone_among(trials)

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Called after every tick with what it wrote."""
        self._waiting |= _gone_among(changes.trials)
        if not self._waiting and not self._inherited:
            return
        held = held_by_workers(study)
        for number in sorted(self._inherited - held):
            self._removals.order(_Sweep(number, sure=False))
        for number in sorted(self._waiting - held):
            self._removals.order(_Sweep(number, sure=True))
        self._inherited &= held
        self._waiting &= held

    def close(self) -> None:
        """Remove what is left to remove; wait for that for a while."""
        self._removals.close()

    def _sweep(self, order: _Sweep) -> None:
        present = self._folders[0]
        for folder in self._folders:
            folder.sweep(order.number, sure=order.sure and folder is present)

    def _finish(self) -> None:
        for folder in self._folders:
            folder.finish()


@dataclass(frozen=True, slots=True)
class _Sweep:
    """An order to remove what a trial has left."""

    number: int
    sure: bool
    """True if it has trained since the folders were listed, and so has files in the present one."""


class _SweptFolder:
    """One folder, as the sweeper's thread sees it. Nothing here raises what a store raises."""

    def __init__(self, mark: Mark, folder: str) -> None:
        self._mark = mark
        self._folder = folder
        self._listed: set[int] | None = None
        """The trials with files in it; None if it could not be listed."""
        self._is_ours = False
        self._left: set[int] = set()  # trials whose files could not be removed
        self._has_complained = False

    def sweep(self, number: int, *, sure: bool) -> None:
        """Remove a trial's files; `sure` where it has some even if it was not listed."""
        if self._listed is None and not self._has_complained:
            self._list()
        if self._listed is None:
            self._left.add(number)
            return
        has_files = sure or number in self._listed
        if self._is_ours and has_files:
            self._remove(number)

    def finish(self) -> None:
        """Try once more what could not be removed."""
        if not self._left:
            return
        self._listed = None
        self._list()
        if self._listed is not None:
            self._left &= self._listed
            self._remove_left()
        if self._left:
            log.warning(
                "%d trials that are not kept still have files in %s", len(self._left), self._folder
            )

    def _remove_left(self) -> None:
        if not self._is_ours:
            return
        for number in sorted(self._left):
            self._remove(number)

    def _list(self) -> None:
        try:
            owner = mark_of(self._folder)
            self._is_ours = owner is not None and owner.uid == self._mark.uid
            listed = trials_in(self._folder) if self._is_ours else []
            self._listed = set(listed)
        except Exception as error:  # noqa: BLE001 - each store has errors of its own
            self._complain(error)

    def _remove(self, number: int) -> None:
        error = folder_at(self._folder).remove(trial_folder(number))
        if error is None:
            self._left.discard(number)
            return
        self._left.add(number)
        self._complain(error)

    def _complain(self, error: Exception) -> None:
        """Warn once for each folder: what follows most likely has the same cause."""
        if self._has_complained:
            return
        self._has_complained = True
        log.warning(
            "checkpoints that are not kept could not be removed from %s: %s: %s"
            " - tried again when this driver ends, and by the next one",
            self._folder,
            type(error).__name__,
            error,
        )


def _gone_among(trials: list[Trial]) -> set[int]:
    """The numbers of the trials of which nothing is kept, but which may have left files."""
    return {
        trial.number
        for trial in trials
        if trial.state.terminal and trial.checkpoint is None and trial.attempts
    }
