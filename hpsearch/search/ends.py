"""The ends of trials, foretold from what they have shown at a rung and how that has told of ends.

A trial's rank at the rung and the rank of its end, as normal scores, are jointly normal. Their
correlation is not known: each of several has a prior probability, by how far the rung lies, and is
weighed by how likely it makes the order in which trials have ended. That order is of the chosen
only; its likelihood is exact all the same, as all that have arrived are known. Each signal, the
objective and a validation loss, is a hypothesis of its own.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import ndtri

from hpsearch.domain.history import History
from hpsearch.search.curve_model.encoding import Floats
from hpsearch.search.ranking.trust import ranks
from hpsearch.search.rungs import Rungs

CORRELATIONS = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96])
"""Of ranks at a rung with those of ends: one of these holds."""
SHARES = (0.05, 0.11, 0.33, 0.67, 0.9)
"""Of the full budget, at which a rung may lie."""
USUAL = (0.35, 0.5, 0.82, 0.93, 0.97)
"""The correlation that is likeliest there, before any trial has ended."""
SPREAD, LEAST = 0.6, 0.02
"""The standard deviation of what is likely, after Fisher's transformation, and the least
probability of each."""
GRID = np.linspace(-5.0, 5.0, 81)
"""Normal scores of ends."""
STEP = float(GRID[1] - GRID[0])
TINY = 1e-300
"""The least probability, so that its logarithm is finite."""
MOST_ENDED = 64
"""The most complete trials that a rung is judged by: the best one, and others evenly by rank."""


class Ends:
    """The chances to end best, as one rung foretells them.

    Args:
        share: Of the full budget, at which the rung lies.
        signals: (signals, trials) values that were shown there, to be minimised.
        ended: The places of those that have ended, the best end first.
    """

    def __init__(
        self, share: float, signals: Sequence[Sequence[float]], ended: Sequence[int]
    ) -> None:
        shown = np.array([_normal_scores(values) for values in signals])
        rho = np.tile(CORRELATIONS, len(shown))[:, None]
        self._means = np.repeat(shown, len(CORRELATIONS), axis=0) * rho
        self._deviations = np.sqrt(1.0 - rho**2)
        log_weights = np.log(np.tile(_prior(share), len(shown)))
        behind = np.ones((len(rho), len(GRID)))
        for place in reversed(ended):
            joint = self._density(place) * behind
            total = np.maximum(joint.sum(axis=1) * STEP, TINY)
            log_weights += np.log(total)
            joint /= total[:, None]
            behind = (np.cumsum(joint[:, ::-1], axis=1)[:, ::-1] - 0.5 * joint) * STEP
        weights = np.exp(log_weights - log_weights.max())
        self._weights = weights / weights.sum()
        self._behind = behind
        """(hypotheses, grid) The probability that the best end lies behind."""

    def _density(self, place: int) -> Floats:
        z = (GRID - self._means[:, place, None]) / self._deviations
        return np.asarray(np.exp(-0.5 * z**2) / (self._deviations * math.sqrt(2 * math.pi)))

    def beats(self, place: int) -> float:
        """The probability that a trial would end better than all that have ended; 1 if none has."""
        ahead = (self._density(place) * self._behind).sum(axis=1) * STEP
        return float(self._weights @ ahead)


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
        """By rung: how often scores have changed there and at the end, the place of each trial at
        the rung, and what it foretells."""

    def raised(self, chances: Mapping[int, float]) -> dict[int, float]:
        """Chances of trials, all of which pause at rungs, that are at least those by ends. A rung
        that no complete trial has a score at tells nothing."""
        found = dict(chances)
        for number, chance in chances.items():
            index = self._rungs.waits_at(number)
            if not self._rungs.rungs[index].scores.keys().isdisjoint(self._rungs.ended.scores):
                places, ends = self._at(index)
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


def _prior(share: float) -> Floats:
    """(correlations,) The probability of each before any trial has ended."""
    z = np.arctanh(CORRELATIONS)
    centre = math.atanh(float(np.interp(share, SHARES, USUAL)))
    weights = np.exp(-0.5 * ((z - centre) / SPREAD) ** 2) * np.gradient(z)
    weights /= weights.sum()
    return np.asarray((1.0 - LEAST * len(z)) * weights + LEAST)


def _normal_scores(values: Sequence[float]) -> Floats:
    return np.asarray(ndtri((np.array(ranks(values)) - 0.5) / len(values)))


def _some(ended: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """The best one, and others evenly by rank."""
    step = max(1, math.ceil(len(ended) / MOST_ENDED))
    return ended[::step]
