"""Which trials are best, and which cannot be told from the best.

A trial is ranked by what is expected of it if it is trained in full (`records.Trial.expected`):
the best value that it has shown on its way may be luck, and may be lost again by its end. A trial
of which nothing is expected is ranked by the best value that it has shown, however far it has
trained: one that is ahead after less training was also ahead at equal resource, and further
training can only improve it. Both are values of the same metric, so one order holds them all.

Of equal ones, a complete trial comes first, then the one that trained further, then the older one.
All code that orders trials follows this rule. A trial that was repeated with other seeds (role
`confirm`) is ranked by the mean of its repeats (`hpsearch.ranking.repeats`): what the search saw
was the luckiest of many, while the repeats were not selected. Trials that keep the study's limits
come before all that do not.

Two trials cannot be told apart if the difference between them may well be chance. Expectations are
taken as independent and normal: they are told apart if the one that is ahead is really better with
a probability of more than 95% (`repeats.BEHIND`), by the standard deviation of their difference.
Values of which nothing more is known are told apart if they differ at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Generic, Protocol, TypeVar

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.ranking.repeats import BEHIND, Confirmed, Repeats, runs_of

EQUAL = 1e-12
"""Values closer than this count as equal."""

REACH = NormalDist().inv_cdf(1 - BEHIND)
"""How many standard deviations an expectation reaches to either side: so far that its true value is
there nine times in ten."""


class Candidate(Protocol):
    """What ranking needs to know of a trial: a `records.Trial`, or a row that has these columns."""

    @property
    def number(self) -> int: ...
    @property
    def state(self) -> State: ...
    @property
    def value(self) -> float | None: ...
    @property
    def expected(self) -> float | None: ...
    @property
    def expected_deviation(self) -> float | None: ...
    @property
    def resource(self) -> float: ...
    @property
    def role(self) -> Role: ...
    @property
    def repeats(self) -> int | None: ...
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
    """Whether it cannot be told from the best one; of the best one, whether any other cannot."""


def rank(trials: Iterable[Of], direction: str) -> list[Ranked[Of]]:
    """Put trials in order, best first.

    Args:
        trials: The trials to compare, with the repeats (role `confirm`) of any of them. Repeats,
            failed trials and trials without a finite value are not ranked themselves.
        direction: ``minimize`` or ``maximize``.
    """
    everyone = list(trials)
    sign = -1.0 if direction == "maximize" else 1.0
    places = [trial for trial in everyone if counts(trial)]
    repeats = Repeats(runs_of(everyone), direction)
    confirmed = repeats.confirmed()
    score = _scores(places, confirmed, sign)

    def place(trial: Of) -> tuple[float, ...]:
        is_unconfirmed = trial.number not in confirmed
        return (trial.violation, score(trial), is_unconfirmed, *place_of(trial, sign))

    places.sort(key=place)
    return _mark_ties(places, confirmed, repeats)


def leading(trials: Iterable[Trial], sign: float) -> Trial | None:
    """The trial that is ahead of all that have a value, in the order of `place_of`; those that keep
    the limits first. None if no trial has a value.

    Args:
        trials: Of one objective. Repeats of others count by their own value.
        sign: -1 if more is better, else 1.
    """
    known = [trial for trial in trials if trial.value is not None]
    return min(known, key=lambda trial: (trial.violation, *place_of(trial, sign)), default=None)


def place_of(trial: Candidate, sign: float) -> tuple[float, ...]:
    """What trials that were not repeated are ordered by, smallest first.

    Args:
        trial: The trial.
        sign: -1 if more is better, else 1.
    """
    is_incomplete = trial.state is not State.COMPLETE
    return (sign * standing(trial), is_incomplete, -trial.resource, trial.number)


def standing(trial: Candidate) -> float:
    """What a trial that was not repeated is worth: what is expected of it, or else its value."""
    expected = expectation(trial)
    return _value(trial) if expected is None else expected


def expectation(trial: Candidate) -> float | None:
    """What is expected of a trial in full; None if nothing finite is."""
    expected = trial.expected
    if expected is None or not math.isfinite(expected):
        return None
    return expected


def reach(trial: Candidate) -> float:
    """How far to either side of its expectation the true value of a trial lies, nine times in ten;
    0 where nothing is known of that."""
    deviation = trial.expected_deviation
    if expectation(trial) is None or deviation is None:
        return 0.0
    return REACH * deviation if 0 <= deviation < math.inf else 0.0


def counts(trial: Candidate) -> bool:
    """Whether a trial can be ranked: it has a finite value, did not fail and is not a repeat."""
    if trial.role is Role.CONFIRM or trial.state is State.FAILED:
        return False
    return trial.value is not None and math.isfinite(trial.value)


def _scores(
    places: list[Of], confirmed: dict[int, Confirmed], sign: float
) -> Callable[[Of], float]:
    """What to order by, smallest first.

    A confirmed trial scores its mean. An unconfirmed one scores what it is worth by the search
    (`standing`), but not better than a confirmed trial that beat it there: repeating showed by how
    much the search flatters, and it flattered both.
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
    places: list[Of], confirmed: dict[int, Confirmed], repeats: Repeats
) -> list[Ranked[Of]]:
    """Mark the trials that cannot be told from the first."""
    tied = [_tied(trial, places[0], confirmed, repeats) for trial in places]
    if tied:
        tied[0] = any(tied[1:])
    ranked = []
    for trial, is_tied in zip(places, tied, strict=True):
        ranked.append(Ranked(trial, _value(trial), confirmed.get(trial.number), is_tied))
    return ranked


def _tied(
    trial: Candidate, first: Candidate, confirmed: dict[int, Confirmed], repeats: Repeats
) -> bool:
    """Whether two trials cannot be told apart.

    Two that were both repeated are told apart by their repeats. Others stand for a value that may
    lie some way to either side: for their mean with its interval, for what is expected of them, or
    for the one value that they have shown. Where nothing but that is known of one of them, they
    must have been measured at equal resource.
    """
    if trial.violation != first.violation:
        return False
    of_trial = confirmed.get(trial.number)
    of_first = confirmed.get(first.number)
    if of_trial is not None and of_first is not None:
        return not repeats.behind(trial.number)
    return _may_be_equal(trial, of_trial, first, of_first)


def tied_with(first: Ranked[Of], trial: Candidate) -> bool:
    """Whether a trial that was not repeated cannot be told from the first one.

    Args:
        first: The first of a ranking.
        trial: Another trial that can be ranked.
    """
    if trial.violation != first.trial.violation:
        return False
    return _may_be_equal(trial, None, first.trial, first.confirmed)


def range_of_ties(first: Ranked[Of]) -> tuple[float, float]:
    """Between which values a trial is worth a comparison with the first one (`tied_with`), if its
    own worth has no deviation.

    A little wider than what is tied, so that rounding loses nothing.
    """
    middle, half = _span(first.trial, first.confirmed)
    rounding = 1e-9 * (abs(middle) + half)
    width = half + rounding + 2 * EQUAL
    return middle - width, middle + width


def _may_be_equal(
    one: Candidate, of_one: Confirmed | None, other: Candidate, of_other: Confirmed | None
) -> bool:
    if not (_in_full(one, of_one) and _in_full(other, of_other)) and not compares(one, other):
        return False
    middle, half = _span(one, of_one)
    other_middle, other_half = _span(other, of_other)
    return abs(middle - other_middle) <= math.hypot(half, other_half) + EQUAL


def _span(trial: Candidate, confirmed: Confirmed | None) -> tuple[float, float]:
    """The value that a trial stands for, and how far to either side the true one may lie."""
    if confirmed is None:
        return standing(trial), reach(trial)
    low, high = confirmed.low, confirmed.high
    if low is None or high is None:
        return confirmed.mean, 0.0
    return confirmed.mean, (high - low) / 2


def _in_full(trial: Candidate, confirmed: Confirmed | None) -> bool:
    """Whether it is known what a trial is worth when it is trained in full."""
    return confirmed is not None or expectation(trial) is not None


def compares(one: Candidate, other: Candidate) -> bool:
    """Whether two values were measured at equal resource; complete trials always compare."""
    if one.state is other.state is State.COMPLETE:
        return True
    return one.resource == other.resource


def _value(trial: Candidate) -> float:
    return float(trial.value or 0.0)
