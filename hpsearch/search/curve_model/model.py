"""A Gaussian process over learning curves, which foretells values and their uncertainty.

A row of evidence is one value of one trial at one resource. The covariance of two rows says in what
they may agree:

    level + s0 kt               all curves lie somewhere, and fall alike
    + kx (s1 + s2 kt)           similar configurations have similar levels, and similar shapes
    + [same trial] (s3 + s4 kt) one trial is like itself
    + noise

kx is a Matern-5/2 kernel over the encoded configuration with a length scale for each dimension
(automatic relevance determination), kt a squared-exponential kernel over tau, the logarithm of the
share of the full budget (`curves.tau_of`). All 5 variances, the length scales and the noise have
log-normal priors; their logarithms are fitted by maximum a posteriori with analytic gradients.

Rows of earlier studies agree with those of this study in one respect: the third line is multiplied
by the study's *agreement* rho with this one, from 0 to 1, and by rho_k rho_l between two of them.
All else is their own. That is a covariance: study k is rho_k times what all have in common, plus
the root of 1 - rho_k**2 times something of its own.

Source: Swersky, Snoek and Adams, "Freeze-Thaw Bayesian Optimization" (2014, arXiv 1406.3896), for
the idea of one process over configurations and training time; Rasmussen and Williams, "Gaussian
Processes for Machine Learning" (2006), equations 2.25, 2.26 and 5.9, for the inference; Bonilla,
Chai and Williams, "Multi-task Gaussian Process Prediction" (NeurIPS 2007), for covariances between
studies, here of rank one.
"""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.linalg.lapack import dpotri
from scipy.optimize import minimize
from scipy.spatial.distance import cdist

from hpsearch.search.curve_model.encoding import Floats, Ints

VARIANCES = np.array([0.5, 0.7, 0.3, 0.05, 0.05, 0.003])
"""Prior medians of s0..s4 and of the noise, for values of about unit spread."""
VARIANCE_SPREAD = 0.36
LENGTH = 0.5  # prior median of a length scale, times the root of the number of parameters
LENGTH_SPREAD = 0.3
"""Standard deviation of the logarithm of a length scale. It is small, because the stretched values
near the best would otherwise make the whole space look rough (docs/measured/search.md, "looser
priors")."""
TAU_LENGTH = 0.6
TAU_SPREAD = 0.15
LEVEL = 1.0
"""Prior variance of the level of all values: their mean says little where much of them is good."""
JITTER = 1e-8
IMPOSSIBLE = 1e10  # the cost of hyperparameters whose covariance cannot be factored
ROOT5 = math.sqrt(5.0)


@dataclass(frozen=True)
class Points:
    """The places at which n values of trials were, or would be, measured."""

    x: Floats  # (n, d) Encoded configurations, each coordinate from 0 to 1
    tau: Floats  # (n,) The logarithm of the share of the full budget, from 0 to 1
    trial: Ints  # (n,) The trials; -1 for new ones
    study: Ints | None = None
    """(n,) The studies: 0 is this one, and earlier ones follow; None if all are this one."""

    def __len__(self) -> int:
        return len(self.tau)


@dataclass(frozen=True)
class Evidence:
    """Values of trials at resources: n places on learning curves, and (n,) warped values there."""

    points: Points
    z: Floats

    def __len__(self) -> int:
        return len(self.z)


@dataclass(frozen=True)
class Distances:
    """The distances between n rows of evidence, which do not depend on the hyperparameters."""

    squares: Floats  # (d, n, n) Squared differences of coordinates
    lags: Floats  # (n, n) Squared differences of tau
    same: Floats  # (n, n) 1 where two rows are of one trial

    @classmethod
    def among(cls, points: Points) -> Self:
        """The distances among these points."""
        coordinates, tau, trial = points.x.T, points.tau, points.trial
        squares = (coordinates[:, :, None] - coordinates[:, None, :]) ** 2
        lags = (tau[:, None] - tau[None, :]) ** 2
        same = trial[:, None] == trial[None, :]
        return cls(squares, lags, same.astype(float))


class CurveModel:
    """The process with fixed hyperparameters; `fit` finds them, `condition` shows it the evidence.

    Args:
        dimensions: Of an encoded configuration.
        parameters: Of a configuration; the prior of a length scale grows with the root.
        theta: (dimensions + 7,) logarithms of the length scales, tau's length scale, s0..s4 and the
            noise; None for the medians of the priors.
        agreements: (studies,) from 0 to 1, of each earlier study with this one.
    """

    def __init__(
        self,
        dimensions: int,
        parameters: int,
        theta: Floats | None = None,
        agreements: Sequence[float] = (),
    ) -> None:
        self.dimensions = dimensions
        self._loads = np.array([1.0, *agreements])
        lengths = np.full(dimensions, LENGTH * math.sqrt(parameters))
        self._center = np.log(np.concatenate([lengths, [TAU_LENGTH], VARIANCES]))
        length_spreads = [LENGTH_SPREAD] * dimensions
        variance_spreads = [VARIANCE_SPREAD] * len(VARIANCES)
        self._spread = np.array([*length_spreads, TAU_SPREAD, *variance_spreads])
        self.theta = self._center.copy() if theta is None else np.asarray(theta, dtype=float)

    def with_agreements(self, agreements: Sequence[float] | Floats) -> Self:
        """The same model with other agreements of earlier studies."""
        model = copy.copy(self)
        model._loads = np.array([1.0, *agreements])
        return model

    @property
    def agreements(self) -> list[float]:
        """(studies,) Of each earlier study with this one."""
        return [float(rho) for rho in self._loads[1:]]

    # ---------------------------------------------------------------------------------- the fitting

    def fit(self, evidence: Evidence, steps: int = 12) -> None:
        """Move the hyperparameters to the maximum a posteriori, in at most so many L-BFGS steps."""
        distances = Distances.among(evidence.points)

        def cost(theta: Floats) -> tuple[float, Floats]:
            return self.cost(theta, evidence.z, distances)

        low, high = self._center - 4 * self._spread, self._center + 4 * self._spread
        bounds = list(zip(low, high, strict=True))
        found = minimize(
            cost, self.theta, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps}
        )
        if np.all(np.isfinite(found.x)):
            self.theta = found.x

    def cost(self, theta: Floats, z: Floats, distances: Distances) -> tuple[float, Floats]:
        """The negative log posterior of hyperparameters, and its gradient, for (n,) values."""
        n = len(z)
        inverse_squares, tau_length, s, noise = self._unpacked(theta)
        squares, lags, same = distances.squares, distances.lags, distances.same
        shape, slope = matern(np.tensordot(inverse_squares, squares, 1))
        in_time = np.exp(-0.5 * lags / tau_length**2)
        parts = [
            s[0] * in_time,
            s[1] * shape,
            s[2] * shape * in_time,
            s[3] * same,
            s[4] * same * in_time,
        ]
        covariance = LEVEL + parts[0] + parts[1] + parts[2] + parts[3] + parts[4]
        covariance[np.diag_indices(n)] += noise + JITTER
        try:
            factor = cholesky(covariance, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return IMPOSSIBLE, np.zeros_like(theta)
        weights = cho_solve((factor, True), z, check_finite=False)
        away = (theta - self._center) / self._spread
        log_determinant = np.log(np.diag(factor)).sum()
        value = 0.5 * z @ weights + log_determinant + 0.5 * away @ away

        pull = _pull(factor, weights)
        levels = s[1] + s[2] * in_time
        in_time_parts = parts[0] + parts[2] + parts[4]
        d = self.dimensions
        by_length = np.tensordot(squares, pull * levels * slope, 2)
        gradient = np.empty_like(theta)
        gradient[:d] = by_length * inverse_squares
        gradient[d] = (pull * in_time_parts * lags).sum() / tau_length**2
        gradient[d + 1 : d + 6] = [(pull * part).sum() for part in parts]
        gradient[d + 6] = noise * np.trace(pull)
        return float(value), 0.5 * gradient + away / self._spread

    def _unpacked(self, theta: Floats) -> tuple[Floats, float, Floats, float]:
        """1 / length scale squared of each dimension; tau's length scale; s0..s4; the noise."""
        d = self.dimensions
        inverse_squares = np.exp(-2 * theta[:d])
        values = np.exp(theta[d:])
        tau_length, noise = float(values[0]), float(values[6])
        return inverse_squares, tau_length, values[1:6], noise

    # -------------------------------------------------------------------------------- the inference

    def condition(self, evidence: Evidence) -> "Posterior":
        """The process given the evidence."""
        return Posterior(self, evidence)

    def covariance(self, one: Points, other: Points) -> Floats:
        """(n, m) covariances of the noiseless values at n points with those at m others."""
        inverse_squares, tau_length, s, _ = self._unpacked(self.theta)
        scale = np.sqrt(inverse_squares)
        distances = cdist(one.x * scale, other.x * scale, "sqeuclidean")
        shape, _ = matern(distances)
        # Curves are read at few shares, so that few times differ.
        times, rows = np.unique(one.tau, return_inverse=True)
        others, columns = np.unique(other.tau, return_inverse=True)
        lags = (times[:, None] - others[None, :]) ** 2
        by_times = np.exp(-0.5 * lags / tau_length**2)
        in_time = by_times[np.ix_(rows, columns)]
        same = one.trial[:, None] == other.trial[None, :]
        everywhere = LEVEL + s[0] * in_time
        alike = shape * (s[1] + s[2] * in_time)
        itself = same * (s[3] + s[4] * in_time)
        if one.study is not None or other.study is not None:
            of_one, of_other = studies_of(one), studies_of(other)
            within = of_one[:, None] == of_other[None, :]
            loads, other_loads = self._loads[of_one], self._loads[of_other]
            between = np.outer(loads, other_loads)
            everywhere = everywhere * within
            alike = alike * np.where(within, 1.0, between)
        covariance: Floats = everywhere + alike + itself
        return covariance

    @property
    def variance(self) -> float:
        """The prior variance of a noiseless value."""
        _, _, s, _ = self._unpacked(self.theta)
        return LEVEL + float(s.sum())

    @property
    def noise(self) -> float:
        """The variance of a value's noise."""
        *_, noise = self._unpacked(self.theta)
        return noise


class Posterior:
    """A model that has seen evidence."""

    def __init__(self, model: CurveModel, evidence: Evidence) -> None:
        self._model = model
        self._points = evidence.points
        self.trial = evidence.points.trial  # (n,) The trial of each row of the evidence
        covariance = model.covariance(self._points, self._points)
        covariance[np.diag_indices(len(evidence))] += model.noise + JITTER
        self._factor = cholesky(covariance, lower=True, check_finite=False)
        self._weights = cho_solve((self._factor, True), evidence.z, check_finite=False)
        self._z = evidence.z

    @property
    def log_likelihood(self) -> float:
        """The log density of the evidence, up to a constant for each of its rows."""
        log_determinant = np.log(np.diag(self._factor)).sum()
        return float(-0.5 * self._z @ self._weights - log_determinant)

    def predict(self, points: Points) -> tuple[Floats, Floats]:
        """(m,) each: mean and standard deviation of the noiseless values at m points."""
        mean, whitened = self._seen_from(points)
        explained = (whitened**2).sum(0)
        variance = np.maximum(self._model.variance - explained, 1e-10)
        return mean, np.sqrt(variance)

    def joint(self, points: Points) -> tuple[Floats, Floats]:
        """(m,) The mean and (m, m) the covariance of the noiseless values at m points."""
        mean, whitened = self._seen_from(points)
        return mean, np.asarray(self._model.covariance(points, points) - whitened.T @ whitened)

    def _seen_from(self, points: Points) -> tuple[Floats, Floats]:
        """(m,) The mean at m points, and (n, m) the evidence on them, whitened."""
        cross = self._model.covariance(self._points, points)
        whitened = solve_triangular(self._factor, cross, lower=True, check_finite=False)
        return cross.T @ self._weights, whitened

    def surprises(self) -> Floats:
        """(n,) The distance of each row from its prediction by the others, in standard deviations.

        Source: Rasmussen and Williams (2006), equations 5.10 to 5.12.
        """
        half, _ = dpotri(self._factor, lower=1)
        return np.asarray(self._weights / np.sqrt(np.diag(half)))


def studies_of(points: Points) -> Ints:
    """(n,) The study of each point."""
    return np.zeros(len(points), dtype=np.int64) if points.study is None else points.study


def matern(squared: Floats) -> tuple[Floats, Floats]:
    """Matern-5/2 at squared scaled distances r**2, and its slope.

    The slope is 2 r**2 times the derivative by r**2, over -r**2.
    """
    r = np.sqrt(squared)
    fall = np.exp(-ROOT5 * r)
    shape = (1 + ROOT5 * r + 5 / 3 * squared) * fall
    return shape, 5 / 3 * (1 + ROOT5 * r) * fall


def _pull(factor: Floats, weights: Floats) -> Floats:
    """(n, n) Twice the derivative of the negative log likelihood by the covariance."""
    half, _ = dpotri(factor, lower=1)
    inverse = np.tril(half) + np.tril(half, -1).T
    return np.asarray(inverse - np.outer(weights, weights))
