"""What is believed of a space, as a density: it is one, it is followed, and it fades."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hpsearch.search.curve_model.belief import Belief
from hpsearch.search.curve_model.encoding import SpaceEncoding
from hpsearch.study_file.parameters import Confidence
from hpsearch.study_file.space import Prior

CONFIDENCES: tuple[Confidence, ...] = ("low", "medium", "high")
LEARNING_RATE = FloatDistribution(1e-5, 1e-1, log=True)
LAYERS = IntDistribution(1, 5)
WIDTH = IntDistribution(16, 1024, log=True)
OPTIMIZER = CategoricalDistribution(("adam", None, True))
ONE_OF_EACH: dict[str, tuple[BaseDistribution, Any]] = {
    "float": (FloatDistribution(0.0, 2.0), 0.5),
    "float at its bound": (FloatDistribution(0.0, 2.0), 2.0),
    "log float": (LEARNING_RATE, 3e-4),
    "grid": (FloatDistribution(0.0, 1.0, step=0.25), 0.75),
    "int": (LAYERS, 1),
    "log int": (WIDTH, 64),
    "category": (OPTIMIZER, None),
}


def belief_in(
    space: Mapping[str, BaseDistribution],
    values: Mapping[str, Any],
    confidence: Confidence = "high",
    conditions: Any = None,
) -> Belief:
    encoding = SpaceEncoding(space, conditions)
    return Belief(encoding, {name: Prior(value, confidence) for name, value in values.items()})


def middles(count: int) -> Any:
    """The middles of so many equal parts of the range from 0 to 1."""
    return (np.arange(count) + 0.5) / count


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_a_density_integrates_to_one(kind, confidence):
    distribution, value = ONE_OF_EACH[kind]
    belief = belief_in({"x": distribution}, {"x": value}, confidence)
    points = middles(30_000)[:, None]
    assert np.exp(belief.log_density(points)).mean() == pytest.approx(1.0, abs=1e-4)


def test_a_density_over_a_space_with_conditions_integrates_to_one():
    space = {"optimizer": OPTIMIZER, "momentum": FloatDistribution(0.0, 1.0)}
    conditions = {"momentum": {"optimizer": ["adam"]}}
    belief = belief_in(space, {"optimizer": "adam", "momentum": 0.9}, conditions=conditions)
    side = middles(600)
    points = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    assert np.exp(belief.log_density(points)).mean() == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_draws_follow_the_density(kind, confidence):
    distribution, value = ONE_OF_EACH[kind]
    belief = belief_in({"x": distribution}, {"x": value}, confidence)
    drawn = belief.drawn(middles(60_000)[:, None])[:, 0]
    density = np.exp(belief.log_density(middles(30_000)[:, None]))
    expected = density.reshape(6, -1).mean(axis=1) / 6
    found = np.histogram(drawn, bins=6, range=(0.0, 1.0))[0] / len(drawn)
    if kind == "category":  # a draw stands in the middle of its category
        expected, found = expected.reshape(3, 2).sum(axis=1), found.reshape(3, 2).sum(axis=1)
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("kind", ONE_OF_EACH)
def test_the_mode_is_the_prior_and_the_densest_point(kind):
    distribution, value = ONE_OF_EACH[kind]
    encoding = SpaceEncoding({"x": distribution})
    belief = Belief(encoding, {"x": Prior(value, "medium")})
    mode = belief.mode(np.array([0.123]))
    assert encoding.params(mode)["x"] == pytest.approx(value)
    elsewhere = belief.log_density(middles(1000)[:, None])
    assert belief.log_density(mode[None])[0] >= elsewhere.max() - 1e-9


def test_more_confidence_is_a_narrower_belief():
    near, far = np.array([[0.5]]), np.array([[0.0]])
    space, values = {"x": FloatDistribution(0.0, 1.0)}, {"x": 0.5}
    beliefs = [belief_in(space, values, confidence) for confidence in CONFIDENCES]
    at_prior = [belief.log_density(near)[0] for belief in beliefs]
    at_bound = [belief.log_density(far)[0] for belief in beliefs]
    assert at_prior == sorted(at_prior)
    assert at_bound == sorted(at_bound, reverse=True)


def test_parameters_without_a_prior_or_with_one_value_stay_as_they_are():
    space = {
        "x": FloatDistribution(0.0, 1.0),
        "one": FloatDistribution(0.5, 0.5),
        "free": OPTIMIZER,
    }
    belief = belief_in(space, {"x": 0.2, "one": 0.5})
    points = np.random.default_rng(0).random((50, 3))
    drawn = belief.drawn(points)
    assert np.array_equal(drawn[:, 1:], points[:, 1:])
    assert not np.array_equal(drawn[:, 0], points[:, 0])
    moved = points.copy()
    moved[:, 1:] = 0.9
    assert np.array_equal(belief.log_density(moved), belief.log_density(points))


def test_the_belief_about_an_inactive_parameter_does_not_count():
    space = {"optimizer": OPTIMIZER, "momentum": FloatDistribution(0.0, 1.0)}
    conditions = {"momentum": {"optimizer": ["adam"]}}
    belief = belief_in(space, {"momentum": 0.9}, conditions=conditions)
    active, inactive = 1 / 6, 0.5
    points = np.array([[active, 0.9], [active, 0.1], [inactive, 0.9], [inactive, 0.1]])
    near, far, *without = belief.log_density(points)
    assert near > 0 > far
    assert without == [0.0, 0.0]


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.integers(1, 10_000))
def test_a_belief_counts_less_with_every_result_and_never_endlessly(prior, u, results):
    belief = belief_in({"x": FloatDistribution(0.0, 1.0)}, {"x": prior})
    point = np.array([[u]])
    shown = np.full((2 * results, 1), prior)
    now = belief.weighed(point, shown[:results], results)[0]
    later = belief.weighed(point, shown, 2 * results)[0]
    assert later == pytest.approx(now / 2)
    assert -30 < now < 30


def test_a_belief_is_dropped_where_what_it_favours_is_in_the_worse_half():
    belief = belief_in({"x": FloatDistribution(0.0, 1.0)}, {"x": 0.9})
    best_is_low = np.linspace(0.0, 1.0, 20)[:, None]
    assert belief.credibility(best_is_low) == 0.0
    assert np.all(belief.weighed(best_is_low, best_is_low, 20) == 0.0)
    assert belief.credibility(best_is_low[::-1]) == 1.0
    best_is_in_the_middle = np.array([[0.5], [0.3], [0.8], [0.1], [0.95], [0.0]])
    assert 0.0 < belief.credibility(best_is_in_the_middle) < 1.0
    assert belief.credibility(best_is_low[:1]) == 1.0


@given(st.integers(0, 4), st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_every_draw_is_a_point_of_the_space(layers, u, v):
    belief = belief_in({"layers": LAYERS, "width": WIDTH}, {"layers": layers + 1, "width": 16})
    drawn = belief.drawn(np.array([[u, v]]))
    assert np.all((drawn >= 0.0) & (drawn <= 1.0))
