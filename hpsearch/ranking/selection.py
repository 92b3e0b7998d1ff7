"""Which trials are best, and which cannot be told from the best.

Trials are ranked by the best value they have shown, however far they have trained: one that is
ahead after less training was also ahead at equal resource, and further training can only improve
it. Among equal values, a complete trial comes first, then the one that trained further, then the
older one. All code that orders trials by their values follows this rule. A trial that was repeated
with other seeds (role `confirm`) is ranked by the mean of its repeats (`hpsearch.ranking.repeats`):
the value that the search saw was the luckiest of many, while the repeats were not selected. Trials
that keep the study's limits come before all that do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.ranking.repeats import Confirmed, Repeats, runs_of

EQUAL = 1e-12
"""Values closer than this count as equal."""


class Candidate(Protocol):
    """What ranking needs to know of a trial: a `records.Trial`, or a row that has these columns."""

    @property
    def number(self) -> int: ...
    @property
    def state(self) -> State: ...
    @property
    def value(self) -> float | None: ...
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
    """The trial's own value, from the search."""
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

    def place(trial: Of) -> tuple[float | bool, ...]:
        return (
            trial.violation,
            score(trial),
            trial.number not in confirmed,
            sign * _value(trial),
            trial.state is not State.COMPLETE,
            -trial.resource,
            trial.number,
        )

    places.sort(key=place)
    return _mark_ties(places, confirmed, repeats)


def counts(trial: Candidate) -> bool:
    """Whether a trial can be ranked: it has a finite value, did not fail and is not a repeat."""
    if trial.role is Role.CONFIRM or trial.state is State.FAILED:
        return False
    return trial.value is not None and math.isfinite(trial.value)


def _scores(
    places: list[Of], confirmed: dict[int, Confirmed], sign: float
) -> Callable[[Of], float]:
    """What to order by, smallest first.

    A confirmed trial scores its mean. An unconfirmed one scores its own value, but not better than
    a confirmed trial that beat it in the search: repeating showed by how much the search flatters,
    and it flattered both.
    """
    searched_and_mean: list[tuple[float, float]] = []
    for trial in places:
        known = confirmed.get(trial.number)
        if known is not None:
            searched = sign * _value(trial)
            searched_and_mean.append((searched, sign * known.mean))

    def score(trial: Of) -> float:
        known = confirmed.get(trial.number)
        if known is not None:
            return sign * known.mean
        own = sign * _value(trial)
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

    Two that were both repeated are told apart by their repeats; others by their values, or by the
    interval of the one that was repeated, where they were measured at equal resource.
    """
    if trial.violation != first.violation:
        return False
    of_trial = confirmed.get(trial.number)
    of_first = confirmed.get(first.number)
    if of_trial is not None and of_first is not None:
        return not repeats.behind(trial.number)
    low, high = _span(trial, of_trial)
    least, most = _span(first, of_first)
    overlap = low <= most + EQUAL and high >= least - EQUAL
    return overlap and compares(trial, first)


def range_of_ties(first: Ranked[Of]) -> tuple[float, float]:
    """Between which values a trial that was not repeated cannot be told from the first one.

    Only a trial that `compares` to the first one can be tied with it.
    """
    low, high = _span(first.trial, first.confirmed)
    return low - EQUAL, high + EQUAL


def _span(trial: Candidate, confirmed: Confirmed | None) -> tuple[float, float]:
    """The values a trial may stand for: its interval, or the one value known."""
    if confirmed is None:
        value = _value(trial)
        return value, value
    low, high = confirmed.low, confirmed.high
    if low is None or high is None:
        return confirmed.mean, confirmed.mean
    return low, high


def compares(one: Candidate, other: Candidate) -> bool:
    """Whether two values were measured at equal resource; complete trials always compare."""
    if one.state is other.state is State.COMPLETE:
        return True
    return one.resource == other.resource


def _value(trial: Candidate) -> float:
    return float(trial.value or 0.0)
