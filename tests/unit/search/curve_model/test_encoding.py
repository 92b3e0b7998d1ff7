"""Configurations as points and features, over spaces of every kind."""

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

from hpsearch.search.curve_model.encoding import SpaceEncoding
from hpsearch.study_file.expressions.meaning import Expression

FLOATS = st.floats(1e-6, 1e3)


@st.composite
def numeric(draw: st.DrawFn) -> BaseDistribution:
    kind = draw(st.sampled_from(["float", "log", "grid", "int", "int log"]))
    if kind == "grid":
        step, count = draw(st.sampled_from([0.125, 0.25, 1.0])), draw(st.integers(1, 8))
        low = draw(st.sampled_from([0.0, 1.0, -0.5]))
        return FloatDistribution(low, low + step * count, step=step)
    if kind.startswith("int"):
        low = draw(st.integers(1, 20))
        return IntDistribution(low, low + draw(st.integers(0, 50)), log=kind == "int log")
    low, high = sorted((draw(FLOATS), draw(FLOATS)))
    if high < low * 1.000001:  # between neighbouring numbers there are no places to tell apart
        high = low
    return FloatDistribution(low, high, log=kind == "log")


@st.composite
def encodings(draw: st.DrawFn) -> SpaceEncoding:
    space: dict[str, BaseDistribution] = {"kind": CategoricalDistribution(("a", "b", None, True))}
    conditions: dict[str, dict[str, list[Any]]] = {}
    for i in range(draw(st.integers(1, 4))):
        space[f"p{i}"] = draw(numeric())
        if draw(st.booleans()):
            conditions[f"p{i}"] = {
                "kind": draw(st.lists(st.sampled_from(["a", "b", None]), min_size=1, unique=True))
            }
    return SpaceEncoding(space, conditions)


@st.composite
def placed(draw: st.DrawFn) -> tuple[SpaceEncoding, np.ndarray[Any, np.dtype[np.float64]]]:
    encoding = draw(encodings())
    return encoding, np.array([draw(st.floats(0, 1)) for _ in range(encoding.parameters)])


@given(placed())
def test_every_point_is_a_configuration_of_the_space(case):
    encoding, point = case
    params = encoding.params(point)
    assert params.keys() == encoding.space.keys()
    for name, value in params.items():
        distribution = encoding.space[name]
        assert distribution._contains(distribution.to_internal_repr(value))


@given(placed())
def test_the_point_of_a_points_configuration_has_the_same_configuration_and_features(case):
    encoding, point = case
    params = encoding.params(point)
    again = encoding.point(params)
    for name, value in encoding.params(again).items():
        if isinstance(value, float):
            assert np.isclose(value, params[name], rtol=1e-9, atol=1e-12)
        else:
            assert value == params[name]
    assert np.allclose(encoding.features(again[None]), encoding.features(point[None]), atol=1e-6)


@given(placed(), st.floats(0, 1))
def test_an_inactive_parameter_changes_no_feature(case, elsewhere):
    encoding, point = case
    kind = encoding.params(point)["kind"]
    for i, name in enumerate(encoding.space):
        if kind in encoding._conditions.get(name, {}).get("kind", [kind]):
            continue
        moved = point.copy()
        moved[i] = elsewhere
        assert np.array_equal(encoding.features(moved[None]), encoding.features(point[None]))


def test_a_category_is_one_hot_and_all_choices_are_equally_far_apart():
    encoding = SpaceEncoding(
        {"kind": CategoricalDistribution(("a", "b", "c")), "x": FloatDistribution(0, 1)}
    )
    points = np.array([[encoding.point({"kind": kind})[0], 0.5] for kind in "abc"])
    assert encoding.features(points).tolist() == [[1, 0, 0, 0.5], [0, 1, 0, 0.5], [0, 0, 1, 0.5]]
    assert encoding.dimensions == 4
    assert encoding.categorical.tolist() == [True, False]


def test_choices_that_are_numbers_are_ordered_however_they_are_listed():
    sizes = CategoricalDistribution((64, 16, 32))
    encoding = SpaceEncoding({"size": sizes, "flag": CategoricalDistribution((True, False))})
    points = np.array([encoding.point({"size": size, "flag": True}) for size in (16, 32, 64)])
    assert points[:, 0].tolist() == pytest.approx([1 / 6, 1 / 2, 5 / 6])
    assert encoding.features(points)[:, 0].tolist() == pytest.approx([1 / 6, 1 / 2, 5 / 6])
    assert [encoding.params(point)["size"] for point in points] == [16, 32, 64]
    assert encoding.categorical.tolist() == [False, True]
    assert encoding.dimensions == 3


def test_a_chain_of_conditions_is_inactive_from_where_it_breaks():
    space: dict[str, BaseDistribution] = {
        "a": CategoricalDistribution((True, False)),
        "b": CategoricalDistribution(("x", "y")),
        "c": FloatDistribution(0, 1),
    }
    encoding = SpaceEncoding(space, {"b": {"a": [True]}, "c": {"b": ["x"]}})
    broken = encoding.point({"a": False, "b": "x", "c": 0.9})
    assert encoding.features(broken[None])[0].tolist() == [0, 1, 0, 0, 0.5]
    whole = encoding.point({"a": True, "b": "x", "c": 0.9})
    assert encoding.features(whole[None])[0].tolist() == [1, 0, 1, 0, 0.9]


def test_it_says_which_parameters_are_active():
    space: dict[str, BaseDistribution] = {
        "a": CategoricalDistribution((True, False)),
        "b": CategoricalDistribution(("x", "y")),
        "c": FloatDistribution(0, 1),
    }
    encoding = SpaceEncoding(space, {"b": {"a": [True]}, "c": {"b": ["x"]}})
    configurations = [{"a": True, "b": "x"}, {"a": True, "b": "y"}, {"a": False, "b": "x"}]
    active = encoding.active(np.array([encoding.point(params) for params in configurations]))
    assert {name: mask.tolist() for name, mask in active.items()} == {
        "a": [True, True, True],
        "b": [True, True, False],
        "c": [True, False, False],
    }


def test_an_expression_says_what_is_active_and_what_is_allowed():
    space: dict[str, BaseDistribution] = {
        "kind": CategoricalDistribution(("cnn", "mlp")),
        "width": IntDistribution(8, 64, step=8),
        "heads": IntDistribution(1, 8),
    }
    condition = Expression("kind == 'mlp' and width > 16")
    encoding = SpaceEncoding(space, {"heads": condition}, [Expression("heads * 16 <= width")])
    configurations = [
        {"kind": "mlp", "width": 64, "heads": 4},
        {"kind": "mlp", "width": 64, "heads": 5},
        {"kind": "mlp", "width": 16, "heads": 5},
        {"kind": "cnn", "width": 64, "heads": 5},
    ]
    points = np.array([encoding.point(params) for params in configurations])
    assert encoding.active(points)["heads"].tolist() == [True, True, False, False]
    assert encoding.allowed(points).tolist() == [True, False, True, True]
    assert encoding.features(points)[2:, -1].tolist() == [0.5, 0.5]
