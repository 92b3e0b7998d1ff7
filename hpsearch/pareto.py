"""Which trials of a study with several objectives nothing beats.

There is no best trial then but a front: trials that are better than each other trial in one objective or another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from hpsearch.selection import Of, Ranked, counts


def pareto_front(trials: Iterable[Of], directions: Sequence[str]) -> list[Ranked[Of]]:
    """The trials that no other one beats in all objectives, ordered by the first one.

    A trial that keeps the study's limits beats one that does not, and of those the one that oversteps them by less
    beats the others (Deb 2000, "An efficient constraint handling method for genetic algorithms").

    Args:
        trials: The trials to compare; failed ones and those without a finite value of each objective are left out.
        directions: ``minimize`` or ``maximize`` for each objective.
    """
    signs = [-1.0 if direction == "maximize" else 1.0 for direction in directions]
    places: list[tuple[tuple[float, list[float], int], Of]] = []
    for trial in trials:
        if counts(trial) and trial.values is not None and all(map(math.isfinite, trial.values)):
            losses = [sign * value for sign, value in zip(signs, trial.values, strict=True)]
            places.append(((trial.violation, losses, trial.number), trial))
    places.sort(key=lambda place: place[0])  # whoever beats a trial stands before it
    front: list[tuple[list[float], Of]] = []
    for (violation, losses, _), trial in places:
        if violation == places[0][0][0] and not any(dominates(better, losses) for better, _ in front):
            front.append((losses, trial))
    return [Ranked(trial, float(trial.value or 0.0), None, len(front) > 1) for _, trial in front]


def dominates(better: Sequence[float], worse: Sequence[float]) -> bool:
    """Whether one is as good as the other in everything, and better in something; both are minimised."""
    return better != worse and all(a <= b for a, b in zip(better, worse, strict=True))
