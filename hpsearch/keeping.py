"""Which checkpoints a study keeps: those of what runs, of the best that ended, and of the best that wait.

A trial that can no longer come back needs its checkpoint no more: one that failed, was pruned for good, repeated
another one, or ended and was surpassed by so many others. Of those that wait at a rung only so many may, the best: the
others are pruned. So what a study holds on disk is bounded, however many trials it tries.

A record that names no checkpoint is the word that its files may go; whoever drives the study removes them
(`hpsearch.sweeping`).
"""

from __future__ import annotations

from collections.abc import Iterable

from hpsearch.confirmation import CONFIRM
from hpsearch.lifecycle import State
from hpsearch.records import History, Trial
from hpsearch.reopening import LEFT
from hpsearch.spec import StudySpec

BEST = 10
"""How many trials that ended keep their checkpoint; more where more are to be confirmed."""

WAITING = 100
"""How many trials may wait at rungs."""


class Keeping:
    """Decides which checkpoints of one study may go.

    Args:
        spec: The study.
        history: Its records.
    """

    def __init__(self, spec: StudySpec, history: History) -> None:
        self._history = history
        self._sign = spec.objective.sign
        self._several = len(spec.objectives) > 1
        self._best = max(BEST, spec.search.confirm.top if spec.search.confirm is not None else 0)
        self._held: set[int] = set()
        self._clock = 0

    def give_up(self) -> list[Trial]:
        """Take from the records every checkpoint that is not kept. Looks at what has changed since the last call, and
        at what holds a checkpoint, which is bounded: it is asked at every tick.

        Returns:
            The trials that wait for nothing now: they are to be pruned.
        """
        self._clock, changed = self._history.changed_since(self._clock)
        if not changed:
            return []
        for number in changed:
            holds = self._history.trials[number].checkpoint is not None
            (self._held.add if holds else self._held.discard)(number)
        held = [self._history.trials[number] for number in sorted(self._held)]
        over = [trial for trial in held if trial.state.terminal and LEFT not in trial.system_attrs]
        useless = [trial for trial in over if not _may_be_best(trial)]
        if not self._several:  # no order says which of a Pareto set are surpassed
            useless += self._ordered(trial for trial in over if _may_be_best(trial))[self._best :]
        surplus = self._ordered(trial for trial in held if trial.state is State.PAUSED)[WAITING:]
        for trial in [*useless, *surplus]:
            trial.checkpoint = None
            self._history.touch(trial)
        return surplus

    def _ordered(self, trials: Iterable[Trial]) -> list[Trial]:
        """Best first, by the values of the search; those without a value last."""

        def place(trial: Trial) -> tuple[float | bool, ...]:
            return trial.violation, trial.value is None, self._sign * (trial.value or 0.0), trial.number

        return sorted(trials, key=place)


def _may_be_best(trial: Trial) -> bool:
    return trial.state is not State.FAILED and trial.role != CONFIRM
