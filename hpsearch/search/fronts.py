"""Rungs of a study with several objectives, at which trials are in order by all of them.

A trial that keeps the study's limits comes before one that does not, and of those the one that
exceeds them by less comes first. Trials that nothing beats are the first front, those that nothing
beats but the first front the second one, and so on. Within a front the trials that lie far from
their neighbours come first.

Source: Deb et al., "A fast and elitist multiobjective genetic algorithm: NSGA-II" (2002). A new
trial enters the fronts one by one: Li et al., "Efficient non-domination level update method for
steady-state evolutionary multiobjective optimization" (2017).
"""

import math
from collections import Counter

from hpsearch.search.ranking.pareto import crowding, dominates
from hpsearch.search.rungs import LEAST_SAME, SAME, Rung
from hpsearch.search.worth import ParetoPoint


class FrontRung(Rung):
    """The standing by several objectives. The score of a trial is its front, from 0."""

    def __init__(self, level: float) -> None:
        super().__init__(level)
        self._points: dict[int, ParetoPoint] = {}
        self._fronts: list[list[int]] = []
        self._ranks: dict[int, int] = {}  # by trial, its place; empty after a change

    def __len__(self) -> int:
        return len(self.scores)

    def record(self, number: int, score: ParetoPoint | None) -> None:
        """Enter a trial's point, in place of an earlier one; None for one without finite values."""
        known = dict(self._points)
        self._ranks = {}
        self.changes += 1
        if number in known:  # an attempt redoes a lost one
            self.scores = dict.fromkeys(self.scores, math.inf)
            self._points, self._fronts = {}, []
            for other in known.keys() - {number}:
                self._enter(other, known[other])
        self._enter_number(number)
        self.scores[number] = math.inf
        if score is not None:
            self._enter(number, score)

    def rank(self, number: int) -> int:
        """The trial's place by front and by crowding distance, from 0 for the best."""
        if not self._ranks:
            self._ranks = {each: place for place, each in enumerate(self._by_fronts())}
        return self._ranks[number]

    @property
    def is_tied(self) -> bool:
        """True if too many trials show the same finite values here to choose by them."""
        counts = Counter(self._points.values())
        same = max(counts.values(), default=0)
        return same >= max(LEAST_SAME, SAME * len(self._points))

    @property
    def fraction_ahead(self) -> float:
        """All trials: one that is better in some objectives is not ahead of a tie."""
        return 1.0

    def why_first(self, number: int) -> str:
        """The reason why a trial goes on before others, in words."""
        return f"it is in {self._front_of(number)}, and the first there that waits"

    def why_later(self, number: int) -> str:
        """The reason why others go on before a trial, in words."""
        return f"it is in {self._front_of(number)}, and others come first"

    def _front_of(self, number: int) -> str:
        return f"front {self.scores[number] + 1:g} of {len(self._fronts)}"

    def _by_fronts(self) -> list[int]:
        order: list[int] = []
        for front in self._fronts:
            losses = {number: self._points[number].losses for number in front}
            apart = crowding(losses)
            order += sorted(front, key=lambda number: (-apart[number], number))
        without_values = self.scores.keys() - self._points.keys()
        return order + sorted(without_values)

    def _enter(self, number: int, point: ParetoPoint) -> None:
        """Put a trial into the first front of which no trial beats it; those that it beats there
        move to the next front, and so on."""
        self._points[number] = point
        index = 0
        while index < len(self._fronts) and self._beats_any(self._fronts[index], number):
            index += 1
        moving = [number]
        while moving:
            if index == len(self._fronts):
                self._fronts.append([])
            front = self._fronts[index]
            beaten = [each for each in front if self._beats_any(moving, each)]
            self._fronts[index] = [each for each in front if each not in beaten] + moving
            self.scores.update(dict.fromkeys(moving, float(index)))
            moving = beaten
            index += 1

    def _beats_any(self, numbers: list[int], other: int) -> bool:
        point = self._points[other]
        return any(_beats(self._points[number], point) for number in numbers)


def _beats(better: ParetoPoint, worse: ParetoPoint) -> bool:
    if better.violation != worse.violation:
        return better.violation < worse.violation
    return dominates(better.losses, worse.losses)
