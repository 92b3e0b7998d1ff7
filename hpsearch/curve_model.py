"""A Gaussian process over learning curves: what a configuration would measure, at any resource, and how sure that is.

A row of evidence is one value of one trial at one resource. The covariance of two rows says in what they may agree:

    level + s0 kt               all curves lie somewhere, and fall alike
    + kx (s1 + s2 kt)           alike configurations have alike levels, and alike shapes
    + [same trial] (s3 + s4 kt) one trial is like itself
    + noise

kx is a Matern-5/2 kernel over the encoded configuration with a length scale a dimension (automatic relevance
determination), kt a squared-exponential kernel over tau = ln resource / ln total. All 5 variances, the length scales
and the noise have log-normal priors; their logarithms are fitted by maximum a posteriori with analytic gradients.

Source: Swersky, Snoek and Adams, "Freeze-Thaw Bayesian Optimization" (2014, arXiv 1406.3896), for the idea of one
process over configurations and training time; Rasmussen and Williams, "Gaussian Processes for Machine Learning"
(2006), equations 2.25, 2.26 and 5.9, for the inference.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.special import ndtr

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

VARIANCES = np.array([0.5, 0.7, 0.3, 0.05, 0.05, 0.003])
"""Prior medians of s0..s4 and of the noise, for values of about unit spread."""
VARIANCE_SPREAD = 0.36
LENGTH = 0.5
"""Prior median of a length scale, times the root of the number of parameters."""
LENGTH_SPREAD = 0.3
"""Standard deviation of the logarithm of a length scale: tight, because the stretched values near the best would
otherwise make the whole space look rough (measured: docs/search.md)."""
TAU_LENGTH = 0.6
TAU_SPREAD = 0.15
LEVEL = 1.0
"""Prior variance of the level of all values: their mean over the evidence says little, where much of it is good."""
JITTER = 1e-8
ROOT5 = math.sqrt(5.0)


@dataclass(frozen=True)
class Rows:
    """Evidence: n values of trials at resources.

    Attributes:
        x: (n, d) encoded configurations, each coordinate from 0 to 1.
        tau: (n,) ln resource / ln total.
        trial: (n,) which trial each row is of.
        z: (n,) values, warped, with mean 0.
    """

    x: Floats
    tau: Floats
    trial: Ints
    z: Floats

    def __len__(self) -> int:
        return len(self.z)


class CurveModel:
    """The process with fixed hyperparameters; `fit` finds them, `condition` shows it the evidence.

    Args:
        dimensions: Of an encoded configuration.
        parameters: How many parameters those encode; the prior of a length scale grows with its root.
        theta: (dimensions + 7,) logarithms of the length scales, tau's length scale, s0..s4 and the noise; None for
            the medians of the priors.
    """

    def __init__(self, dimensions: int, parameters: int, theta: Floats | None = None) -> None:
        self.dimensions = dimensions
        self._center = np.log(
            np.concatenate([np.full(dimensions, LENGTH * math.sqrt(parameters)), [TAU_LENGTH], VARIANCES])
        )
        self._spread = np.array([LENGTH_SPREAD] * dimensions + [TAU_SPREAD] + [VARIANCE_SPREAD] * len(VARIANCES))
        self.theta = self._center.copy() if theta is None else np.asarray(theta, dtype=float)

    # --------------------------------------------------------------------------------------------- the fitting

    def fit(self, rows: Rows, steps: int = 12) -> None:
        """Move the hyperparameters to the maximum a posteriori for this evidence, in at most so many L-BFGS steps."""
        squares = (rows.x.T[:, :, None] - rows.x.T[:, None, :]) ** 2
        lags = (rows.tau[:, None] - rows.tau[None, :]) ** 2
        same = (rows.trial[:, None] == rows.trial[None, :]).astype(float)

        def cost(theta: Floats) -> tuple[float, Floats]:
            return self._cost(theta, rows.z, squares, lags, same)

        low, high = self._center - 4 * self._spread, self._center + 4 * self._spread
        found = minimize(
            cost, self.theta, jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True)),
            options={"maxiter": steps},
        )  # fmt: skip
        if np.all(np.isfinite(found.x)):
            self.theta = found.x

    def _cost(self, theta: Floats, z: Floats, squares: Floats, lags: Floats, same: Floats) -> tuple[float, Floats]:
        """The negative log posterior of hyperparameters, and its gradient.

        Args:
            theta: The hyperparameters.
            z: (n,) values.
            squares: (d, n, n) squared differences of coordinates.
            lags: (n, n) squared differences of tau.
            same: (n, n) 1 where two rows are of one trial.
        """
        n, d = len(z), self.dimensions
        inverse_squares, tau_length, s, noise = self._unpacked(theta)
        shape, slope = matern(np.tensordot(inverse_squares, squares, 1))
        in_time = np.exp(-0.5 * lags / tau_length**2)
        levels = s[1] + s[2] * in_time
        parts = [s[0] * in_time, s[1] * shape, s[2] * shape * in_time, s[3] * same, s[4] * same * in_time]
        covariance = LEVEL + parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
        covariance[np.diag_indices(n)] += noise + JITTER
        try:
            factor = cholesky(covariance, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros_like(theta)
        weights = cho_solve((factor, True), z, check_finite=False)
        away = (theta - self._center) / self._spread
        value = 0.5 * z @ weights + np.log(np.diag(factor)).sum() + 0.5 * away @ away

        inverse, _ = dpotri(factor, lower=1)
        pull = np.tril(inverse) + np.tril(inverse, -1).T - np.outer(weights, weights)  # twice the derivative by K
        gradient = np.empty_like(theta)
        gradient[:d] = np.tensordot(squares, pull * levels * slope, 2) * inverse_squares
        gradient[d] = (pull * (parts[0] + parts[2] + parts[4]) * lags).sum() / tau_length**2
        gradient[d + 1 : d + 6] = [(pull * part).sum() for part in parts]
        gradient[d + 6] = noise * np.trace(pull)
        return float(value), 0.5 * gradient + away / self._spread

    def _unpacked(self, theta: Floats) -> tuple[Floats, float, Floats, float]:
        """1 / length scale squared of each dimension; tau's length scale; s0..s4; the noise."""
        d = self.dimensions
        values = np.exp(theta[d:])
        return np.exp(-2 * theta[:d]), float(values[0]), values[1:6], float(values[6])

    # ------------------------------------------------------------------------------------------- the inference

    def condition(self, rows: Rows) -> Posterior:
        """The process given the evidence."""
        return Posterior(self, rows)

    def covariance(self, x: Floats, tau: Floats, trial: Ints, x2: Floats, tau2: Floats, trial2: Ints) -> Floats:
        """(n, m) covariances of the noiseless values of n rows with m others."""
        inverse_squares, tau_length, s, _ = self._unpacked(self.theta)
        scale = np.sqrt(inverse_squares)
        a, b = x * scale, x2 * scale
        distances = (a * a).sum(1)[:, None] + (b * b).sum(1)[None, :] - 2 * a @ b.T
        shape, _ = matern(np.maximum(distances, 0.0))
        in_time = np.exp(-0.5 * (tau[:, None] - tau2[None, :]) ** 2 / tau_length**2)
        same = trial[:, None] == trial2[None, :]
        return np.asarray(LEVEL + s[0] * in_time + shape * (s[1] + s[2] * in_time) + same * (s[3] + s[4] * in_time))

    @property
    def variance(self) -> float:
        """The prior variance of a noiseless value."""
        return LEVEL + float(self._unpacked(self.theta)[2].sum())

    @property
    def noise(self) -> float:
        """The variance of a value's noise."""
        return self._unpacked(self.theta)[3]


class Posterior:
    """A model that has seen evidence."""

    def __init__(self, model: CurveModel, rows: Rows) -> None:
        self._model, self._rows = model, rows
        covariance = model.covariance(rows.x, rows.tau, rows.trial, rows.x, rows.tau, rows.trial)
        covariance[np.diag_indices(len(rows))] += model.noise + JITTER
        self._factor = cholesky(covariance, lower=True, check_finite=False)
        self._weights = cho_solve((self._factor, True), rows.z, check_finite=False)

    def predict(self, x: Floats, tau: Floats, trial: Ints | None = None) -> tuple[Floats, Floats]:
        """The mean and standard deviation, (m,) each, of what m trials measure, noise left out.

        Args:
            x: (m, d) encoded configurations.
            tau: (m,) where on their curves.
            trial: (m,) trials of the evidence that these are; None for new ones.
        """
        rows = self._rows
        trials = np.full(len(x), -1) if trial is None else trial
        cross = self._model.covariance(rows.x, rows.tau, rows.trial, x, tau, trials)
        mean = cross.T @ self._weights
        explained = solve_triangular(self._factor, cross, lower=True, check_finite=False)
        variance = self._model.variance - (explained**2).sum(0)
        return mean, np.sqrt(np.maximum(variance, 1e-10))


def probability_below(mean: Floats, deviation: Floats, target: float) -> Floats:
    """The probability that each normal value is below a target (Kushner 1964: probability of improvement)."""
    return np.asarray(ndtr((target - mean) / deviation))


def matern(squared_distances: Floats) -> tuple[Floats, Floats]:
    """Matern-5/2 at squared scaled distances r**2, and 2 r**2 times its derivative by r**2, over -r**2."""
    r = np.sqrt(squared_distances)
    fall = np.exp(-ROOT5 * r)
    return (1 + ROOT5 * r + 5 / 3 * squared_distances) * fall, 5 / 3 * (1 + ROOT5 * r) * fall
