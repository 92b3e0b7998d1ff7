"""Configurations of a study file before it changed, in the one after."""

import pytest

from hpsearch.brain.widening import placed
from support.studies.small import spec_with

X = {"type": "float", "low": 0.0, "high": 1.0}
OLD = {"x": X, "c": {"type": "categorical", "choices": ["a", "b", None]}}


@pytest.mark.parametrize(
    ("space", "params", "found"),
    [
        ({**OLD, "x": {**X, "high": 2.0}}, {"x": 0.5, "c": "a"}, {"x": 0.5, "c": "a"}),
        ({**OLD, "x": {**X, "high": 0.4}}, {"x": 0.5, "c": "a"}, None),
        ({**OLD, "x": {**X, "step": 0.25}}, {"x": 0.5, "c": None}, {"x": 0.5, "c": None}),
        ({**OLD, "x": {**X, "step": 0.25}}, {"x": 0.6, "c": None}, None),
        ({**OLD, "c": {**OLD["c"], "choices": ["b", "z"]}}, {"x": 0.5, "c": "a"}, None),
        ({**OLD, "y": {**X, "was": 0.25}}, {"x": 0.5, "c": "a"}, {"x": 0.5, "c": "a", "y": 0.25}),
        ({**OLD, "y": {**X, "was": 7.0}}, {"x": 0.5, "c": "a"}, None),
        ({**OLD, "y": X}, {"x": 0.5, "c": "a"}, None),
        ({**OLD, "y": {**X, "when": {"c": "b"}}}, {"x": 0.5, "c": "a"}, {"x": 0.5, "c": "a"}),
        ({**OLD, "x": {**X, "when": {"c": "b"}}}, {"x": 0.5, "c": "a"}, None),
    ],
)
def test_a_trial_keeps_its_place_or_is_outside(space, params, found):
    assert placed(params, spec_with(space=OLD), spec_with(space=space)) == found


def test_a_choice_that_is_null_can_be_what_trials_count_with():
    space = {"x": X, "c": {**OLD["c"], "was": None}}
    assert placed({"x": 0.5}, spec_with(space={"x": X}), spec_with(space=space)) == {
        "x": 0.5,
        "c": None,
    }


def test_a_parameter_that_is_gone_or_new_has_its_value_under_settings():
    fixed, free = spec_with(space={"x": X}, settings={"c": "a"}), spec_with(space=OLD)
    assert placed({"x": 0.5, "c": "a"}, free, fixed) == {"x": 0.5}
    assert placed({"x": 0.5, "c": "b"}, free, fixed) is None
    assert placed({"x": 0.5}, fixed, free) == {"x": 0.5, "c": "a"}


def test_requirements_that_are_new_leave_trials_out():
    after = spec_with(space=OLD, requires=["x < 0.6"])
    assert placed({"x": 0.5, "c": "a"}, spec_with(space=OLD), after) is not None
    assert placed({"x": 0.7, "c": "a"}, spec_with(space=OLD), after) is None
