"""The order of trials, best first, and the trials that tie with the best.

Trials are ranked by what comes of their configurations when they are trained again (`again`): the
mean of a trial's repeats (role `confirm`), or else what is expected of it in full, less its luck,
or else the best value that it has shown. Of equal ones, a complete trial comes first, then the one
that trained further, then the older one. Trials that keep the study's limits come before all that
do not. Trials without repeats are in the same order by their `standing`.

A trial is tied with the first one unless that one is better with a probability of more than 95%
(`repeats.BEHIND`), by how far their means may be off on the sides that face each other. Values of
which that is not known are tied only if they are equal. A trial that has hardly trained is tied
only by its shown value; if only its expectation may be equal, its standing is not known yet.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import sign_of
from hpsearch.search.ranking.again import Again, Seeds, spread_among
from hpsearch.search.ranking.evaluation import ENDS, evaluation_of
from hpsearch.search.ranking.metric_bounds import bounds_of
from hpsearch.search.ranking.repeats import (
    REACH,
    RepeatedTrial,
    Repeats,
    expectation,
    runs_of,
    worth_of,
)

EQUAL = 1e-12  # values closer than this count as equal
EXPECTED = ("expected", "expected_deviation", "expected_low", "expected_high")
"""The fields of a trial for its expectation."""


class Candidate(RepeatedTrial, Protocol):
    """A trial that can be ranked: a `records.Trial`, or a row that has these columns."""

    @property
    def number(self) -> int: ...
    @property
    def expected_deviation(self) -> float | None: ...
    @property
    def expected_low(self) -> float | None: ...
    @property
    def expected_high(self) -> float | None: ...
    @property
    def resource(self) -> float: ...
    @property
    def values(self) -> Sequence[float] | None: ...
    @property
    def violation(self) -> float: ...
    @property
    def out_of_space(self) -> bool: ...


Of = TypeVar("Of", bound=Candidate)


@dataclass(frozen=True)
class Ranked(Generic[Of]):
    """A trial in its place."""

    trial: Of
    value: float  # the best value that the trial itself has shown in the search
    again: Again | None  # the outcome of training it again; None with several objectives
    tied: bool = False  # true if it ties with the best one, which is not tied itself
    unknown: bool = False  # true if it has trained too little to be compared with the best one

    @property
    def confirmed(self) -> Again | None:
        """The outcome by its repeats; None without repeats."""
        return self.again if self.again and self.again.runs else None

    @property
    def mean(self) -> float:
        """The value that it is ranked by; with several objectives its own first one."""
        return self.value if self.again is None else self.again.mean


class Ranking:
    """The facts on a study as a whole by which each of its trials is ranked.

    Args:
        trials: All that may be ranked, or those that were repeated, with all repeats.
        direction: ``minimize`` or ``maximize``.
        metric: The name of the objective, whose range bounds all intervals.
        seeds: How far trainings vary, by the study's repeats; None for what `trials` show.
    """

    def __init__(
        self,
        trials: Iterable[Candidate],
        direction: str,
        metric: str = "",
        seeds: Callable[[Repeats], Seeds] | None = None,
    ) -> None:
        everyone = list(trials)
        sign = self._sign = sign_of(direction)
        ranked = [trial for trial in everyone if counts(trial)]
        self.repeats = Repeats(runs_of(everyone), direction)
        if seeds is None:
            inside = [trial for trial in ranked if trial.violation == 0]
            scores = [sign * standing(trial) for trial in inside]
            ended = (trial for trial in inside if trial.state is State.COMPLETE)
            ends = sorted(sign * standing(trial) for trial in ended)[:ENDS]
            spread, evaluation = spread_among(scores), evaluation_of(ends)
            self._seeds = Seeds(self.repeats, spread, evaluation=evaluation)
        else:
            self._seeds = seeds(self.repeats)
        self._metric = metric
        means = self.repeats.means
        repeated = [trial for trial in ranked if trial.number in means]
        self._repeated = [(sign * standing(each), sign * means[each.number]) for each in repeated]

    def again(self, trial: Candidate) -> Again:
        """The outcome of training a trial's configuration again.

        One that was not repeated is not better than the mean of a repeated one that beat it in the
        search: the repeats show how much the search flatters, and it flatters both.
        """
        sign, repeats = self._sign, self.repeats
        mean = repeats.means.get(trial.number)
        if mean is None:
            own = sign * standing(trial)
            beaten_by = [mean for searched, mean in self._repeated if searched <= own]
            likely = self._seeds.without_luck(own)
            mean = sign * max(likely, *beaten_by, own)
        runs = repeats.runs.get(trial.number, 0)
        below, above = self.reaches(trial, fresh=True)
        if not below and not above:
            return Again(mean, None, None, runs)
        worst = [sign * score for score in self._seeds.worst]
        lowest, highest = bounds_of(self._metric, [mean, *repeats.seen, *worst])
        low = max(mean - below, lowest)
        high = min(mean + above, highest)
        return Again(mean, low, high, runs)

    def reaches(self, trial: Candidate, *, fresh: bool) -> tuple[float, float]:
        """How far a mean's 90% interval reaches below and above; `fresh`: one more training's."""
        runs = self.repeats.runs.get(trial.number, 0)
        variance = 1 / max(1, runs) + fresh
        by_seeds = self._seeds.reach(variance)
        is_sure = fresh or self._seeds.known
        is_complete = trial.state is State.COMPLETE
        if is_complete and not runs:
            by_seeds *= self._seeds.sharpness(trial.expected_deviation)
            by_seeds = max(by_seeds, self._seeds.least_reach(standing(trial), variance))
        if runs or (is_complete and is_sure):
            return by_seeds, by_seeds
        middle = standing(trial)
        low, high = likely_range(trial)
        below = math.hypot(by_seeds, middle - low)
        above = math.hypot(by_seeds, high - middle)
        return below, above


def rank(
    trials: Iterable[Of], direction: str, metric: str = "", ranking: Ranking | None = None
) -> list[Ranked[Of]]:
    """Put trials in order, best first.

    Args:
        trials: The trials to compare, with the repeats (role `confirm`) of any of them. Repeats,
            failed trials and trials without a finite value are not ranked themselves.
        direction: ``minimize`` or ``maximize``.
        metric: The name of the objective, whose bounds are those of all intervals.
        ranking: The facts on their study; None for what these trials show.
    """
    everyone = list(trials)
    sign = sign_of(direction)
    facts = ranking or Ranking(everyone, direction, metric)
    ranked = []
    for trial in everyone:
        if counts(trial):
            ranked.append(Ranked(trial, float(trial.value or 0.0), facts.again(trial)))

    def place(each: Ranked[Of]) -> tuple[float, ...]:
        trial = each.trial
        is_unconfirmed = each.confirmed is None
        return (trial.violation, sign * each.mean, is_unconfirmed, *place_of(trial, sign))

    ranked.sort(key=place)
    return _mark_ties(ranked, facts, sign)


def leading(trials: Iterable[Of], direction: str, metric: str = "") -> Of | None:
    """The first trial in the order of `rank`; None if no trial can be ranked."""
    everyone = list(trials)
    if any(trial.role is Role.CONFIRM for trial in everyone):
        ranked = rank(everyone, direction, metric)
        return ranked[0].trial if ranked else None
    sign = sign_of(direction)
    places = (trial for trial in everyone if counts(trial))
    return min(places, key=lambda trial: (trial.violation, *place_of(trial, sign)), default=None)


def place_of(trial: Candidate, sign: float) -> tuple[float, ...]:
    """The key that trials without repeats are ordered by; `sign`: -1 if more is better, else 1."""
    is_incomplete = trial.state is not State.COMPLETE
    return (sign * standing(trial), is_incomplete, -trial.resource, trial.number)


def standing(trial: Candidate) -> float:
    """The worth of a trial without repeats: the expected value, or else the shown one."""
    return float(worth_of(trial) or 0.0)


def expectation_of(again: Again | None) -> dict[str, float | None]:
    """The outcome of training a trial again, as the fields of its expectation."""
    if again is None:
        return dict.fromkeys(EXPECTED)
    low, high = again.low, again.high
    deviation = None
    if low is not None and high is not None:
        deviation = (high - low) / (2 * REACH)
    return dict(zip(EXPECTED, (again.mean, deviation, low, high), strict=True))


def likely_range(trial: Candidate) -> tuple[float, float]:
    """The 90% interval of a trial's true value; without an expectation, its own value twice.
    Without recorded ends the interval follows from the deviation."""
    middle, low, high = standing(trial), trial.expected_low, trial.expected_high
    if expectation(trial) is None:
        return middle, middle
    if low is not None and high is not None:
        return min(low, middle), max(high, middle)
    deviation = trial.expected_deviation or 0.0
    half = REACH * deviation if 0 <= deviation < math.inf else 0.0
    return middle - half, middle + half


def counts(trial: Candidate) -> bool:
    """True if a trial can be ranked: a finite value in the space, no failure and no repeat."""
    if not trial.role.of_search or trial.state is State.FAILED or trial.out_of_space:
        return False
    return trial.value is not None and math.isfinite(trial.value)


def _mark_ties(ranked: Sequence[Ranked[Of]], ranking: Ranking, sign: float) -> list[Ranked[Of]]:
    marked = list(ranked[:1])
    for place in ranked[1:]:
        if _may_be_equal(place, ranked[0], ranking):
            is_known = _has_shown(place, ranked[0], ranking, sign)
            place = replace(place, tied=is_known, unknown=not is_known)
        marked.append(place)
    return marked


def _may_be_equal(one: Ranked[Of], first: Ranked[Of], ranking: Ranking) -> bool:
    """True if two trials may be equally good.

    Two that were both repeated are compared by their repeats. Equal values at equal resource are
    equal. Else their means are compared by how far they may be off; if nothing is expected of one
    of the trials, both must have been measured at equal resource.
    """
    trial, best = one.trial, first.trial
    if trial.violation != best.violation:
        return False
    if one.confirmed is not None and first.confirmed is not None:
        return not ranking.repeats.behind(trial.number)
    are_alike = compares(trial, best)
    are_in_full = _in_full(one) and _in_full(first)
    if not are_alike and not are_in_full:
        return False
    difference = abs(one.value - first.value)
    if are_alike and difference <= EQUAL:
        return True
    reaches = ranking.reaches(trial, fresh=False)
    return _near(one.mean, reaches, first, ranking)


def _has_shown(one: Ranked[Of], first: Ranked[Of], ranking: Ranking, sign: float) -> bool:
    if one.confirmed is not None or one.trial.state is State.COMPLETE:
        return True
    is_as_good = sign * one.value <= sign * first.mean
    return is_as_good or _near(one.value, (0.0, 0.0), first, ranking)


def _near(value: float, reaches: tuple[float, float], first: Ranked[Of], ranking: Ranking) -> bool:
    """True if the difference between a value and the first trial may be chance, by the sides of
    their intervals that face each other."""
    middle = first.mean
    below, above = ranking.reaches(first.trial, fresh=False)
    facing = (reaches[0], above) if value > middle else (reaches[1], below)
    return abs(value - middle) <= math.hypot(*facing) + EQUAL


def _in_full(place: Ranked[Of]) -> bool:
    return place.confirmed is not None or expectation(place.trial) is not None


def compares(one: Candidate, other: Candidate) -> bool:
    """True if two values were measured at equal resource; complete trials always compare."""
    if one.state is other.state is State.COMPLETE:
        return True
    return one.resource == other.resource
