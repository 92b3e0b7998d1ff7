"""Which trials are best, and which cannot be told from the best.

Trials stand by the best value they have shown, wherever they stand: one that is ahead after less training was ahead at
equal resource, too, and only gains by more. Of equal values the one that trained further comes first. A trial that was
repeated with other seeds (role `confirm`) stands by the mean of its repeats (`hpsearch.repeats`): the value that the
search saw was the luckiest of many, the repeats were not picked. Trials that keep the study's limits come before all
that do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from hpsearch.lifecycle import State
from hpsearch.repeats import Confirmed, Repeats, runs_of

EQUAL = 1e-12
"""Values nearer than this are the same."""


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
    def role(self) -> str: ...
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
    """Whether it cannot be told from the best one; of the best one, whether another cannot be told from it."""


def rank(trials: Iterable[Of], direction: str) -> list[Ranked[Of]]:
    """Put trials in order, best first.

    Args:
        trials: The trials to compare, with the repeats (role `confirm`) of any of them. Repeats, failed trials and
            trials without a finite value take no place of their own.
        direction: ``minimize`` or ``maximize``.
    """
    everyone = list(trials)
    sign = -1.0 if direction == "maximize" else 1.0
    places = [t for t in everyone if counts(t)]
    repeats = Repeats(runs_of(everyone), direction)
    confirmed = repeats.confirmed()
    score = _scores(places, confirmed, sign)

    def place(trial: Of) -> tuple[float | bool, ...]:
        own = sign * (trial.value or 0.0)
        return score(trial), trial.number not in confirmed, own, trial.state is not State.COMPLETE, -trial.resource

    places.sort(key=lambda t: (t.violation, *place(t), t.number))
    return _mark_ties(places, confirmed, repeats)


def counts(trial: Candidate) -> bool:
    """Whether a trial can take a place: it has a finite value, did not fail and is no repeat."""
    return (
        trial.role != "confirm"
        and trial.state is not State.FAILED
        and trial.value is not None
        and math.isfinite(trial.value)
    )


def _scores(places: list[Of], confirmed: dict[int, Confirmed], sign: float) -> Callable[[Of], float]:
    """What to order by, smallest first.

    A confirmed trial scores its mean. An unconfirmed one scores its own value, but not better than a confirmed trial
    that beat it in the search: repeating showed by how much the search flatters, and it flattered both.
    """
    repeated = [(sign * (t.value or 0.0), sign * confirmed[t.number].mean) for t in places if t.number in confirmed]

    def score(trial: Of) -> float:
        if trial.number in confirmed:
            return sign * confirmed[trial.number].mean
        own = sign * (trial.value or 0.0)
        return max([own, *(mean for searched, mean in repeated if searched <= own)])

    return score


def _mark_ties(places: list[Of], confirmed: dict[int, Confirmed], repeats: Repeats) -> list[Ranked[Of]]:
    """Mark the trials that cannot be told from the first."""
    tied = [_tied(trial, places[0], confirmed, repeats) for trial in places]
    if tied:
        tied[0] = any(tied[1:])
    return [
        Ranked(trial, float(trial.value or 0.0), confirmed.get(trial.number), tie)
        for trial, tie in zip(places, tied, strict=True)
    ]


def _tied(trial: Candidate, first: Candidate, confirmed: dict[int, Confirmed], repeats: Repeats) -> bool:
    """Two trials that were both repeated are told apart by their repeats; others by their values, or by the interval
    of the one that was repeated, where they were measured at equal resource."""
    if trial.violation != first.violation:
        return False
    if trial.number in confirmed and first.number in confirmed:
        return not repeats.behind(trial.number)
    low, high = _span(trial, confirmed.get(trial.number))
    least, most = _span(first, confirmed.get(first.number))
    return low <= most + EQUAL and high >= least - EQUAL and _comparable(trial, first)


def _span(trial: Candidate, confirmed: Confirmed | None) -> tuple[float, float]:
    """The values a trial may stand for: its interval, or the one value known."""
    if confirmed is None:
        return float(trial.value or 0.0), float(trial.value or 0.0)
    if confirmed.low is None or confirmed.high is None:
        return confirmed.mean, confirmed.mean
    return confirmed.low, confirmed.high


def _comparable(one: Candidate, other: Candidate) -> bool:
    """Whether two values were measured at equal resource; complete trials always compare."""
    return one.state is other.state is State.COMPLETE or one.resource == other.resource
