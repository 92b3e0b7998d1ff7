"""The order of trials, best first, and the trials that tie with the best.

A trial is ranked by the value that is expected of it in full (`records.Trial.expected`), or else by
the best value that it has shown, however far it has trained. Both are values of the same metric. Of
equal ones, a complete trial comes first, then the one that trained further, then the older one. A
trial that was repeated with other seeds (role `confirm`) is ranked by the mean of its repeats
(`hpsearch.ranking.repeats`): the search saw the luckiest of many. Trials that keep the study's
limits come before all that do not. All code that orders trials follows these rules.

Two trials are tied if the difference between them may well be chance. Expectations are taken as
independent: one is ahead if it is really better with a probability of more than 95%
(`repeats.BEHIND`), by the sides of their intervals that face each other. Values without an interval
are tied only if they are equal. A trial that has hardly trained is tied with the first one only by
its shown value; if only its expectation may be equal, its standing is not known yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Generic, Protocol, TypeVar

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import sign_of
from hpsearch.ranking.repeats import BEHIND, Confirmed, RepeatedTrial, Repeats, runs_of

EQUAL = 1e-12
"""Values closer than this count as equal."""

REACH = NormalDist().inv_cdf(1 - BEHIND)
"""The standard deviations that a 90% interval reaches to either side."""


class Candidate(RepeatedTrial, Protocol):
    """A trial that can be ranked: a `records.Trial`, or a row that has these columns."""

    @property
    def number(self) -> int: ...
    @property
    def expected(self) -> float | None: ...
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


Of = TypeVar("Of", bound=Candidate)


@dataclass(frozen=True)
class Ranked(Generic[Of]):
    """A trial in its place."""

    trial: Of
    value: float
    """The best value that the trial itself has shown in the search."""
    confirmed: Confirmed | None
    tied: bool
    """True if it ties with the best one; for the best one, if any other does."""
    unknown: bool = False
    """True if it has trained too little to be compared with the best one."""


def rank(trials: Iterable[Of], direction: str, metric: str = "") -> list[Ranked[Of]]:
    """Put trials in order, best first.

    Args:
        trials: The trials to compare, with the repeats (role `confirm`) of any of them. Repeats,
            failed trials and trials without a finite value are not ranked themselves.
        direction: ``minimize`` or ``maximize``.
        metric: The name of the objective, whose range bounds all intervals.
    """
    everyone = list(trials)
    sign = sign_of(direction)
    places = [trial for trial in everyone if counts(trial)]
    repeats = Repeats(runs_of(everyone), direction)
    confirmed = repeats.confirmed(metric)
    score = _scores(places, confirmed, sign)

    def place(trial: Of) -> tuple[float, ...]:
        is_unconfirmed = trial.number not in confirmed
        return (trial.violation, score(trial), is_unconfirmed, *place_of(trial, sign))

    places.sort(key=place)
    return _mark_ties(places, confirmed, repeats, sign)


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
    """The key that trials without repeats are ordered by, smallest first; `sign` is -1 if more is
    better, else 1."""
    is_incomplete = trial.state is not State.COMPLETE
    return (sign * standing(trial), is_incomplete, -trial.resource, trial.number)


def standing(trial: Candidate) -> float:
    """The worth of a trial without repeats: the expected value, or else the shown one."""
    expected = expectation(trial)
    return _value(trial) if expected is None else expected


def expectation(trial: Candidate) -> float | None:
    """The value that is expected of a trial in full; None if it is unknown or not finite."""
    expected = trial.expected
    return expected if expected is not None and math.isfinite(expected) else None


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
    """True if a trial can be ranked: it has a finite value, did not fail and is not a repeat."""
    if trial.role is Role.CONFIRM or trial.state is State.FAILED:
        return False
    return trial.value is not None and math.isfinite(trial.value)


def _scores(
    places: list[Of], confirmed: dict[int, Confirmed], sign: float
) -> Callable[[Of], float]:
    """The score to order by, smallest first.

    A confirmed trial scores its mean. An unconfirmed one scores its `standing` in the search, but
    not better than the mean of a confirmed trial that beat it there: the repeats show how much the
    search flatters, and it flatters both.
    """
    searched_and_mean: list[tuple[float, float]] = []
    for trial in places:
        known = confirmed.get(trial.number)
        if known is not None:
            searched = sign * standing(trial)
            searched_and_mean.append((searched, sign * known.mean))

    def score(trial: Of) -> float:
        known = confirmed.get(trial.number)
        if known is not None:
            return sign * known.mean
        own = sign * standing(trial)
        beaten_by = [mean for searched, mean in searched_and_mean if searched <= own]
        return max([own, *beaten_by])

    return score


def _mark_ties(
    places: list[Of], confirmed: dict[int, Confirmed], repeats: Repeats, sign: float
) -> list[Ranked[Of]]:
    ranked: list[Ranked[Of]] = []
    for trial in places:
        of_trial = confirmed.get(trial.number)
        place = Ranked(trial, _value(trial), of_trial, tied=False)
        if ranked and _may_be_equal(place, ranked[0], repeats):
            is_known = _has_shown(place, ranked[0], sign)
            place = replace(place, tied=is_known, unknown=not is_known)
        ranked.append(place)
    if ranked:
        ranked[0] = replace(ranked[0], tied=any(each.tied for each in ranked))
    return ranked


def _may_be_equal(one: Ranked[Of], first: Ranked[Of], repeats: Repeats) -> bool:
    """True if two trials may be equally good.

    Two that were both repeated are compared by their repeats. Equal values at equal resource are
    equal. Else the intervals of their means or expectations are compared; if one of the trials has
    neither, both must have been measured at equal resource.
    """
    if one.trial.violation != first.trial.violation:
        return False
    if one.confirmed is not None and first.confirmed is not None:
        return not repeats.behind(one.trial.number)
    if not (_in_full(one) and _in_full(first)) and not compares(one.trial, first.trial):
        return False
    if compares(one.trial, first.trial) and abs(one.value - first.value) <= EQUAL:
        return True
    middle, low, high = _span(one)
    return _near(middle, (low, high), first)


def _has_shown(one: Ranked[Of], first: Ranked[Of], sign: float) -> bool:
    """True if a trial that may be equal to the first one has shown such a value itself."""
    if one.confirmed is not None or one.trial.state is State.COMPLETE:
        return True
    is_as_good = sign * one.value <= sign * _span(first)[0]
    return is_as_good or _near(one.value, (one.value, one.value), first)


def _near(value: float, interval: tuple[float, float], first: Ranked[Of]) -> bool:
    """True if the difference between a value and the first trial may be chance, by the sides of
    their intervals that face each other."""
    middle, low, high = _span(first)
    if value > middle:
        reaches = (value - interval[0], high - middle)
    else:
        reaches = (interval[1] - value, middle - low)
    return abs(value - middle) <= math.hypot(*reaches) + EQUAL


def _span(place: Ranked[Of]) -> tuple[float, float, float]:
    confirmed = place.confirmed
    if confirmed is None:
        return standing(place.trial), *likely_range(place.trial)
    mean, low, high = confirmed.mean, confirmed.low, confirmed.high
    return mean, mean if low is None else low, mean if high is None else high


def _in_full(place: Ranked[Of]) -> bool:
    return place.confirmed is not None or expectation(place.trial) is not None


def compares(one: Candidate, other: Candidate) -> bool:
    """True if two values were measured at equal resource; complete trials always compare."""
    if one.state is other.state is State.COMPLETE:
        return True
    return one.resource == other.resource


def _value(trial: Candidate) -> float:
    return float(trial.value or 0.0)
