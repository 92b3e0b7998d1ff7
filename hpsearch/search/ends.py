"""The ends of trials, foretold from what they have shown at a rung and how that has told of ends.

A trial's rank at the rung and the rank of its end, as normal scores, are jointly normal. Their
correlation is not known: each of several has a prior probability, by how far the rung lies, and is
weighed by how likely it makes the order in which trials have ended. That order is of the chosen
only; its likelihood is exact all the same, as all that have arrived are known. Each signal, the
objective and a validation loss, is a hypothesis of its own.
"""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from hpsearch.domain.history import History
from hpsearch.search.curve_model.encoding import Floats
from hpsearch.search.ranking.trust import ranks
from hpsearch.search.rungs import Rungs

CORRELATIONS = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96])
"""Of ranks at a rung with those of ends: one of these holds."""
SHARES = (0.05, 0.11, 0.33, 0.67, 0.9)  # of the full budget, at which a rung may lie
USUAL = (0.35, 0.5, 0.82, 0.93, 0.97)
"""The correlation that is likeliest there, before any trial has ended."""
SPREAD, LEAST = 0.6, 0.02
"""The deviation of what is likely, by Fisher's transformation, and the least probability."""
GRID = np.linspace(-5.0, 5.0, 81)  # normal scores of ends
STEP = float(GRID[1] - GRID[0])
TINY = 1e-300  # the least probability, so that its logarithm is finite
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
        count = len(shown)
        rho = np.tile(CORRELATIONS, count)[:, None]
        of_hypotheses = np.repeat(shown, len(CORRELATIONS), axis=0)
        self._means = of_hypotheses * rho
        self._deviations = np.sqrt(1.0 - rho**2)
        prior = np.tile(_prior(share), count)
        log_weights = np.log(prior)
        behind = np.ones((len(rho), len(GRID)))
        for place in reversed(ended):
            joint = self._density(place) * behind
            integral = joint.sum(axis=1) * STEP
            total = np.maximum(integral, TINY)
            log_weights += np.log(total)
            joint /= total[:, None]
            beyond = np.cumsum(joint[:, ::-1], axis=1)[:, ::-1]
            behind = (beyond - 0.5 * joint) * STEP
        most = log_weights.max()
        weights = np.exp(log_weights - most)
        self._weights = weights / weights.sum()
        self._behind = behind  # (hypotheses, grid) The probability that the best end lies behind

    def _density(self, place: int) -> Floats:
        deviations = self._deviations
        z = (GRID - self._means[:, place, None]) / deviations
        density: Floats = np.exp(-0.5 * z**2) / (deviations * math.sqrt(2 * math.pi))
        return density

    def beats(self, place: int) -> float:
        """The probability that a trial would end better than all that have ended; 1 if none has."""
        joint = self._density(place) * self._behind
        ahead = joint.sum(axis=1) * STEP
        return float(self._weights @ ahead)


class _AtRung(NamedTuple):
    changes: tuple[int, int]  # how often scores have changed at the rung and at the end
    places: dict[int, int]  # by trial, its place among those at the rung
    ends: Ends


class ChancesByEnds:
    """The probabilities of one study's trials to end better than all that have ended.

    Args:
        rungs: Of one objective.
        total: The full trial budget, in its unit.
        losses: Names of a validation loss; the first one that is reported counts.
    """

    def __init__(self, rungs: Rungs, history: History, total: float, losses: Sequence[str]) -> None:
        self._rungs = rungs
        self._history = history
        self._total = total
        self._losses = losses
        self._known: dict[int, _AtRung] = {}

    def raised(self, chances: Mapping[int, float]) -> dict[int, float]:
        """Chances of trials, all of which pause at rungs, that are at least those by ends. A rung
        that no complete trial has a score at says nothing."""
        rungs = self._rungs
        complete = rungs.ended.scores
        found = dict(chances)
        for number, chance in chances.items():
            index = rungs.waits_at(number)
            scores = rungs.rungs[index].scores
            if scores.keys().isdisjoint(complete):
                continue
            known = self._at(index)
            place = known.places[number]
            found[number] = max(chance, known.ends.beats(place))
        return found

    def _at(self, index: int) -> _AtRung:
        rung, complete = self._rungs.rungs[index], self._rungs.ended
        changes = (rung.changes, complete.changes)
        known = self._known.get(index)
        if known is not None and known.changes == changes:
            return known
        numbers = sorted(number for number, score in rung.scores.items() if math.isfinite(score))
        places = {number: place for place, number in enumerate(numbers)}
        both = [number for number in numbers if number in complete.scores]
        both.sort(key=lambda number: complete.scores[number])
        share = rung.level / self._total
        signals = self._signals(index, numbers)
        ended = [places[number] for number in _some(both)]
        found = _AtRung(changes, places, Ends(share, signals, ended))
        self._known[index] = found
        return found

    def _signals(self, index: int, numbers: Sequence[int]) -> list[list[float]]:
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
    z = np.arctanh(CORRELATIONS)
    usual = float(np.interp(share, SHARES, USUAL))
    centre = math.atanh(usual)
    away = (z - centre) / SPREAD
    weights = np.exp(-0.5 * away**2)
    weights *= np.gradient(z)
    weights /= weights.sum()
    rest = 1.0 - LEAST * len(z)
    prior: Floats = rest * weights + LEAST
    return prior


def _normal_scores(values: Sequence[float]) -> Floats:
    places = np.array(ranks(values)) - 0.5
    scores: Floats = ndtri(places / len(values))
    return scores


def _some(ended: list[int]) -> list[int]:
    """The best one, and others evenly by rank."""
    step = max(1, math.ceil(len(ended) / MOST_ENDED))
    return ended[::step]
