"""Study files of objectives of Optuna, which name their parameters as they run."""

from typing import Any

import pytest

from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.reading import advice
from hpsearch.study_file.text import configurations
from hpsearch.views.plan import plan
from support.studies.small import spec_with

OBJECTIVE = {"kind": "my_search:objective", "library": "optuna"}
SPACE = {"x": {"type": "float", "low": 0.0, "high": 1.0}}


def refused(**changes: Any) -> str:
    with pytest.raises(SpecError) as error:
        spec_with(**{"task": OBJECTIVE, "space": None, **changes})
    return str(error.value)


def test_only_an_objective_of_optuna_needs_no_space():
    assert spec_with(task=OBJECTIVE, space=None).space == {}
    assert spec_with(task=OBJECTIVE, space={}).space == {}
    assert list(spec_with(task=OBJECTIVE, space=SPACE).space) == ["x"]
    assert "space: has no parameters" in refused(task={"kind": "my_search:train"})
    assert "space: has no parameters" in refused(
        task={"kind": "my_search:train", "library": "ray_tune"}
    )


@pytest.mark.parametrize("sampler", ["qmc", "brute_force"])
def test_a_sampler_that_needs_the_space_is_refused_without_one(sampler):
    said = refused(search={"sampler": sampler})
    assert f"search.sampler: {sampler} needs the whole space in advance" in said
    quantized = {"x": {**SPACE["x"], "step": 0.5}}
    spec_with(task=OBJECTIVE, space=quantized, search={"sampler": sampler})


@pytest.mark.parametrize("sampler", ["tpe", "random", "cmaes", "gp", "nsgaii", "curve_gp"])
def test_the_others_are_not(sampler):
    spec_with(task=OBJECTIVE, space=None, search={"sampler": sampler})


def test_earlier_studies_are_compared_by_named_parameters_only():
    said = refused(search={"warm_start": ["before"]})
    assert "search.warm_start: compares parameters that both studies name under space" in said


def test_any_parameter_may_be_asked_for_but_those_of_the_space_within_it():
    assert spec_with(task=OBJECTIVE, space=None, enqueue=[{"y": 3}]).enqueue == [{"y": 3}]
    assert "enqueue[0].x" in refused(space=SPACE, enqueue=[{"x": 3, "y": 3}])
    spec = spec_with(task=OBJECTIVE, space=SPACE)
    assert configurations(["y=3"], spec) == [{"y": 3}]
    with pytest.raises(UserError, match="no parameter of the space has this name"):
        configurations(["y=3"], spec_with(space=SPACE))


def test_check_says_what_a_pause_costs_and_the_plan_shows_no_empty_space():
    search = {"sampler": "curve_gp"}
    said = "\n".join(advice(spec_with(task=OBJECTIVE, space=None, search=search)))
    assert "an objective has no checkpoints" in said
    other = {"sampler": "tpe", "pruner": "none"}
    assert advice(spec_with(task=OBJECTIVE, space=None, search=other)) == []
    assert advice(spec_with(search=search)) == []
    assert len(plan(spec_with(task=OBJECTIVE, space=None), {}, None, None)) == 1
    assert len(plan(spec_with(task=OBJECTIVE, space=SPACE), {}, None, None)) == 2
