"""The search space: distributions, conditions, and configurations inside and outside of it."""

import math
from typing import Any

import optuna
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    json_to_distribution,
)
from optuna.distributions import distribution_to_json as to_json

from hpsearch.study_file import space as spaces
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.parameters import (
    CategoricalParameter,
    FloatParameter,
    IntParameter,
    Parameter,
)
from hpsearch.study_file.reading import space_in
from hpsearch.study_file.space import distribution_of
from support.thoroughness import examples
from trials.contract import Setting
from trials.settings import TABLE

optuna.logging.set_verbosity(optuna.logging.WARNING)

SPACE: dict[str, Parameter] = {
    "rank": IntParameter(type="int", low=4, high=64, log=True, when={"lora": (True,)}),
    "alpha": FloatParameter(
        type="float", low=0.0, high=1.0, step=0.25, when={"rank": (4, 8), "lora": (True,)}
    ),
    "lora": CategoricalParameter(type="categorical", choices=(True, False)),
    "rate": FloatParameter(type="float", low=1e-5, high=1e-3, log=True),
}


@st.composite
def parameters(draw: st.DrawFn, when: dict[str, Any] | None) -> Parameter:
    kind = draw(
        st.sampled_from(["float", "log", "grid", "int", "int log", "int grid", "categorical"])
    )
    if kind == "categorical":
        choices = draw(
            st.lists(st.integers(-5, 5) | st.text(max_size=3), min_size=1, max_size=4, unique=True)
        )
        return CategoricalParameter(type="categorical", choices=tuple(choices), when=when)
    if kind.startswith("int"):
        least, width = draw(st.integers(1, 100)), draw(st.integers(0, 50))
        step = draw(st.integers(1, 5)) if kind == "int grid" else 1
        return IntParameter(
            type="int",
            low=least,
            high=least + width * step,
            log=kind == "int log",
            step=step,
            when=when,
        )
    low = draw(st.sampled_from([0.001, 0.1, 1.0, 2.5]))
    if kind == "grid":
        return FloatParameter(
            type="float", low=0.0, high=round(draw(st.integers(1, 9)) * low, 6), step=low, when=when
        )
    high = low * draw(st.floats(1.0, 1e4))
    return FloatParameter(type="float", low=low, high=high, log=kind == "log", when=when)


def some_value(parameter: Parameter) -> Any:
    return parameter.choices[0] if isinstance(parameter, CategoricalParameter) else parameter.low


@st.composite
def search_spaces(draw: st.DrawFn) -> dict[str, Parameter]:
    """Spaces whose parameters depend on earlier ones, in any order in the file."""
    space: dict[str, Parameter] = {}
    for i in range(draw(st.integers(1, 6))):
        parents = (
            draw(st.lists(st.sampled_from(sorted(space)), max_size=2, unique=True)) if space else []
        )
        space[f"p{i}"] = draw(
            parameters({parent: some_value(space[parent]) for parent in parents} or None)
        )
    return {name: space[name] for name in draw(st.permutations(list(space)))}


def condition_holds(space: dict[str, Parameter], params: dict[str, Any], name: str) -> bool:
    return all(
        parent in params and params[parent] in values
        for parent, values in (space[name].when or {}).items()
    )


@settings(max_examples=examples(60))
@given(search_spaces(), st.integers(0, 100))
def test_what_is_suggested_lies_inside_and_honours_every_condition(space, seed):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    for _ in range(3):
        trial = study.ask()
        params = spaces.suggest(trial, space)
        assert params == spaces.as_written(space, trial.params)
        assert spaces.problems_with(space, params) == []
        assert set(params) == {name for name in space if condition_holds(space, params, name)}
        assert sorted(spaces.active(space, params)) == sorted(params)
        assert trial.distributions == {name: distribution_of(space[name]) for name in params}


@settings(max_examples=examples(60))
@given(search_spaces())
def test_a_space_survives_the_way_to_json_and_to_optuna_and_back(space):
    for parameter in space.values():
        assert type(parameter).model_validate(parameter.model_dump()) == parameter
        distribution = distribution_of(parameter)
        assert json_to_distribution(to_json(distribution)) == distribution
        if not isinstance(parameter, CategoricalParameter):
            assert isinstance(distribution, FloatDistribution | IntDistribution)
            assert math.isclose(distribution.high, parameter.high)


@settings(max_examples=examples(60))
@given(search_spaces())
def test_a_completed_configuration_is_whole_and_inside(space):
    params = spaces.completed(space, {})
    assert spaces.problems_with(space, params) == []
    assert sorted(params) == sorted(spaces.active(space, params))


def test_parents_come_before_children_and_an_inactive_parent_makes_its_children_inactive():
    assert spaces.ordered(SPACE) == ["lora", "rank", "alpha", "rate"]
    assert spaces.active(SPACE, {"lora": True, "rank": 4, "alpha": 0.5, "rate": 1e-4}) == [
        "lora",
        "rank",
        "alpha",
        "rate",
    ]
    assert spaces.active(SPACE, {"lora": True, "rank": 16, "rate": 1e-4}) == [
        "lora",
        "rank",
        "rate",
    ]
    assert spaces.active(SPACE, {"lora": False, "rank": 4, "rate": 1e-4}) == ["lora", "rate"]


def test_a_condition_tells_true_from_one():
    space = {**SPACE, "lora": CategoricalParameter(type="categorical", choices=(1, 0))}
    assert spaces.active(space, {"lora": 1, "rank": 4}) == ["lora", "rate"]


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"rate": 1e-4}, None),
        ({"lora": True, "rank": 8, "alpha": 0.75}, None),
        ({"rank": 8}, None),
        ({"rate": 1}, "rate: must be from 1e-05 to 0.001, not 1"),
        ({"rate": "fast"}, "rate: must be a number, not 'fast'"),
        ({"rate": math.nan}, "rate: must be from 1e-05 to 0.001, not nan"),
        ({"rank": 8.0}, "rank: must be a whole number, not 8.0"),
        ({"alpha": 0.3}, "alpha: must be 0.0 plus a multiple of 0.25, not 0.3"),
        ({"lora": 1}, "lora: must be one of true, false, not 1"),
        ({"lora": False, "rank": 8}, "rank: is not active while lora is false; leave it out"),
        ({"rat": 1}, "rat: no parameter of the space has this name; did you mean rate?"),
    ],
)
def test_a_configuration_outside_the_space_says_why(params, told):
    problems = spaces.problems_with(SPACE, params)
    assert [f"{each.where}: {each.what}" for each in problems] == ([] if told is None else [told])


def test_defaults_are_moved_to_the_nearest_value_of_the_space():
    space: dict[str, Parameter] = {
        "learning_rate": FloatParameter(
            type="float", low=1e-3, high=1e-1, log=True
        ),  # the default is 1e-4
        "batch_size": IntParameter(type="int", low=10, high=50, step=10),  # 32
        "optimizer": CategoricalParameter(type="categorical", choices=("sgd", "adamw")),  # adamw
        "schedule": CategoricalParameter(
            type="categorical", choices=("cosine", "constant")
        ),  # linear is no choice
        "momentum": FloatParameter(type="float", low=0.0, high=0.5, when={"optimizer": ("sgd",)}),
        "beta1": FloatParameter(
            type="float", low=0.8, high=1.0, step=0.1, when={"optimizer": ("adamw",)}
        ),  # 0.9
        "dropout": FloatParameter(type="float", low=0.0, high=0.5),  # the model's own: no number
        "unknown": FloatParameter(type="float", low=0.0, high=0.5),
    }
    found = spaces.defaults(space, TABLE)
    assert found == {
        "learning_rate": 1e-3,
        "batch_size": 30,
        "optimizer": "adamw",
        "beta1": pytest.approx(0.9),
    }
    assert spaces.problems_with(space, found) == []


def test_a_space_without_defaults_has_none_and_those_that_break_a_requirement_are_left_out():
    others = {name: setting for name, setting in TABLE.items() if name not in SPACE}
    assert spaces.defaults(SPACE, others) is None
    assert spaces.defaults(SPACE, None) is None
    space = {name: SPACE[name] for name in ("rate", "lora")}
    table = {name: Setting(name, float, 1e-4, "any") for name in ("rate",)}
    assert spaces.defaults(space, table, [Expression("rate < 0.0005")]) == {"rate": 1e-4}
    assert spaces.defaults(space, table, [Expression("rate > 0.0005")]) is None


@settings(max_examples=examples(60))
@given(
    search_spaces(),
    st.floats(-1e3, 1e3) | st.integers(-100, 100) | st.text(max_size=3) | st.none() | st.booleans(),
)
def test_defaults_always_lie_inside(space, default):
    table = {name: Setting(name, float, default, "any") for name in space}
    assert spaces.problems_with(space, spaces.defaults(space, table) or {}) == []


@given(st.integers(-50, 50), st.integers(0, 3), st.integers(1, 9), st.integers(1, 40), st.data())
def test_points_of_a_grid_are_what_people_would_write(first, digits, step, steps, data):
    def written(units: int) -> float:
        return float(f"{units}e-{digits}")

    grid = FloatParameter(
        type="float", low=written(first), high=written(first + steps * step), step=written(step)
    )
    points = [written(first + place * step) for place in range(steps + 1)]
    assert [grid.value_at(place) for place in range(steps + 1)] == points
    place = data.draw(st.floats(0, 1, exclude_max=True))
    assert grid.at(place) in points
    drawn = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1)).ask()
    assert spaces.suggest(drawn, {"s": grid})["s"] in points


def test_choices_become_a_categorical_distribution():
    assert distribution_of(SPACE["lora"]) == CategoricalDistribution([True, False])


LENGTHS = {
    "length": Setting("length", int, 50, "", low=1),
    "scored": Setting("scored", int, None, "", nullable=True, largest_of="length"),
}


@pytest.mark.parametrize(
    ("searched", "largest"),
    [
        (IntParameter(type="int", low=4, high=64, log=True), 64),
        (CategoricalParameter(type="categorical", choices=(32, 128, 64)), 128),
        (IntParameter(type="int", low=4, high=40, when={"lora": (True,)}), 50),
    ],
)
def test_all_trials_are_measured_at_the_largest_value_that_one_of_them_can_have(searched, largest):
    space = {**SPACE, "length": searched}
    assert spaces.largest(space, {}, LENGTHS) == {"scored": largest}
    assert spaces.largest(space, {"scored": 7}, LENGTHS) == {}
    assert spaces.largest({**space, "scored": searched}, {}, LENGTHS) == {}
    assert spaces.largest(SPACE, {"length": 7}, LENGTHS) == {}
    assert spaces.largest(space, {}, None) == {}


def test_a_prior_has_a_confidence():
    number = {"type": "float", "low": 0.0, "high": 1.0}
    choice = {"type": "categorical", "choices": ["a", None]}
    space, problems = space_in(
        {
            "usual": {**number, "prior": 0.5},
            "sure": {**number, "prior": 0, "confidence": "high"},
            "none": number,
            "empty": {**number, "prior": None},
            "a": {**choice, "prior": "a", "confidence": "low"},
            "any": choice,
        }
    )
    assert problems == []
    assert spaces.priors(space) == {
        "usual": (0.5, "medium"),
        "sure": (0, "high"),
        "a": ("a", "low"),
    }
    for parameter in space.values():
        assert type(parameter).model_validate(parameter.model_dump()) == parameter


def test_a_configuration_is_completed_within_the_requirements():
    space = {"a": whole(1, 8), "b": whole(1, 8)}
    requires = [Expression("a + b >= 10")]
    assert spaces.completed(space, {"a": 8, "b": 3}, requires) == {"a": 8, "b": 3}
    found = spaces.completed(space, {"a": 8}, requires)
    assert found["a"] == 8
    assert found["b"] >= 2
    assert sum(spaces.completed(space, {"a": 1, "b": 1}, requires).values()) >= 10


@settings(max_examples=examples(60))
@given(search_spaces(), st.integers(0, 100))
def test_a_random_configuration_lies_inside(space, seed):
    params = spaces.drawn(space, [], seed)
    assert params is not None
    assert spaces.problems_with(space, params) == []
    assert list(params) == spaces.active(space, params)


def test_a_parameter_that_an_expression_excludes_is_refused():
    space = {"a": whole(1, 8), "b": whole(1, 8, when=Expression("a > 4"))}
    (problem,) = spaces.problems_with(space, {"a": 3, "b": 2})
    assert problem.what == "is only active when a > 4; leave it out"
    assert spaces.problems_with(space, {"a": 5, "b": 2}) == []
    assert spaces.problems_with(space, {"b": 2}) == []


def test_values_that_leave_nothing_allowed_are_refused():
    space = {"a": whole(1, 8), "b": whole(1, 8)}
    requires = [Expression("a * b == 64")]
    assert spaces.problems_with(space, {"a": 8}, requires=requires) == []
    (problem,) = spaces.problems_with(space, {"a": 7}, requires=requires)
    assert "with these values none keeps all requirements" in problem.what
    (problem,) = spaces.problems_with(space, {"a": 7, "b": 8}, requires=requires)
    assert problem.what == "breaks the requirement a * b == 64"


def whole(low: int, high: int, **more: Any) -> IntParameter:
    return IntParameter(type="int", low=low, high=high, **more)
