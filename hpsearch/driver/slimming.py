"""Takes from the checkpoints that are kept what their trials do not need any more, in a thread.

A trial that waits keeps its newest checkpoint whole and the weights of its best one. A trial that
has ended keeps only the weights of its best one. The slimmer watches what the driver has written,
so that nothing goes before the database names what stays. It only removes, so that a driver which
is killed meanwhile leaves nothing half made: the next driver removes the rest.

Where a study has moved, a trial that has saved in the new folder needs nothing in the former ones.
Those are touched only where they carry the study's mark (`hpsearch.checkpoint_folders`).

What another trial is to begin with stays as it is until that one has a checkpoint of its own.

Where a worker still holds a trial that has ended, the slimmer waits for it. A trial that waits may
continue meanwhile. Nothing newer than its checkpoint on record is touched, and nothing at all that
was written since: a trial that continues from an older checkpoint writes what sorts before that
one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpsearch.brain.retention import lent_by, waits
from hpsearch.brain.study import Study
from hpsearch.checkpoint_folders import Mark, mark_of
from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.history import Changes
from hpsearch.domain.records import Trial
from hpsearch.driver.background import Background, held_by_workers
from hpsearch.errors import UserError
from trials.checkpoints.folders import inside, split, trial_folder
from trials.checkpoints.trimming import trim_ended, trim_moved, trim_waiting

log = logging.getLogger("hpsearch")


@dataclass(frozen=True, slots=True)
class _Kept:
    """The rest of a trial that keeps a checkpoint."""

    trial: int
    waits: bool  # true if it may continue
    checkpoint: str  # its newest on record; of a trial that has ended, the one that stays
    best: str | None  # its best on record
    home: int  # the place of the study's folder that the checkpoint is in


class Slimmer:
    """The removals inside the trial folders of one study: in its folder of checkpoints, a path or a
    URL, and in the `former` ones that carry its mark, the newest first."""

    def __init__(
        self, checkpoints: Path | str, former: Sequence[str] = (), mark: Mark | None = None
    ) -> None:
        self._folders: list[Path | str] = [checkpoints, *former]
        self._mark = mark
        self._ours = {0: True}
        """For each folder that was looked into, by its place in the list, whether it is ours."""
        self._waiting: dict[int, _Kept] = {}
        self._done: dict[int, _Kept] = {}
        self._removals = Background("slimmer", self._try_to_slim, finish=lambda: None)

    def begin(self, trials: list[Trial]) -> None:
        """Take in a study as it was left, before anything is launched."""
        self._take_in(trials)
        self._order(set(), lent_by(trials))

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Called after every tick with what it wrote."""
        for decision in changes.decisions:
            if decision.kind is DecisionKind.DROP:
                log.info("trial %d: its checkpoint is given up: %s", decision.trial, decision.why)
        self._take_in(changes.trials)
        if self._waiting:
            self._order(held_by_workers(study), study.lent)

    def close(self) -> None:
        """Remove what is left to remove; wait for that for a while."""
        self._removals.close()

    def _take_in(self, trials: list[Trial]) -> None:
        for trial in trials:
            number = trial.number
            kept = self._kept(trial)
            if kept is None:
                self._waiting.pop(number, None)
                self._done.pop(number, None)  # an order that is still under way ends
            elif kept != self._done.get(number):
                self._waiting[number] = kept

    def _kept(self, trial: Trial) -> _Kept | None:
        """The rest that is to be left of a trial; None if it needs everything, or keeps nothing."""
        checkpoint = trial.checkpoint
        may_go_on = waits(trial)
        needs_everything = not trial.state.terminal and not may_go_on
        if checkpoint is None or needs_everything:
            return None
        home = self._home_of(checkpoint, trial.number)
        if home is None:
            return None
        return _Kept(trial.number, may_go_on, checkpoint, trial.best_checkpoint, home)

    def _home_of(self, checkpoint: str, trial: int) -> int | None:
        """The place in the list of the folder that a trial's checkpoint is in; None if in none."""
        folder = str(split(checkpoint)[0])
        name = trial_folder(trial)
        for number, root in enumerate(self._folders):
            if str(inside(root, name)) == folder:
                return number
        return None

    def _order(self, held: set[int], lent: set[int]) -> None:
        """Order what can be done by now. Nothing is removed yet of trials that have ended and that
        workers hold, and nothing of those whose checkpoint is `lent` to another trial."""
        for kept in list(self._waiting.values()):
            if kept.trial in lent:
                continue
            if kept.waits or kept.trial not in held:
                self._done[kept.trial] = self._waiting.pop(kept.trial)
                self._removals.order(kept)

    def _try_to_slim(self, kept: _Kept) -> None:
        try:
            self._slim(kept)
        except Exception as error:  # noqa: BLE001 - each store has errors of its own
            log.warning("trial %d keeps more checkpoints than it needs: %s", kept.trial, error)

    def _slim(self, kept: _Kept) -> None:
        if self._is_ours(kept.home):
            self._trim(kept)
        # A trial that waits may continue meanwhile, in a folder before its own in the list: nothing
        # that it writes there is on record yet.
        first = kept.home + 1 if kept.waits else 0
        name = trial_folder(kept.trial)
        for number in range(first, len(self._folders)):
            if number == kept.home or not self._is_ours(number):
                continue
            folder = inside(self._folders[number], name)
            trim_moved(folder, kept.checkpoint, kept.best)

    def _trim(self, kept: _Kept) -> None:
        """Remove what a trial does not need from the folder that its checkpoint is in."""
        if kept.waits:
            trim_waiting(kept.checkpoint, kept.best, lambda: self._stands(kept))
        else:
            trim_ended(kept.checkpoint)

    def _stands(self, kept: _Kept) -> bool:
        """True if a trial still waits as it did when this was ordered."""
        return self._done.get(kept.trial) is kept

    def _is_ours(self, number: int) -> bool:
        """True if a folder carries the study's mark. The mark is read once; a folder whose mark
        cannot be read is left alone."""
        if number not in self._ours:
            self._ours[number] = self._carries_mark(self._folders[number])
        return self._ours[number]

    def _carries_mark(self, folder: Path | str) -> bool:
        try:
            owner = mark_of(str(folder))
        except UserError:
            return False
        return owner is not None and owner == self._mark
