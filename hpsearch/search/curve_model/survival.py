"""The probability that a configuration survives, learnt from trials that have failed.

A Gaussian process on the labels 0 and 1, with the overall share of failures as its mean
(classification by regression, Rasmussen and Williams 2006, section 6.5), is cheap, and calibrated
well enough to weigh a proposal.
"""

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from hpsearch.search.curve_model.encoding import Floats
from hpsearch.search.curve_model.model import LENGTH, matern

MOST = 300  # the most trials that it learns from: the latest, half of them failed ones
NOISE = 0.1
"""Variance of a label, where the kernel's is 1: a configuration may fail once and then work."""
LEAST = 0.01  # the least probability of survival


def share_of(failed: int, all_tried: int) -> float:
    """The expected share of trials that fail, when so many of them have; never 0 or 1."""
    return (failed + 0.5) / (all_tried + 5.0)


class SurvivalModel:
    """Learned from trials that failed and trials that worked.

    Args:
        failed: (f, dimensions) Encoded configurations that failed, the latest `MOST` // 2 at most.
        worked: (w, dimensions) Those that worked, as many at most.
        share: Of all trials, the share that failed.
        parameters: The number of parameters that the features encode.
    """

    def __init__(self, failed: Floats, worked: Floats, share: float, parameters: int) -> None:
        self._length = LENGTH * math.sqrt(parameters)
        self._features = np.concatenate([worked, failed])
        self._mean = share
        labels = np.repeat([0.0, 1.0], [len(worked), len(failed)])
        noise = NOISE * np.eye(len(labels))
        covariance = self._kernel(self._features) + noise
        factor = cho_factor(covariance)
        self._weights = cho_solve(factor, labels - self._mean)

    def survival(self, features: Floats) -> Floats:
        """(m,) The probability that each of (m, dimensions) configurations does not fail."""
        survival = 1.0 - self._mean - self._kernel(features) @ self._weights
        return np.asarray(np.clip(survival, LEAST, 1.0))

    def _kernel(self, features: Floats) -> Floats:
        length = self._length
        shape, _ = matern(cdist(features / length, self._features / length, "sqeuclidean"))
        return shape
