"""Ray Tune's own search spaces, read as ours: the same values, and nothing else."""

import numpy as np
import pytest
from ray import tune as of_ray
from ray.tune.search.variant_generator import generate_variants

from hpsearch import tune
from hpsearch.errors import UserError
from hpsearch.plugins.ray_tune.adapting import config_of
from hpsearch.plugins.ray_tune.space import read_space
from hpsearch.study_file.parameters import CategoricalParameter, FloatParameter, IntParameter

TYPES = {"float": FloatParameter, "int": IntParameter, "categorical": CategoricalParameter}

SPACE = {
    "lr": of_ray.loguniform(1e-5, 1e-1),
    "momentum": of_ray.uniform(0, 0.9),
    "dropout": of_ray.quniform(0, 0.5, 0.1),
    "model": {
        "layers": of_ray.randint(1, 5),
        "width": of_ray.qrandint(8, 64, 8),
        "seeds": of_ray.lograndint(1, 1000),
        "act": of_ray.choice(["relu", "tanh", None]),
        "sizes": of_ray.choice([[8], [8, 4]]),
        "shapes": of_ray.choice([None, (8, (4, 2)), {"a": (1,)}]),
        "same": {"deep": [1, {"a": True}]},
    },
    "batch": of_ray.grid_search([16, 32]),
    "exact": of_ray.qrandint(1, 4, 1),
    "of_numpy": of_ray.choice(list(np.array([0.5, 1.5]))),
    "name": "fixed",
}


def values_in(nested, prefix=""):
    for name, value in nested.items():
        if isinstance(value, dict) and "a" not in value:
            yield from values_in(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def test_every_parameter_has_the_range_that_ray_tune_draws_from_and_configs_are_as_nested():
    found = read_space(SPACE)
    parameters = {name: TYPES[each["type"]](**each) for name, each in found.space.items()}
    chance = np.random.default_rng(1)
    variants = []
    for _ in range(300):
        variants += [config for _, config in generate_variants(SPACE, random_state=chance)]
    drawn = {name: [dict(values_in(each))[name] for each in variants] for name in parameters}
    for name, parameter in parameters.items():
        for value in drawn[name]:
            # Ray rounds to steps with an error of its own.
            plain = round(value, 9) if isinstance(value, float) and "drop" in name else value
            shown = getattr(plain, "item", lambda v=plain: v)()
            assert parameter.problem_with(shown) is None, (name, value)
        if isinstance(parameter, IntParameter) and not parameter.log:
            assert {min(drawn[name]), max(drawn[name])} == {parameter.low, parameter.high}, name
    assert found.space["lr"] == {"type": "float", "low": 1e-5, "high": 0.1, "log": True}
    assert found.grid_points() == [{"batch": 16}, {"batch": 32}]
    sizes = found.space["model.sizes"]["choices"][1]
    shapes = found.space["model.shapes"]["choices"]
    params = {name: name for name in found.space} | {"model.sizes": sizes, "act": {"of": [1]}}
    for shape, given in zip([None, (8, (4, 2)), {"a": (1,)}], shapes, strict=True):
        given_params = {**found.constants, **params, "model.shapes": given}
        assert config_of(given_params, frozenset(found.tuples))["model"]["shapes"] == shape
    config = config_of({**found.constants, **params}, frozenset(found.tuples))
    config["model"]["sizes"].append(2)
    assert (config["model"]["sizes"].pop(), config["act"]) == (2, {"of": [1]})
    assert sizes == [8, 4], "a trainable may change its config"
    assert set(config["model"]) == set(SPACE["model"])
    assert config["model"]["sizes"] == [8, 4]
    assert config["model"]["same"] == {"deep": [1, {"a": True}]}
    assert (config["name"], config["lr"]) == ("fixed", "lr")
    assert found.constants["model"] == {"same": {"deep": [1, {"a": True}]}}, "not written to"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (of_ray.sample_from(lambda config: 1), "a: tune.sample_from cannot be carried over"),
        (of_ray.randn(0, 1), "a: a normal distribution has no bounds"),
        (of_ray.qrandn(0, 1, 0.1), "a: a normal distribution has no bounds"),
        (of_ray.qloguniform(0.1, 1, 0.1), "a: a logarithmic range with steps of 0.1"),
        (of_ray.qlograndint(2, 16, 2), "a: a logarithmic range with steps of 2"),
        (of_ray.choice([]), "a: there is nothing to choose from"),
        (of_ray.choice([int, float]), "a: the choice <class 'int'> is not a plain value"),
        (of_ray.choice([(1, 2), [1]]), "a: its choices hold both lists and tuples"),
        (of_ray.choice([[1], {3: 1}]), "a: the choice {3: 1} is not a plain value"),
        ([(1, 2)], "a: the constant .* is not a plain value"),
        ([of_ray.uniform(0, 1)], "a: the constant .* is not a plain value"),
        (object, "a: the constant <class 'object'> is not a plain value"),
        ({"b.c": of_ray.uniform(0, 1)}, "the key 'b.c' of a cannot be part"),
        ({3: of_ray.uniform(0, 1)}, "the key 3 of a cannot be part"),
    ],
)
def test_what_has_no_counterpart_is_refused_with_its_place(value, message):
    with pytest.raises(UserError, match=message):
        read_space({"a": value, "x": of_ray.uniform(0, 1)})


def test_a_space_without_a_range_is_refused():
    with pytest.raises(UserError, match="nothing to search"):
        read_space({"a": 1})


def test_the_names_of_ray_tune_are_its_own_objects_and_unknown_ones_say_where_to_look():
    assert tune.loguniform is of_ray.loguniform
    assert tune.TuneConfig is of_ray.TuneConfig
    assert tune.schedulers.ASHAScheduler
    with pytest.raises(AttributeError, match="start with Tuner"):
        _ = tune.runs
