"""Removes checkpoints that trials do not need any more, in a thread beside the driver's loop.

A trial that waits keeps its newest checkpoint whole and the weights of its best one. A trial that
has ended keeps the weights of its best one, or nothing where its record names no checkpoint, except
the files of one that ran in its folder. The sweeper watches the driver's commits, so that nothing
goes before the database names what stays. It touches only a folder that carries the study's mark,
waits while a worker holds a trial that has ended, and leaves what is newer than the checkpoint on
record of a trial that may continue. If the driver is killed, the next one removes the rest.
"""

import logging
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue

from hpsearch.brain.retention import waits
from hpsearch.brain.study import Study
from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.history import Changes
from hpsearch.domain.records import Trial
from hpsearch.running.checkpoint_folders import StudyFolder, mark_of, trials_in
from trials.checkpoints.checkpoint_folder import is_checkpoint
from trials.checkpoints.folders import folder_at, inside, split, trial_folder
from trials.checkpoints.trimming import trim_all, trim_ended, trim_waiting

PATIENCE_S = 30.0
"""The seconds that the end of a driver waits for removals. The next driver does what is left."""

log = logging.getLogger("hpsearch")


@dataclass(frozen=True, slots=True)
class _Kept:
    trial: int
    waits: bool = False  # true if it may continue
    checkpoint: str | None = None  # its newest on record; None if it keeps nothing
    best: str | None = None


class Sweeper:
    """The removals in the folder of one study."""

    def __init__(self, home: StudyFolder) -> None:
        self._home = home
        self._pending: dict[int, _Kept] = {}
        self._ordered: dict[int, _Kept] = {}
        self._has_complained = False
        self._is_ours: bool | None = None
        """True if the folder carries the study's mark, which is read once."""
        self._orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="sweeper", daemon=True)
        self._thread.start()

    def begin(self, trials: list[Trial]) -> None:
        """Take in a study as it was left, before anything is launched."""
        self._take_in(trials)
        gone = {kept.trial for kept in self._pending.values() if kept.checkpoint is None}
        for number in gone:
            self._ordered[number] = self._pending.pop(number)
        if gone:
            self._orders.put(partial(self._remove_left, gone))
        self._order(set())

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Take in the commit of a tick."""
        for decision in changes.decisions:
            if decision.kind is DecisionKind.DROP:
                log.info("trial %d: its checkpoint is given up: %s", decision.trial, decision.why)
        self._take_in(changes.trials)
        if self._pending:
            held = {slot.holds[0] for slot in study.slots.values() if slot.holds is not None}
            self._order(held)

    def close(self) -> None:
        """Remove the rest, but not for long."""
        self._orders.put(None)
        self._thread.join(PATIENCE_S)

    def _take_in(self, trials: Iterable[Trial]) -> None:
        for trial in trials:
            number = trial.number
            kept = self._kept(trial)
            if kept is None:
                self._pending.pop(number, None)
                self._ordered.pop(number, None)  # an order that is still under way ends
            elif kept != self._ordered.get(number):
                self._pending[number] = kept

    def _kept(self, trial: Trial) -> _Kept | None:
        """The checkpoints that a trial keeps; None if it needs all, or has no files here."""
        may_go_on = waits(trial)
        if not trial.state.terminal and not may_go_on:
            return None
        if trial.checkpoint is None:
            return _Kept(trial.number) if trial.attempts else None
        folder, name = split(trial.checkpoint)
        own = inside(self._home.folder, trial_folder(trial.number))
        if str(folder) != str(own) or not is_checkpoint(name):
            return None
        return _Kept(trial.number, may_go_on, trial.checkpoint, trial.best_checkpoint)

    def _order(self, held: set[int]) -> None:
        """Order the removals that are possible by now, without ended trials that workers `held`."""
        for kept in list(self._pending.values()):
            if kept.trial in held and not kept.waits:
                continue
            del self._pending[kept.trial]
            self._ordered[kept.trial] = kept
            self._orders.put(partial(self._remove, kept))

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            try:
                if self._is_ours is None:
                    self._is_ours = mark_of(self._home.folder) == self._home.mark
                if self._is_ours:
                    order()
            except Exception as error:  # noqa: BLE001 - each store has errors of its own
                self._complain(error)

    def _remove_left(self, gone: set[int]) -> None:
        """Remove the files that earlier drivers have left of trials that keep nothing."""
        for number in gone.intersection(trials_in(self._home.folder)):
            self._remove(_Kept(number))

    def _remove(self, kept: _Kept) -> None:
        home, name = folder_at(self._home.folder), trial_folder(kept.trial)
        if kept.checkpoint is None:
            error = trim_all(inside(self._home.folder, name))
            if error is not None:
                self._complain(error)
        elif home.is_link(name):
            self._complain(OSError(f"{name} is a link, which is not followed"))
        elif kept.waits:
            trim_waiting(kept.checkpoint, kept.best, lambda: self._ordered.get(kept.trial) is kept)
        else:
            trim_ended(kept.checkpoint)

    def _complain(self, error: Exception) -> None:
        """Warn once: later failures most likely have the same cause."""
        if self._has_complained:
            return
        self._has_complained = True
        what = "checkpoints that are not needed could not be removed from"
        why = f"{type(error).__name__}: {error}"
        log.warning("%s %s: %s - the next driver tries again", what, self._home.folder, why)
