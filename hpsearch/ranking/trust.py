"""How far the rungs of a study can be trusted: whether the standing at a rung foretold the end.

A trial's *end* is the best value that it reported after the rung, because a trial is valued by its
best report. The rung's own report does not count, or it would be compared with itself.

**Correlation.** Spearman's rank correlation of the value at the rung with the end, among the trials
that were trained in full. Most of them were trained in full because they did well at the rung, and
among trials that are alike in one respect, that respect explains less (range restriction). The
correlation among all trials that reached the rung follows by Thorndike's case 2, from the spread of
all of them against that of the finished ones; both are spreads of normal scores, which are the same
for any scale of values. Spared trials make the spread of the finished ones wide, so that there is
little to correct. The formula knows of no selection but by the rung itself, and higher rungs select
as well. At the lowest rung, spared trials are a random sample of all that reached it: from
`ENOUGH_SPARED` on they are used alone. Fewer of them say less alone than with all others.

**Its interval** holds nine times in ten: Fisher's z with Bonett and Wright's variance, its ends
corrected like the correlation. A bootstrap would draw the same few trials again and again, and is
too narrow for as few as there are. `python benchmarks/trust.py` shows what intervals cover.

**Wrongly paused** is a trial that would have ended better than the best one that went on by its
standing. Spared trials show the share, as far as they would have paused; its interval is Jeffreys'.
With fewer than `FEWEST` of these, the share follows from the correlation: if the normal scores at
the rung and at the end are bivariate normal, it is the mean probability of a paused trial to end
better than all that were trained in full. Its interval is what it would be at both ends
of the correlation's.

Sources: Thorndike, *Personnel Selection* (1949), case 2; Bonett and Wright, "Sample size
requirements for estimating Pearson, Kendall and Spearman correlations", Psychometrika 65 (2000);
Brown, Cai and DasGupta, "Interval estimation for a binomial proportion", Statistical Science 16
(2001).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State

Floats = NDArray[np.float64]

CONFIDENCE = 0.90
"""Of the intervals."""
QUANTILE = 1.6448536269514722
"""How many standard deviations such an interval of a normal variable reaches to either side."""
FEWEST = 4
"""The fewest trials that a correlation, or a share of spared trials, is taken from; Fisher's z has
no interval for fewer."""
ENOUGH_SPARED = 12
"""So many spared trials in full are used alone, at the lowest rung."""
WEAK = 0.3
"""A rung whose correlation lies below this tells little about the end."""
MOST = 0.99
"""The model takes correlations only this far from 0, so that its integral is smooth."""


@dataclass(frozen=True, slots=True)
class TrialCourse:
    """What is read of one trial that reached a rung.

    Args:
        number: Its number.
        state: Its state.
        role: Why it is there; repeats (role `confirm`) must be left out.
        rung: The index of the highest rung that it has reached.
        spared: Whether it never pauses, to measure what the rungs tell.
        scores: By resource, what reports at the same resource are ordered by; less is better.
            Reports below the lowest rung may be left out.
    """

    number: int
    state: State
    role: Role
    rung: int | None
    spared: bool
    scores: Mapping[float, float]


class RungVerdict(StrEnum):
    """What the correlation of a rung says of it."""

    UNKNOWN = "unknown"
    """Too few trials were trained in full."""
    TELLS = "tells"
    """The whole interval is at or above `WEAK`."""
    UNCLEAR = "unclear"
    """The interval has `WEAK` inside."""
    LITTLE = "little"
    """The whole interval is below `WEAK`."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rank correlation with its 90% interval."""

    value: float
    low: float
    high: float
    trials: int
    """How many finished trials it is from."""
    spared: bool
    """Whether these are spared trials alone."""


class Basis(StrEnum):
    """What a share of wrongly paused trials is from."""

    SPARED = "spared"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class WronglyPaused:
    """The share of paused trials that would have ended better than the best one in full, with its
    90% interval."""

    share: float
    low: float
    high: float
    basis: Basis
    trials: int
    """How many spared trials it counts, or how many paused ones the model is applied to."""


@dataclass(frozen=True, slots=True)
class RungTrust:
    """How far a rung can be trusted."""

    level: float
    """Its resource."""
    reached: int
    """Trials that reached it with a value."""
    paused: int
    """Those that paused there and did not go on."""
    finished: int
    """Those that were trained in full."""
    correlation: Correlation | None
    """None if too few were trained in full to tell."""
    wrongly_paused: WronglyPaused | None
    """None if it is not known, or no trial has paused there."""

    @property
    def verdict(self) -> RungVerdict:
        """What the correlation says of the rung."""
        correlation = self.correlation
        if correlation is None:
            return RungVerdict.UNKNOWN
        if correlation.low >= WEAK:
            return RungVerdict.TELLS
        return RungVerdict.LITTLE if correlation.high < WEAK else RungVerdict.UNCLEAR

    def as_plain(self) -> dict[str, Any]:
        """Its fields and its verdict, as plain values."""
        return {**asdict(self), "verdict": self.verdict}


def trust(courses: Sequence[TrialCourse], levels: Sequence[float]) -> list[RungTrust]:
    """How far each rung of a study can be trusted, lowest first.

    Args:
        courses: Its trials, without repeats.
        levels: The levels of its rungs, ascending, the full budget last
            (`hpsearch.study_file.levels.rung_levels`).
    """
    found = []
    behind: Set[int] = frozenset()
    for index, level in enumerate(levels[:-1]):
        standing = _Standing(courses, index, level, levels[index + 1])
        found.append(standing.trust(behind))
        behind = behind | standing.below_the_cut
    return found


class _Standing:
    """The trials that reached a rung, best first.

    Args:
        courses: All trials of the study.
        index: The rung's index.
        level: The rung's level.
        following: The next level, where reports no longer count for this rung.
    """

    def __init__(
        self, courses: Sequence[TrialCourse], index: int, level: float, following: float
    ) -> None:
        self._index = index
        self._level = level
        self._at: dict[int, float] = {}
        """By the number of a trial, its score at the rung."""
        self._end: dict[int, float] = {}
        """By the number of a trial that was trained in full, its best score after the rung."""
        reached = []
        for course in courses:
            resource = _counting(course, level, following)
            if resource is None or not math.isfinite(course.scores[resource]):
                continue
            reached.append(course)
            self._at[course.number] = course.scores[resource]
            end = _best_after(course, resource)
            if course.state is State.COMPLETE and end is not None:
                self._end[course.number] = end
        reached.sort(key=lambda course: (self._at[course.number], course.number))
        self._courses = reached
        goodness = -normal_scores([self._at[course.number] for course in reached])
        self._places = {
            course.number: float(score) for course, score in zip(reached, goodness, strict=True)
        }
        """By the number of a trial, the normal score of its place at the rung; more is better."""

    @property
    def _paused(self) -> list[int]:
        return [course.number for course in self._courses if self._is_paused(course)]

    def _is_paused(self, course: TrialCourse) -> bool:
        """Whether a trial stopped at this rung because others were ahead."""
        is_last = course.rung == self._index
        return is_last and course.state in (State.PAUSED, State.PRUNED)

    @property
    def below_the_cut(self) -> Set[int]:
        """The trials that the rung would have paused, or has.

        The cut is where it lies among the trials that could pause: the share of them that went on
        is the share of all places above it.
        """
        judged = [course for course in self._courses if not _goes_on_anyway(course)]
        paused = sum(map(self._is_paused, judged))
        if not judged:
            return frozenset()
        share_behind = paused / len(judged)
        places = round(len(self._courses) * (1 - share_behind))
        return {course.number for course in self._courses[places:]}

    def trust(self, behind: Set[int]) -> RungTrust:
        """What the end of the finished trials says of this rung.

        Args:
            behind: The trials that a lower rung would have paused, or has.
        """
        correlation = self._correlation()
        return RungTrust(
            level=self._level,
            reached=len(self._courses),
            paused=len(self._paused),
            finished=len(self._end),
            correlation=correlation,
            wrongly_paused=self._wrongly_paused(behind, correlation),
        )

    def _correlation(self) -> Correlation | None:
        ended = [course for course in self._courses if course.number in self._end]
        spared = [course for course in ended if course.spared]
        alone = self._index == 0 and len(spared) >= ENOUGH_SPARED
        chosen = [course.number for course in (spared if alone else ended)]
        if len(chosen) < FEWEST:
            return None
        at = [self._at[number] for number in chosen]
        end = [self._end[number] for number in chosen]
        found = rank_correlation(at, end)
        if found is None:
            return None
        everyone = np.std(list(self._places.values()))
        selected = np.std([self._places[number] for number in chosen])
        wider = float(everyone / selected)
        low, high = interval(found, len(chosen))
        return Correlation(
            value=unrestricted(found, wider),
            low=unrestricted(low, wider),
            high=unrestricted(high, wider),
            trials=len(chosen),
            spared=alone,
        )

    def _wrongly_paused(
        self, behind: Set[int], correlation: Correlation | None
    ) -> WronglyPaused | None:
        paused = self._paused
        if not paused:
            return None
        below = self.below_the_cut
        spared = []
        for course in self._courses:
            number = course.number
            would_pause_here = number in below and number not in behind
            if course.spared and would_pause_here and number in self._end:
                spared.append(self._end[number])
        went_on = [end for number, end in self._end.items() if number not in below | behind]
        if went_on and len(spared) >= FEWEST:
            best = min(went_on)
            return _counted(sum(end < best for end in spared), len(spared))
        if correlation is None:
            return None
        at_rung = np.array([self._places[number] for number in paused])
        in_full = np.array([self._places[number] for number in self._end])
        share = share_better(at_rung, in_full, correlation.value)
        if_high = share_better(at_rung, in_full, correlation.high)
        if_low = share_better(at_rung, in_full, correlation.low)
        low = min(share, if_high, if_low)
        high = max(share, if_high, if_low)
        return WronglyPaused(share, low, high, Basis.MODEL, len(paused))


def _goes_on_anyway(course: TrialCourse) -> bool:
    """Whether a trial can pause nowhere."""
    return course.spared or course.role is Role.DEFAULT


def _counting(course: TrialCourse, level: float, following: float) -> float | None:
    """The resource of the report that counts at a rung: the first one at or above its level, below
    the next."""
    there = [resource for resource in course.scores if level <= resource < following]
    return min(there, default=None)


def _best_after(course: TrialCourse, resource: float) -> float | None:
    """The best score of the reports after one of them; None without a finite one."""
    scores = [score for at, score in course.scores.items() if at > resource]
    return min(filter(math.isfinite, scores), default=None)


def _counted(better: int, spared: int) -> WronglyPaused:
    """The share that spared trials show, with Jeffreys' interval."""
    from scipy.special import betaincinv

    tail = (1 - CONFIDENCE) / 2
    a, b = better + 0.5, spared - better + 0.5
    low = 0.0 if better == 0 else float(betaincinv(a, b, tail))
    high = 1.0 if better == spared else float(betaincinv(a, b, 1 - tail))
    return WronglyPaused(better / spared, low, high, Basis.SPARED, spared)


# ------------------------------------------------------------------------------------- statistics


def ranks(values: Sequence[float]) -> Floats:
    """The places of values, from 1 for the smallest; equal ones share the mean of their places.

    scipy.stats has the same, but takes longer to import than a reading takes to run.
    """
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean_places = last - (counts - 1) / 2
    return np.asarray(mean_places[which], dtype=float)


def normal_scores(values: Sequence[float]) -> Floats:
    """What normal variables in the same order would be expected to be, by van der Waerden: the
    normal quantiles of rank / (n + 1)."""
    from scipy.special import ndtri

    return np.asarray(ndtri(ranks(values) / (len(values) + 1)))


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None where all values of one side are equal."""
    a, b = ranks(one), ranks(other)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return None
    return float(np.corrcoef(a, b)[0, 1])


def interval(correlation: float, n: int) -> tuple[float, float]:
    """The 90% interval of a rank correlation of n pairs, at least 4.

    A few pairs are in perfect order by chance quite often. The end of the interval that lies inside
    is therefore that of an order that is short of perfect by half of an exchange of two neighbours.
    """
    most = 1 - 6 / (n**3 - n)
    nearest = max(-most, min(most, correlation))
    variance = (1 + nearest**2 / 2) / (n - 3)
    half = QUANTILE * math.sqrt(variance)
    z = math.atanh(nearest)
    low = -1.0 if correlation <= -most else math.tanh(z - half)
    high = 1.0 if correlation >= most else math.tanh(z + half)
    return low, high


def unrestricted(correlation: float, wider: float) -> float:
    """The correlation among all, from that among some that were selected by one of the variables.

    Args:
        correlation: Among the selected ones.
        wider: The standard deviation of that variable among all, over that among the selected.
    """
    stretched = correlation * wider
    return stretched / math.sqrt(1 - correlation**2 + stretched**2)


def share_better(paused: Floats, in_full: Floats, correlation: float) -> float:
    """The mean probability of a paused trial to end better than all that were trained in full.

    Args:
        paused: Normal scores of the paused trials at the rung; more is better. `[p]`
        in_full: The same of the trials in full, `[f]`.
        correlation: Of the scores at the rung with those at the end, which are bivariate normal.
    """
    from scipy.special import ndtr

    r = max(-MOST, min(MOST, correlation))
    rest = math.sqrt(1 - r**2)
    ends = np.linspace(-6.0, 6.0, 601)
    # The best of those in full lies below each end, and the paused one in the step above it.
    below = ndtr((ends[:, None] - r * in_full) / rest).prod(axis=1)
    reached = ndtr((ends[:, None] - r * paused) / rest).mean(axis=1)
    midway = (below[1:] + below[:-1]) / 2
    return float(np.sum(midway * np.diff(reached)))
