"""Asynchronous successive halving by expectation: trials continue, pause and are promoted.

A rung is a resource level. Of all trials that ever reached one, a fraction goes on, and the rest
pauses there, with their checkpoints and without a slot. Whenever fewer have gone on than the quota
allows, the most promising trial at the full budget (`curve_model.forecast`) does, so that a slow
starter goes on where configurations like it have ended well. A trial without a finite value never
does.

The fraction is 1/eta as long as the values at a rung correlate with those at the next one, by rank.
Where the correlation is poor more trials go on, and without any all of them. A rung at which half
of the trials show the very same value, the majority guess of a model that has learnt nothing yet,
decides nothing as long as none is better; then as many go on as are, and half as many as are not.

With several objectives trials are in order by all of them (`fronts`).

A report past a level counts for it as long as it has not reached the next one. A trial that reports
rarely may pass over a rung, and does not count there.

Source: Li et al., "A System for Massively Parallel Hyperparameter Tuning" (MLSys 2020), algorithm
2, with a model in place of the rank and a quota in place of the fraction of arrivals. Thorndike's
correction (case 2) for the range of the chosen: Thorndike, "Personnel Selection" (1949).
"""

import bisect
import enum
import math
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
from scipy.special import ndtri

from hpsearch.domain.facts import EarlierStudy
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.trust import rank_correlation, unrestricted


class Verdict(enum.Enum):
    """A trial's next step after a report."""

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


NEAREST = 5  # the number of compared trials that a judgement names
ASSUMED, WEIGHT = 0.75, 6
"""The rank correlation of a rung with the next one that is assumed at first, and the number of
trials that this assumption is worth."""
NEAR = 2.0
"""The largest factor between the levels of two rungs, as shares of the full budget, of which one
tells of the other."""
POOR, GOOD = 0.3, 0.75
"""With a correlation of GOOD one trial in eta goes on, with POOR every trial; linear in between."""
COMPARED = 200  # the latest trials that a correlation is measured on
WIDEST = 3.0  # the largest factor of the correction for the range of the trials that went on
SAME = 0.5  # the share of trials with one and the same value at which a rung decides nothing
LEAST_SAME = 3

Order = Callable[[Sequence[int]], list[int] | None]
"""Puts trials in order, given by number: the most promising one first. None if it cannot tell."""


def _always(number: int) -> bool:
    return True


def prior_correlation(share: float, earlier: Sequence[EarlierStudy]) -> float:
    """The rank correlation that is assumed of a rung at this share of the full budget, by how well
    the rungs near it predicted the end in earlier studies."""
    total, weight = ASSUMED * WEIGHT, float(WEIGHT)
    for study in earlier:
        factors = {max(share / rung.share, rung.share / share): rung for rung in study.rungs}
        factor = min(factors, default=math.inf)
        if factor <= NEAR:
            nearest = factors[factor]
            total += nearest.trials * nearest.correlation
            weight += nearest.trials
    return total / weight


class Rung:
    """The scores of all trials that reached one resource level, to be minimised."""

    def __init__(self, level: float) -> None:
        self.level = level
        self.scores: dict[int, float] = {}  # by trial, the score that it reached the level with
        self.waiting: set[int] = set()  # the trials that pause here
        self.changes = 0  # the number of scores that have been entered
        self._ordered: list[tuple[float, int]] = []
        self._arrived: list[tuple[float, int]] = []
        """The scores that are not in order yet; a study that is taken up has many."""
        self._numbers: list[int] = []  # the trials, ascending
        self._exempt: set[int] = set()
        self._stopped: set[int] = set()

    def __len__(self) -> int:
        return len(self.scores)

    def record(self, number: int, score: Any) -> None:
        """Enter a trial's score in place of an earlier one: an attempt may redo a lost one."""
        before = self.scores.get(number)
        if before is not None:
            del self._sorted[self._index((before, number))]
        self._enter_number(number)
        self.scores[number] = score
        self.changes += 1
        self._arrived.append((score, number))

    def _enter_number(self, number: int) -> None:
        if number not in self.scores:
            bisect.insort(self._numbers, number)

    def latest(self, count: int, among: Container[int]) -> list[int]:
        """The latest few of its trials that are among some, ascending."""
        found = (number for number in reversed(self._numbers) if number in among)
        return sorted(islice(found, count))

    def rank(self, number: int) -> int:
        """The trial's rank by score, from 0 for the best."""
        return self._index((self.scores[number], number))

    def exempt(self, number: int) -> None:
        """Let a trial go on with any score; others go on beside it."""
        self._exempt.add(number)

    def stop(self, number: int) -> None:
        """Note that a trial which waited here has ended, and has not gone on."""
        if number in self.waiting:
            self.waiting.remove(number)
            self._stopped.add(number)

    @property
    def able(self) -> list[int]:
        """The trials that wait here with a finite value, ascending."""
        return sorted(number for number in self.waiting if math.isfinite(self.scores[number]))

    @property
    def judged(self) -> int:
        """The number of trials that have taken part in the choice."""
        return len(self) - len(self._exempt)

    @property
    def gone_on(self) -> int:
        """The number of these that have been chosen."""
        return self.judged - len(self.waiting) - len(self._stopped)

    @property
    def is_tied(self) -> bool:
        """True if too many trials show the same finite value here to choose by it."""
        finite = self._index((math.inf, 0))
        if finite < LEAST_SAME:
            return False
        return self._count(self._commonest) >= max(LEAST_SAME, SAME * finite)

    @property
    def fraction_ahead(self) -> float:
        """Of a rung that is tied: the fraction of trials that are better than the value which so
        many show; 1 as long as none is."""
        ahead = self._index((self._commonest, 0))
        return ahead / len(self) if ahead else 1.0

    @property
    def _commonest(self) -> float:
        """The score that half of the trials show, if any: one of the two in the middle."""
        finite = self._index((math.inf, 0))
        middle = {self._sorted[(finite - 1) // 2][0], self._sorted[finite // 2][0]}
        return max(middle, key=self._count)

    def _count(self, score: float) -> int:
        return self._index((score, math.inf)) - self._index((score, 0))

    def why_first(self, number: int) -> str:
        """The reason why a trial goes on before others, in words."""
        return "it looks best"

    def why_later(self, number: int) -> str:
        """The reason why others go on before a trial, in words."""
        return "others look better"

    @property
    def _sorted(self) -> list[tuple[float, int]]:
        arrived = self._arrived
        if len(arrived) == 1:
            bisect.insort(self._ordered, arrived[0])
        elif arrived:
            self._ordered.extend(arrived)
            self._ordered.sort()
        self._arrived = []
        return self._ordered

    def _index(self, key: tuple[float, float]) -> int:
        return bisect.bisect_left(self._sorted, key)


class Rungs:
    """The rungs of a study below its full budget, lowest first.

    Args:
        levels: Ascending resource levels; those from the full budget on are not rungs.
        total: The full trial budget.
        eta: At each rung one trial in `eta` continues, if its values correlate with later ones.
        order: Puts the most promising trials first; None for the order of scores at the rung.
        kind: Of the rungs: a `Rung`, or with several objectives a `fronts.FrontRung`, which takes
            points as scores.
        earlier: Studies whose rungs tell what to assume of these.
    """

    def __init__(
        self,
        levels: Iterable[float],
        total: float,
        eta: int = 3,
        order: Order | None = None,
        kind: type[Rung] = Rung,
        earlier: Sequence[EarlierStudy] = (),
    ) -> None:
        self.rungs = [kind(level) for level in levels if level < total]
        self.eta = eta
        self._total = total
        self._order = order
        self.ended = kind(total)  # the trials that were trained in full
        self._assumed = [prior_correlation(rung.level / total, earlier) for rung in self.rungs]
        self._measured: dict[tuple[int, int], float] = {}
        """By rung and trial, the resource of the report that counts there."""
        self._found: dict[int, tuple[tuple[int, int], float]] = {}
        """By rung, its correlation, and how often the scores there and at the next had changed."""

    # ------------------------------------------------------------------------------------ arriving

    def enter(self, number: int, resource: float) -> int | None:
        """Note that a trial reports at a resource, and return the rung that the report counts at:
        the highest one at or below it. None below the lowest rung, at the full budget, and where an
        earlier report of the trial counts there."""
        index = bisect.bisect_right(self.rungs, resource, key=lambda rung: rung.level) - 1
        if index < 0 or resource >= self._total:
            return None
        if self._measured.setdefault((index, number), resource) < resource:
            return None
        self._measured[index, number] = resource
        return index

    def measured_at(self, index: int, number: int) -> float:
        """The resource of the report of a trial that counts at a rung."""
        return self._measured[index, number]

    def finish(self, number: int, score: Any) -> None:
        """Record the score of a trial at the full budget, which rungs are measured by."""
        self.ended.record(number, score)

    def arrive(self, index: int, number: int, score: Any) -> Judgement:
        """Record the score of a trial at a rung, and let it continue or pause there."""
        rung = self.rungs[index]
        waiting = rung.waiting
        waiting.discard(number)
        rung.record(number, score)
        waiting.add(number)
        if not math.isfinite(rung.scores[number]):
            return Judgement(Verdict.PAUSE, f"no finite value at {rung.level:g}")
        chosen = self._chosen(index, _always)
        if chosen is not None and chosen[0] == number:
            waiting.remove(number)
            return chosen[1]
        why = f"{self._summary(index)}; {rung.why_later(number)}"
        others = sorted(waiting - {number}, key=rung.rank)
        return Judgement(Verdict.PAUSE, why, others[:NEAREST])

    def promotion(
        self, can_finish: Callable[[int], bool] = _always
    ) -> tuple[int, Judgement] | None:
        """The trial to continue, of the highest rung at which fewer have gone on than may and of
        those that can still be trained in full."""
        for index in reversed(range(len(self.rungs))):
            chosen = self._chosen(index, can_finish)
            if chosen is not None:
                return chosen
        return None

    def waiting(self) -> list[int]:
        """All trials that wait at a rung with a finite value, by number."""
        return sorted(number for rung in self.rungs for number in rung.able)

    def waits_at(self, number: int) -> int:
        """The index of the rung at which a trial waits."""
        return next(at for at, rung in enumerate(self.rungs) if number in rung.waiting)

    def ahead(self, numbers: Sequence[int]) -> tuple[int, float]:
        """The first of some waiting trials, and the level at which they are compared: the highest
        that all have a score at, or else the lowest that any has."""
        reached = [rung for rung in self.rungs if any(number in rung.scores for number in numbers)]
        shared = [rung for rung in reached if all(number in rung.scores for number in numbers)]
        rung = shared[-1] if shared else reached[0]
        there = [number for number in numbers if number in rung.scores]
        return min(there, key=rung.rank), rung.level

    def unbeaten(self, numbers: Sequence[int]) -> tuple[int, float] | None:
        """Of several objectives: the first of those of some waiting trials that are in the first
        front of the rung where they wait, at the highest such rung, and its level."""
        for rung in reversed(self.rungs):
            first = [each for each in numbers if each in rung.waiting and rung.scores[each] == 0]
            if first:
                return min(first, key=rung.rank), rung.level
        return None

    def level_after(self, index: int | None, resource: float) -> float | None:
        """The level of the next rung above another one (None for below the lowest) and past a
        resource; None above the highest."""
        following = 0 if index is None else index + 1
        for rung in self.rungs[following:]:
            if rung.level > resource:
                return rung.level
        return None

    def promote(self, number: int) -> None:
        """Let a trial continue: it waits at no rung."""
        for rung in self.rungs:
            rung.waiting.discard(number)

    def stop(self, number: int) -> None:
        """Note that a trial has ended at the rung where it waited."""
        for rung in self.rungs:
            rung.stop(number)

    def take_back(self, trial: Trial) -> None:
        """Note that a trial has ended past its rung: another may go on from there."""
        if trial.rung is not None:
            self.rungs[trial.rung].waiting.add(trial.number)
            self.stop(trial.number)

    # ------------------------------------------------------------------------------------- choosing

    def fraction(self, index: int) -> float:
        """The fraction of trials at a rung that may go on: 1/eta, more where it predicts little."""
        rung = self.rungs[index]
        if rung.is_tied:
            return (1.0 + rung.fraction_ahead) / 2
        trust = (self.correlation(index) - POOR) / (GOOD - POOR)
        bounded = min(1.0, max(0.0, trust))
        least = 1 / self.eta
        return 1.0 - (1.0 - least) * bounded

    def correlation(self, index: int) -> float:
        """The rank correlation of a rung's values with those at the next level, as far as known."""
        rung = self.rungs[index]
        above = self.rungs[index + 1 :]
        following = above[0] if above else self.ended
        changes = rung.changes, following.changes
        if self._found.get(index, (None,))[0] == changes:
            return self._found[index][1]
        numbers = following.latest(COMPARED, rung.scores)
        count = max(0, len(numbers) - 2)
        found = _correlation_between(rung, following, numbers) if count else 0.0
        assumed = WEIGHT * self._assumed[index]
        correlation = (count * found + assumed) / (count + WEIGHT)
        self._found[index] = changes, correlation
        return correlation

    def _chosen(
        self, index: int, can_finish: Callable[[int], bool]
    ) -> tuple[int, Judgement] | None:
        rung = self.rungs[index]
        if rung.gone_on >= self._quota(index):
            return None
        able = rung.able
        ordered = self._ordered(rung, able)
        first = next(filter(can_finish, ordered), None)
        if first is None and len(ordered) < len(able):  # the order was of the first few alone
            ordered = self._ordered(rung, list(filter(can_finish, able)))
            first = next(iter(ordered), None)
        if first is None:
            return None
        others = ordered[ordered.index(first) + 1 :]
        why = f"{rung.why_first(first)}; {self._summary(index)}"
        return first, Judgement(Verdict.CONTINUE, why, others[:NEAREST])

    def _ordered(self, rung: Rung, numbers: list[int]) -> list[int]:
        ordered = self._order(numbers) if numbers and self._order is not None else None
        return ordered or sorted(numbers, key=rung.rank)

    def _quota(self, index: int) -> int:
        return math.floor(self.rungs[index].judged * self.fraction(index) + 1e-9)

    def _summary(self, index: int) -> str:
        rung = self.rungs[index]
        level = f"{rung.level:g}"
        if rung.is_tied and rung.fraction_ahead == 1.0:
            return f"nothing has been learnt at {level}, which decides nothing"
        trust = self.correlation(index)
        quota = f"{self._quota(index)} of {rung.judged}"
        return f"{quota} go on from {level}, rank correlation {trust:.2f} with the next level"


def _correlation_between(rung: Rung, following: Rung, numbers: Sequence[int]) -> float:
    """The rank correlation of trials' scores at two rungs, corrected to that over all trials; 0
    where there is none. Trials that went on were chosen, so that their range is narrower."""
    here = [rung.scores[number] for number in numbers]
    there = [following.scores[number] for number in numbers]
    found = rank_correlation(here, there)
    if found is None:
        return 0.0
    places = np.array([rung.rank(number) for number in numbers])
    # As normal scores, for which the correction is exact; over all trials they deviate by 1.
    scores = ndtri((places + 0.5) / len(rung))
    deviation = max(float(scores.std()), 1e-9)
    wider = min(WIDEST, max(1.0, 1.0 / deviation))
    return unrestricted(found, wider)
