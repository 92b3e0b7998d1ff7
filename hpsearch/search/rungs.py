"""When a trial continues, pauses or is promoted: asynchronous successive halving.

A rung is a resource level. A trial that reaches one is compared with every trial that ever reached
it, at that level and no other. A report past a level counts for it as long as it has not reached
the next one. A trial that reports rarely may pass over a rung, and is then not ranked there. Among
the best 1/eta it continues at once; otherwise it pauses there, keeps its checkpoint, gives up its
slot, and continues from exactly where it was if it is later among the best 1/eta.

Source: Li et al., "A System for Massively Parallel Hyperparameter Tuning" (MLSys 2020), algorithm
2; pausing and promoting from checkpoints instead of stopping is the paper's own form of the rule.
"""

from __future__ import annotations

import bisect
import enum
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from optuna.pruners import BasePruner
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial


class Verdict(enum.Enum):
    """What a trial does after a report."""

    CONTINUE = "continue"
    PAUSE = "pause"
    STOP = "stop"


@dataclass(frozen=True)
class Judgement:
    """A verdict with its reason, in words for the `decisions` table."""

    verdict: Verdict
    why: str
    against: list[int] = field(default_factory=list)
    """Numbers of the trials it was compared with: the nearest few on either side of the cut."""


NEAREST = 5
"""How many of the compared trials a judgement names."""


class Rung:
    """The standing of all trials that reached one resource level. Scores are minimised."""

    def __init__(self, level: float) -> None:
        self.level = level
        self._standing: list[tuple[float, int]] = []
        self._scores: dict[int, float] = {}
        self._waiting: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._standing)

    def record(self, number: int, score: float) -> None:
        """Enter a trial's score.

        Entering it again replaces it (an attempt may redo what a lost one did).
        """
        if number in self._scores:
            self._standing.remove((self._scores[number], number))
        self._scores[number] = score
        bisect.insort(self._standing, (score, number))

    def rank(self, number: int) -> int:
        """The trial's place, from 0 for the best."""
        return bisect.bisect_left(self._standing, (self._scores[number], number))

    def score(self, number: int) -> float:
        """The score that a trial reached this rung with."""
        return self._scores[number]

    def wait(self, number: int) -> None:
        """The trial pauses at this rung."""
        waiting = self._waiting
        entry = (self._scores[number], number)
        place = bisect.bisect_left(waiting, entry)
        if waiting[place : place + 1] != [entry]:
            waiting.insert(place, entry)

    def leave(self, number: int) -> None:
        """The trial no longer waits at this rung."""
        waiting = self._waiting
        entry = (self._scores.get(number, math.nan), number)
        place = bisect.bisect_left(waiting, entry)
        if waiting[place : place + 1] == [entry]:
            del waiting[place]

    def best_waiting(self) -> Iterator[int]:
        """The trials that wait here, best first."""
        return (number for _, number in self._waiting)

    def around(self, place: int) -> list[int]:
        """Numbers of the trials nearest to a place in the standing."""
        reach = NEAREST // 2
        first = max(0, place - reach)
        last = place + reach
        nearest = self._standing[first : last + 1]
        return [number for _, number in nearest]


class Rungs:
    """The rungs of a study below its full budget, lowest first.

    Every operation costs O(log trials) comparisons: no event looks at all trials.

    Args:
        levels: Ascending resource levels; the full budget may come last and is not a rung to pause
            at.
        total: The full trial budget.
        eta: At each rung one trial in `eta` continues.
    """

    def __init__(self, levels: Iterable[float], total: float, eta: int = 3) -> None:
        self.rungs = [Rung(level) for level in levels if level < total]
        self.eta = eta
        self._total = total
        self._measured: dict[tuple[int, int], float] = {}
        """By rung and trial, the resource of the report that counts there."""

    def enter(self, number: int, resource: float) -> int | None:
        """Note that a trial reports at a resource.

        Returns: The rung that the report counts at, the highest one at or below it. None below the
            lowest rung, at the full budget, and where an earlier report of the trial counts there.
        """
        if resource >= self._total:
            return None
        index = bisect.bisect_right(self.rungs, resource, key=lambda rung: rung.level) - 1
        if index < 0:
            return None
        counted = self._measured.get((index, number), resource)
        if counted < resource:
            return None
        self._measured[index, number] = resource
        return index

    def arrive(self, index: int, number: int, score: float) -> Judgement:
        """A trial reached a rung: record its score and say whether it continues or pauses."""
        rung = self.rungs[index]
        rung.leave(number)
        rung.record(number, score)
        if not math.isfinite(score):
            rung.wait(number)
            return Judgement(Verdict.PAUSE, f"no finite value at {rung.level:g}")
        places = len(rung) // self.eta
        why = _standing(rung, number, places)
        against = rung.around(places)
        if rung.rank(number) < places:
            return Judgement(Verdict.CONTINUE, why, against)
        rung.wait(number)
        return Judgement(Verdict.PAUSE, why, against)

    def promotion(
        self, can_finish: Callable[[int], bool] = lambda number: True, *, last_call: bool = False
    ) -> tuple[int, Judgement] | None:
        """The best waiting trial of the highest rung at which one is among the best 1/eta.

        Args:
            can_finish: Whether a trial, by its number, can still be trained in full; others are
                passed over.
            last_call: No new trial will come: round the share up, so that the best of each rung
                continues.
        """
        for rung in reversed(self.rungs):
            places = len(rung) // self.eta
            if last_call:
                places = math.ceil(len(rung) / self.eta)
            number = _first_to_promote(rung, places, can_finish)
            if number is not None:
                why = _standing(rung, number, places)
                against = rung.around(places)
                return number, Judgement(Verdict.CONTINUE, why, against)
        return None

    def level_after(self, index: int | None, resource: float) -> float | None:
        """The level of the next rung above one of them, past a resource; None above the highest.

        Args:
            index: The rung; None for one below the lowest.
            resource: What the level must exceed.
        """
        following = 0 if index is None else index + 1
        for rung in self.rungs[following:]:
            if rung.level > resource:
                return rung.level
        return None

    def promote(self, number: int) -> None:
        """The trial continues: it waits nowhere."""
        for rung in self.rungs:
            rung.leave(number)


def _first_to_promote(rung: Rung, places: int, can_finish: Callable[[int], bool]) -> int | None:
    """The best trial that waits at a rung in one of the first places, and can finish."""
    for number in rung.best_waiting():
        if rung.rank(number) >= places:
            return None
        if not math.isfinite(rung.score(number)):
            return None
        if can_finish(number):
            return number
    return None


def _standing(rung: Rung, number: int, places: int) -> str:
    """A trial's place at a rung, in words."""
    place = rung.rank(number) + 1
    return f"place {place} of {len(rung)} at {rung.level:g}; the best {places} continue"


class PromotionPruner(BasePruner):
    """Asynchronous successive halving as an Optuna pruner, with one more verdict: pause.

    In a study of ours `judge` is asked and a paused trial may come back. In bare Optuna nothing can
    be paused, so `prune` answers True for a trial that would pause.

    Args:
        levels: Optuna steps at which trials are compared, ascending, without the full budget.
        eta: At each rung one trial in `eta` continues.
    """

    def __init__(self, levels: Iterable[int], eta: int = 3) -> None:
        if eta < 2:
            raise ValueError(f"eta is {eta}: use 2 or more, so that some trials stay behind")
        self._levels = sorted(levels)
        self._eta = eta

    def judge(self, study: Study, trial: FrozenTrial) -> Judgement:
        """Say what the trial does after its last report, compared with all at its level."""
        step = trial.last_step
        if step is None:
            return Judgement(Verdict.CONTINUE, "between rungs")
        index = bisect.bisect_right(self._levels, step) - 1
        if index < 0 or self._step_at(index, trial) != step:
            return Judgement(Verdict.CONTINUE, "between rungs")
        number = trial.number
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        rungs = Rungs(self._levels, math.inf, self._eta)
        rung = rungs.rungs[index]
        for other in study.get_trials(deepcopy=False):
            at = self._step_at(index, other)
            if other.number == number or at is None:
                continue
            value_there = other.intermediate_values[at]
            rung.record(other.number, score_of(value_there, sign))
        value = trial.intermediate_values[step]
        score = score_of(value, sign)
        return rungs.arrive(index, number, score)

    def _step_at(self, index: int, trial: FrozenTrial) -> int | None:
        """The resource of the report of a trial that counts at a rung.

        None if it has passed over it, or is not there.
        """
        level, *later = self._levels[index:]
        above = later[0] if later else math.inf
        there = [step for step in trial.intermediate_values if level <= step < above]
        return min(there, default=None)

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether the trial should stop now."""
        return self.judge(study, trial).verdict is not Verdict.CONTINUE


def score_of(value: float | None, sign: float) -> float:
    """A value as a score to minimise; what is not a number is worst."""
    if value is None or math.isnan(value):
        return math.inf
    return sign * value
