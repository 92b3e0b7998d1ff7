"""The Pareto front of a study with several objectives: the trials that no other one beats."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from hpsearch.domain.records import sign_of
from hpsearch.search.ranking.selection import Candidate, Of, Ranked, counts


def pareto_front(trials: Iterable[Of], directions: Sequence[str]) -> list[Ranked[Of]]:
    """The trials that no other one beats in all objectives, ordered by the first one.

    A trial that keeps the study's limits beats one that does not, and of those the one that
    exceeds them by less beats the others (Deb 2000, "An efficient constraint handling method for
    genetic algorithms"). Failed trials are left out, and those without a finite value of each
    objective. The direction of each objective is ``minimize`` or ``maximize``.
    """
    front = _first_front(_places(trials, directions))
    tied = len(front) > 1
    return [Ranked(each.trial, float(each.trial.value or 0.0), None, tied) for each in front]


def foremost(trials: Iterable[Of], directions: Sequence[str], most: int) -> list[Of]:
    """At most `most` trials, front after front: the Pareto front, then the front of the remaining
    trials, and so on; last those that cannot be in a front.

    Of a front that is too large, the trials that lie far from their neighbours come first, so that
    its whole breadth is covered (Deb et al. 2002, "A fast and elitist multiobjective genetic
    algorithm: NSGA-II"). Trials that keep the limits come before all that do not, which are ordered
    by their excess over the limits.
    """
    everyone = list(trials)
    rest = _places(everyone, directions)
    chosen: list[Of] = []
    numbers: set[int] = set()
    while rest and len(chosen) < most:
        front = _first_front(rest)
        apart = crowding({place.number: place.losses for place in front})
        front.sort(key=lambda place: (-apart[place.number], place.number))
        chosen += [place.trial for place in front]
        numbers |= {place.number for place in front}
        rest = [place for place in rest if place.number not in numbers]
    chosen += [trial for trial in everyone if trial.number not in numbers]
    return chosen[:most]


@dataclass(frozen=True)
class _Place(Generic[Of]):
    violation: float
    losses: list[float]
    trial: Of

    @property
    def number(self) -> int:
        """The trial's."""
        return self.trial.number


def _places(trials: Iterable[Of], directions: Sequence[str]) -> list[_Place[Of]]:
    signs = [sign_of(direction) for direction in directions]
    places = []
    for trial in trials:
        losses = _losses(trial, signs)
        if losses is not None:
            places.append(_Place(trial.violation, losses, trial))
    places.sort(key=lambda place: (place.violation, place.losses, place.number))
    return places


def _losses(trial: Candidate, signs: Sequence[float]) -> list[float] | None:
    values = trial.values
    if values is None or not counts(trial):
        return None
    if not all(map(math.isfinite, values)):
        return None
    return [sign * value for sign, value in zip(signs, values, strict=True)]


def _first_front(places: Sequence[_Place[Of]]) -> list[_Place[Of]]:
    front: list[_Place[Of]] = []
    for place in places:
        if place.violation != places[0].violation:
            break
        if not any(dominates(better.losses, place.losses) for better in front):
            front.append(place)
    return front


def crowding(front: Mapping[int, Sequence[float]]) -> dict[int, float]:
    """The crowding distances of the trials of one front, by number: the distance between their
    neighbours in each objective, as a share of its span, summed; infinite at the ends.

    Source: Deb et al. 2002, "A fast and elitist multiobjective genetic algorithm: NSGA-II".
    """
    apart = dict.fromkeys(front, 0.0)
    for column in zip(*front.values(), strict=True):
        _add_gaps(apart, dict(zip(front, column, strict=True)))
    return apart


def _add_gaps(apart: dict[int, float], losses: Mapping[int, float]) -> None:
    numbers = sorted(losses, key=lambda number: (losses[number], number))
    losses = {number: loss / 4 for number, loss in losses.items()}  # so that no width overflows
    span = losses[numbers[-1]] - losses[numbers[0]]
    if span <= 0:
        return
    apart[numbers[0]] = math.inf
    apart[numbers[-1]] = math.inf
    for before, number, after in zip(numbers, numbers[1:], numbers[2:], strict=False):
        apart[number] += (losses[after] - losses[before]) / span


def dominates(better: Sequence[float], worse: Sequence[float]) -> bool:
    """True if values to be minimised are nowhere worse than others, and better in one place."""
    return better != worse and all(a <= b for a, b in zip(better, worse, strict=True))
