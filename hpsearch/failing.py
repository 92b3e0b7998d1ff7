"""Where trials fail: the probability that a configuration survives, from those that did and those that did not.

Running out of memory, diverging and running out of time are facts about a region of the space. A Gaussian process on
the labels 0 and 1 with the overall share of failures as its mean (classification by regression, Rasmussen and Williams
2006, section 6.5) is cheap, and calibrated well enough to weigh a proposal.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from hpsearch.curve_model import LENGTH, matern

Floats = NDArray[np.float64]

MOST = 300
"""Trials it learns from: the failed and the others get up to half each, the latest ones."""
NOISE = 0.1
"""Variance of a label, of which the kernel's is 1: the same configuration may fail once and not the next time."""
LEAST = 0.01
"""No region is written off entirely."""


class FailureModel:
    """Learned from trials that failed and trials that worked.

    Args:
        features: (n, dimensions) encoded configurations.
        labels: (n,) 1 for those that failed.
        parameters: How many parameters the features encode.
    """

    def __init__(self, features: Floats, labels: Floats, parameters: int) -> None:
        kept = np.concatenate([np.flatnonzero(labels == label)[-MOST // 2 :] for label in (0.0, 1.0)])
        self._length = LENGTH * math.sqrt(parameters)
        self._features = features[kept]
        self._mean = (labels.sum() + 0.5) / (len(labels) + 5.0)
        factor = cho_factor(self._kernel(self._features) + NOISE * np.eye(len(kept)))
        self._weights = cho_solve(factor, labels[kept] - self._mean)

    def survival(self, features: Floats) -> Floats:
        """(m,) The probability that each of (m, dimensions) configurations does not fail."""
        return np.asarray(np.clip(1.0 - self._mean - self._kernel(features) @ self._weights, LEAST, 1.0))

    def _kernel(self, features: Floats) -> Floats:
        a, b = features / self._length, self._features / self._length
        squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
        return matern(np.maximum(squares, 0.0))[0]
