"""The Gaussian process over learning curves: its arithmetic against what it must be."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime

from hpsearch.search.curve_model.model import CurveModel, Distances, Evidence, Points


def rows_of(seed: int, trials: int = 6, dimensions: int = 2) -> Evidence:
    rng = np.random.default_rng(seed)
    trial = np.repeat(np.arange(trials), 3)
    z = rng.normal(size=len(trial))
    x = rng.random((trials, dimensions))[trial]
    points = Points(x, np.tile([0.3, 0.7, 1.0], trials), trial)
    return Evidence(points, z - z.mean())


def cost_of(
    model: CurveModel, rows: Evidence
) -> Callable[[np.ndarray[tuple[int], np.dtype[np.float64]]], float]:
    distances = Distances.among(rows.points)
    return lambda theta: model.cost(theta, rows.z, distances)


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_that_of_finite_differences(seed):
    rows, rng = rows_of(seed), np.random.default_rng(seed)
    model = CurveModel(2, 2)
    cost = cost_of(model, rows)
    theta = model.theta + 0.3 * rng.normal(size=len(model.theta))
    numeric = approx_fprime(theta, lambda at: cost(at)[0], 1e-6)
    assert np.allclose(cost(theta)[1], numeric, rtol=1e-3, atol=1e-3)


def test_fitting_never_makes_the_evidence_less_likely():
    rows, model = rows_of(1), CurveModel(2, 2)
    cost, before = cost_of(model, rows), model.theta
    model.fit(rows)
    assert cost(model.theta)[0] < cost(before)[0]


def test_without_noise_the_posterior_goes_through_the_evidence_and_is_less_sure_far_from_it():
    rows = rows_of(2)
    theta = CurveModel(2, 2).theta
    theta[-1] = np.log(1e-10)
    mean, deviation = CurveModel(2, 2, theta).condition(rows).predict(rows.points)
    assert np.allclose(mean, rows.z, atol=1e-4)
    assert np.all(deviation < 1e-2)
    rows = rows_of(3)
    posterior = CurveModel(2, 2).condition(rows)
    new = np.array([-1])
    _, near = posterior.predict(Points(rows.points.x[:1], rows.points.tau[:1], new))
    _, far = posterior.predict(Points(np.array([[9.0, 9.0]]), np.array([1.0]), new))
    assert far > near


@given(st.integers(0, 1000), st.integers(1, 3))
def test_every_covariance_is_symmetric_and_positive_definite(seed, dimensions):
    rows = rows_of(seed, dimensions=dimensions)
    model = CurveModel(dimensions, dimensions)
    model.theta = model.theta + np.random.default_rng(seed).normal(scale=0.5, size=len(model.theta))
    covariance = model.covariance(rows.points, rows.points)
    assert np.allclose(covariance, covariance.T)
    assert np.linalg.eigvalsh(covariance + model.noise * np.eye(len(rows))).min() > 0
    assert np.allclose(np.diag(covariance), model.variance)
