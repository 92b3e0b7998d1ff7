"""When a trial continues, pauses, is promoted or stops: asynchronous successive halving with pauses.

A rung is a resource level. A trial that reaches one is compared with every trial that ever reached it, at that level
and no other. Among the best 1/eta it goes on at once; otherwise it pauses there, keeps its checkpoint, gives its slot
away, and is continued from exactly where it was if it comes to stand among the best 1/eta later on.

Source: Li et al., "A System for Massively Parallel Hyperparameter Tuning" (MLSys 2020), algorithm 2; pausing and
promoting from checkpoints instead of stopping is the paper's own form of the rule.
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
        """Enter a trial's score; entering it again replaces it (an attempt may redo what a lost one did)."""
        if number in self._scores:
            self._standing.remove((self._scores[number], number))
        self._scores[number] = score
        bisect.insort(self._standing, (score, number))

    def rank(self, number: int) -> int:
        """The trial's place, from 0 for the best."""
        return bisect.bisect_left(self._standing, (self._scores[number], number))

    def wait(self, number: int) -> None:
        """The trial pauses at this rung."""
        entry = (self._scores[number], number)
        place = bisect.bisect_left(self._waiting, entry)
        if self._waiting[place : place + 1] != [entry]:
            self._waiting.insert(place, entry)

    def leave(self, number: int) -> None:
        """The trial no longer waits at this rung."""
        entry = (self._scores.get(number, math.nan), number)
        place = bisect.bisect_left(self._waiting, entry)
        if self._waiting[place : place + 1] == [entry]:
            del self._waiting[place]

    def best_waiting(self) -> Iterator[int]:
        """The trials that wait here, best first."""
        return (number for _, number in self._waiting)

    def around(self, place: int) -> list[int]:
        """Numbers of the trials nearest to a place in the standing."""
        return [number for _, number in self._standing[max(0, place - NEAREST // 2) : place + NEAREST // 2 + 1]]


class Rungs:
    """The rungs of a study below its full budget, lowest first.

    Every operation costs O(log trials) comparisons: no event looks at all trials.

    Args:
        levels: Ascending resource levels; the full budget may stand last and is not a rung to pause at.
        total: The full trial budget.
        eta: At each rung one trial in `eta` goes on.
    """

    def __init__(self, levels: Iterable[float], total: float, eta: int = 3) -> None:
        self.rungs = [Rung(level) for level in levels if level < total]
        self.eta = eta

    def index_of(self, resource: float) -> int | None:
        """Which rung stands at exactly this resource."""
        return next((i for i, rung in enumerate(self.rungs) if rung.level == resource), None)

    def reached(self, resource: float) -> int | None:
        """The highest rung at or below this resource."""
        below = [i for i, rung in enumerate(self.rungs) if rung.level <= resource]
        return below[-1] if below else None

    def above(self, resource: float) -> float | None:
        """The next rung's level above this resource; None when only the full budget is left."""
        return next((rung.level for rung in self.rungs if rung.level > resource), None)

    def arrive(self, index: int, number: int, score: float) -> Judgement:
        """A trial reached a rung: record its score and say whether it goes on or pauses."""
        rung = self.rungs[index]
        rung.leave(number)
        rung.record(number, score)
        rank, places = rung.rank(number), len(rung) // self.eta
        standing = f"place {rank + 1} of {len(rung)} at {rung.level:g}"
        if not math.isfinite(score):
            rung.wait(number)
            return Judgement(Verdict.PAUSE, f"no finite value at {rung.level:g}")
        if rank < places:
            return Judgement(Verdict.CONTINUE, f"{standing}; the best {places} go on", rung.around(places))
        rung.wait(number)
        return Judgement(Verdict.PAUSE, f"{standing}; the best {places} go on", rung.around(places))

    def promotion(
        self, can_finish: Callable[[int], bool] = lambda number: True, *, last_call: bool = False
    ) -> tuple[int, Judgement] | None:
        """The trial to continue now: of the highest rung, the best waiting one if it is among the best 1/eta.

        Args:
            can_finish: Whether a trial, by its number, can still be trained in full; others are passed over.
            last_call: No new trial will come: round the share up, so that the best of each rung goes on.
        """
        for rung in reversed(self.rungs):
            places = math.ceil(len(rung) / self.eta) if last_call else len(rung) // self.eta
            for number in rung.best_waiting():
                rank = rung.rank(number)
                if rank >= places or not math.isfinite(rung._scores[number]):
                    break
                if can_finish(number):
                    why = f"place {rank + 1} of {len(rung)} at {rung.level:g}; the best {places} go on"
                    return number, Judgement(Verdict.CONTINUE, why, rung.around(places))
        return None

    def promote(self, number: int) -> None:
        """The trial continues: it waits nowhere."""
        for rung in self.rungs:
            rung.leave(number)


class PromotionPruner(BasePruner):
    """Asynchronous successive halving as an Optuna pruner, with one more verdict: pause.

    In a study of ours `judge` is asked and a paused trial may come back. In bare Optuna nothing can be paused, so
    `prune` answers True for a trial that would pause.

    Args:
        levels: Optuna steps at which trials are compared, ascending, without the full budget.
        eta: At each rung one trial in `eta` goes on.
    """

    def __init__(self, levels: Iterable[int], eta: int = 3) -> None:
        if eta < 2:
            raise ValueError(f"eta is {eta}; at least every second trial must be left behind at a rung: use 2 or more")
        self._levels = sorted(levels)
        self._eta = eta

    def judge(self, study: Study, trial: FrozenTrial) -> Judgement:
        """Say what the trial does after its last report, comparing it at that level with all that reached it."""
        step = trial.last_step
        if step is None or step not in self._levels:
            return Judgement(Verdict.CONTINUE, "between rungs")
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        rungs = Rungs(self._levels, math.inf, self._eta)
        index = self._levels.index(step)
        for other in study.get_trials(deepcopy=False):
            if other.number != trial.number and step in other.intermediate_values:
                rungs.rungs[index].record(other.number, score_of(other.intermediate_values[step], sign))
        return rungs.arrive(index, trial.number, score_of(trial.intermediate_values[step], sign))

    def prune(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether the trial should not go on now."""
        return self.judge(study, trial).verdict is not Verdict.CONTINUE


def score_of(value: float | None, sign: float) -> float:
    """A value as a score to minimise; what is not a number is worst."""
    return math.inf if value is None or math.isnan(value) else sign * value
