"""The ends of trials, foretold from what they have shown at a rung and how that has told of ends.

A trial's rank at the rung and the rank of its end, as normal scores, are jointly normal. Their
correlation is not known: each of several has a prior probability, by how far the rung lies, and is
weighed by how likely it makes the order in which trials have ended. That order is of the chosen
only; its likelihood is exact all the same, as all that have arrived are known. Each signal, such as
the objective and a validation loss, is a hypothesis of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

Floats = NDArray[np.float64]

CORRELATIONS = np.array([0.0, 0.15, 0.3, 0.45, 0.6, 0.7, 0.8, 0.87, 0.92, 0.96])
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


class Ends:
    """What is foretold at one rung.

    Args:
        share: Of the full budget, at which the rung lies.
        signals: (signals, trials) values that were shown there, to be minimised.
        ended: The places of those that have ended, the best end first.
    """

    def __init__(
        self, share: float, signals: Sequence[Sequence[float]], ended: Sequence[int]
    ) -> None:
        shown = np.array([_normal_scores(values) for values in signals])
        self._rho = np.tile(CORRELATIONS, len(shown))
        self._means = np.repeat(shown, len(CORRELATIONS), axis=0) * self._rho[:, None]
        self._deviations = np.sqrt(1.0 - self._rho**2)[:, None]
        log_weights = np.log(np.tile(_prior(share), len(shown)))
        behind = np.ones((len(self._rho), len(GRID)))
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


def _prior(share: float) -> Floats:
    z = np.arctanh(CORRELATIONS)
    centre = math.atanh(float(np.interp(share, SHARES, USUAL)))
    weights = np.exp(-0.5 * ((z - centre) / SPREAD) ** 2) * np.gradient(z)
    weights /= weights.sum()
    return np.asarray((1.0 - LEAST * len(z)) * weights + LEAST)


def _normal_scores(values: Sequence[float]) -> Floats:
    return np.asarray(ndtri((rankdata(values) - 0.5) / len(values)))
