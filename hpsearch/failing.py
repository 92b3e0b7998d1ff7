"""Where trials fail: the probability that a configuration survives, from those that did and those that did not.

Running out of memory, diverging and running out of time are facts about a region of the space. A Gaussian process on
the labels 0 and 1 with the overall share of failures as its mean (classification by regression, Rasmussen and Williams
2006, section 6.5) is cheap, and calibrated well enough to weigh a proposal.

The weight has no floor: where nothing but failures were seen the curve model knows nothing, expects much, and would
outweigh any fixed one. Each failure makes the model surer, and the weight smaller.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import log_ndtr

from hpsearch.curve_model import LENGTH, matern

Floats = NDArray[np.float64]

MOST = 300
"""Trials it learns from: the failed and the others get up to half each, the latest ones."""
NOISE = 0.1
"""Variance of a label, of which the kernel's is 1: the same configuration may fail once and not the next time."""
RARE = 0.01
"""A share of survivors below this tells nothing more: how sure it is does."""


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
        self._factor = cholesky(self._kernel(self._features) + NOISE * np.eye(len(kept)), lower=True)
        self._weights = cho_solve((self._factor, True), labels[kept] - self._mean)

    def log_survival(self, features: Floats) -> Floats:
        """(m,) Logarithms of the probability that each of (m, dimensions) configurations does not fail.

        The lower of two readings: the share that survives, and the probability that most survive there (a normal
        distribution's, as in equation 6.43 of the source).
        """
        cross = self._kernel(features)
        share = 1.0 - self._mean - cross @ self._weights
        explained = solve_triangular(self._factor, cross.T, lower=True)
        deviation = np.sqrt(np.maximum(1.0 - (explained**2).sum(0), 1e-4))
        return np.asarray(np.minimum(np.log(np.clip(share, RARE, 1.0)), log_ndtr((share - 0.5) / deviation)))

    def _kernel(self, features: Floats) -> Floats:
        a, b = features / self._length, self._features / self._length
        squares = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
        return matern(np.maximum(squares, 0.0))[0]
