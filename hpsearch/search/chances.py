"""The chances of paused trials to turn out better than all that have been trained in full.

They follow from what trials have shown at the rung where one pauses, and from how that has told of
ends so far (`ends`): the objective there, and the validation loss.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hpsearch.domain.history import History
from hpsearch.search.ends import Ends
from hpsearch.search.rungs import Rungs

MOST_ENDED = 64
"""The most complete trials that a rung is judged by: the best one, and others evenly by rank."""


class ChancesByEnds:
    """The probabilities of one study's trials to end better than all that have ended.

    Args:
        rungs: Of one objective.
        total: The full trial budget, in its unit.
        losses: Names of a validation loss; the first one that is reported counts.
    """

    def __init__(
        self,
        rungs: Rungs,
        history: History,
        total: float,
        losses: Sequence[str],
    ) -> None:
        self._rungs = rungs
        self._history = history
        self._total = total
        self._losses = losses
        self._known: dict[int, tuple[tuple[int, int], dict[int, int], Ends]] = {}
        """By rung: the history's clock, the place of each trial there, and its ends."""

    def raised(self, chances: Mapping[int, float]) -> dict[int, float]:
        """Chances of trials, all of which pause at rungs, that are at least those by ends."""
        if not self._rungs.ended.scores:
            return dict(chances)
        found = {}
        for number, chance in chances.items():
            places, ends = self._at(self._rungs.waits_at(number))
            found[number] = max(chance, ends.beats(places[number]))
        return found

    def _at(self, index: int) -> tuple[dict[int, int], Ends]:
        rung, complete = self._rungs.rungs[index], self._rungs.ended
        state = (rung.changes, complete.changes)
        known = self._known.get(index)
        if known is None or known[0] != state:
            numbers = [n for n, score in sorted(rung.scores.items()) if math.isfinite(score)]
            places = {number: place for place, number in enumerate(numbers)}
            scores = complete.scores
            ended = sorted((scores[n], place) for n, place in places.items() if n in scores)
            share = rung.level / self._total
            ends = Ends(share, self._signals(index, numbers), [place for _, place in _some(ended)])
            known = self._known[index] = (state, places, ends)
        return known[1:]

    def _signals(self, index: int, numbers: Sequence[int]) -> list[list[float]]:
        """The scores of trials at a rung, and their losses there if all have one."""
        scores = self._rungs.rungs[index].scores
        losses = [self._loss(index, number) for number in numbers]
        signals = [[scores[number] for number in numbers]]
        return [*signals, losses] if all(map(math.isfinite, losses)) else signals

    def _loss(self, index: int, number: int) -> float:
        resource = self._rungs.measured_at(index, number)
        report = self._history.trials[number].reports.get(resource)
        metrics = {} if report is None else report.metrics
        return next((metrics[name] for name in self._losses if name in metrics), math.nan)


def _some(ended: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """The best one, and others evenly by rank."""
    step = max(1, math.ceil(len(ended) / MOST_ENDED))
    return ended[::step]
