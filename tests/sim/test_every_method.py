"""Every sampler and pruner that a study file can name, on every kind of space and with arguments at
their edges."""

import copy
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
import pytest

from benchmarks.simulation.running import simulate
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.errors import SpecError
from hpsearch.search.searcher import Searcher
from hpsearch.store.optuna_storage.view import HistoryStorage
from hpsearch.study_file import methods
from hpsearch.study_file.methods import CURVE_GP, MULTI_OBJECTIVE, PRUNERS, RANGES, SAMPLERS
from support.studies.small import Simulation, budget_of, search_by, spec_with

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # what a class of Optuna's remarks on is not what is tested here

FLOAT = {"type": "float", "low": 0.0, "high": 1.0}
STEPPED = {**FLOAT, "step": 0.25}
TENTHS = {"type": "float", "low": 0.1, "high": 0.9, "step": 0.1}
LOG = {"type": "float", "low": 1e-5, "high": 1e-1, "log": True}
WHOLE = {"type": "int", "low": 1, "high": 3}
LETTERS = {"type": "categorical", "choices": ["a", "b"]}

SPACES: dict[str, dict[str, Any]] = {
    "float": {"x": FLOAT},
    "stepped": {"x": STEPPED},
    "one value": {"x": {"type": "float", "low": 0.5, "high": 0.5}, "k": WHOLE},
    "int": {"k": WHOLE, "l": {"type": "int", "low": 1, "high": 64, "log": True}},
    "categorical": {
        "c": {"type": "categorical", "choices": ["a", 1, 2.5, None]},
        "one": {**LETTERS, "choices": ["a"]},
    },
    "conditional": {
        "c": LETTERS,
        "x": {**STEPPED, "when": {"c": "a"}},
        "k": {**WHOLE, "when": {"c": "b"}},
    },
    "lists": {
        "c": {"type": "categorical", "choices": [[64], [64, 64], {"b": [1], "a": 2}, [], "[64"]},
        "k": {**WHOLE, "when": {"c": [[64], {"a": 2, "b": [1]}]}},
        "x": {**STEPPED, "when": "c == '[64,64]'"},
    },
    "all": {"lr": LOG, "k": WHOLE, "c": LETTERS, "x": {**FLOAT, "when": {"c": "b"}}},
}

PLENTY = budget_of(500)

ENDLESS = ("float", "one value", "all")
"""Spaces that brute force is refused for."""

SIZES = {
    "stepped": 5,
    "one value": 3,
    "int": 3 * 64,
    "categorical": 4,
    "conditional": 5 + 3,
    "lists": 3 + 3 + 5 + 2,
}
"""The configurations of the finite spaces."""

NEEDED: dict[str, dict[str, Any]] = {
    "PercentilePruner": {"percentile": 25.0},
    "PatientPruner": {"wrapped_pruner": "median", "patience": 1},
    "ThresholdPruner": {"upper": 2.0},
}
"""Arguments that a class cannot do without."""

SOON: dict[str, dict[str, Any]] = {
    "TPESampler": {"n_startup_trials": 2},
    "CmaEsSampler": {"n_startup_trials": 2},
    "GPSampler": {"n_startup_trials": 2},
    "NSGAIISampler": {"population_size": 2},
    "NSGAIIISampler": {"population_size": 2},
}
"""Arguments with which a sampler does its own work from the third trial on."""


class Slope:
    """Two losses that pull in different directions, of whatever parameters there are."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        numbers = [value for value in params.values() if isinstance(value, int | float)]
        where = sum(numbers) / (1 + len(numbers))
        return {"loss": (where - 0.3) ** 2 + 1 / (1 + resource), "size": 1 / (1 + where)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource


def run(
    sampler: Any, pruner: Any, space: Mapping[str, Any], objectives: int = 1, trials: int = 12
) -> History:
    metrics = [{"metric": metric, "direction": "minimize"} for metric in ("loss", "size")][
        :objectives
    ]
    spec = spec_with(
        space=dict(space),
        objective=metrics,
        search=search_by(sampler, pruner),
        budget=budget_of(trials),
    )
    return simulate(spec, Slope(), 2)


@pytest.mark.cases(12)
@pytest.mark.parametrize("objectives", [1, 2])
@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("sampler", [CURVE_GP, *SAMPLERS])
def test_every_sampler_searches_every_space_or_is_refused_with_its_place(
    sampler, space, objectives
):
    name = SAMPLERS.get(sampler, "")
    written = {"kind": sampler, **SOON.get(name, {})}
    if objectives == 2 and name not in MULTI_OBJECTIVE:
        with pytest.raises(
            SpecError, match=rf"yaml:\d+: search.sampler: {sampler} supports only one objective"
        ):
            run(written, "none", SPACES[space], objectives)
    elif sampler == "brute_force" and space in ENDLESS:
        with pytest.raises(SpecError, match=r"yaml:\d+: space.\w+: brute_force tries every value"):
            run(written, "none", SPACES[space], objectives)
    else:
        done = run(written, "promotion", SPACES[space], objectives)
        assert done.study.state is StudyState.FINISHED
        assert all(trial.value is not None for trial in done.trials)
        assert len(done.trials) == min(12, SIZES.get(space, 12))
        assert len(set(map(configuration, done.trials))) == len(done.trials)


@pytest.mark.parametrize("sampler", [CURVE_GP, *SAMPLERS])
def test_every_sampler_draws_the_points_of_a_grid_that_people_would_write(sampler):
    space = {"s": TENTHS, "x": {**STEPPED, "when": {"s": [0.3, 0.6, 0.7, 0.9]}}}
    method = {"kind": sampler, **SOON.get(SAMPLERS.get(sampler, ""), {})}
    tried = [trial.params for trial in run(method, "none", space, trials=20).trials]
    points = {params["s"] for params in tried}
    assert points <= {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9}
    assert {params["s"] for params in tried if "x" in params} == points & {0.3, 0.6, 0.7, 0.9}


@pytest.mark.parametrize("sampler", [CURVE_GP, *SAMPLERS])
def test_choices_that_are_lists_and_mappings_are_drawn_as_others_are(sampler):
    space = SPACES["lists"]
    requires = ["c != '[]' or k is null"]
    method = {"kind": sampler, **SOON.get(SAMPLERS.get(sampler, ""), {})}
    spec = spec_with(
        space=space,
        requires=requires,
        search=search_by(method, "promotion"),
        enqueue=[{"c": {"a": 2.0, "b": [1]}, "k": 2}],
        budget=budget_of(12),
    )
    done = simulate(spec, Slope(), 2)
    tried = [trial.params["c"] for trial in done.trials]
    assert tried[0] == {"b": [1], "a": 2}
    assert all(choice in space["c"]["choices"] for choice in tried)
    assert {type(choice) for choice in tried} >= {dict, list}
    for trial in done.trials:
        assert ("k" in trial.params) == (trial.params["c"] in ([64], {"a": 2, "b": [1]}))
        assert ("x" in trial.params) == (trial.params["c"] == [64, 64])


def test_what_is_asked_for_beside_a_point_of_a_grid_is_that_point():
    space = {"s": TENTHS, "x": {**STEPPED, "when": {"s": 0.3}}}
    spec = spec_with(space=space, enqueue=[{"s": 0.1 + 0.2, "x": 0.5}])
    assert simulate(spec, Slope(), 1).trials[0].params == {"s": 0.3, "x": 0.5}


@pytest.mark.parametrize("sampler", ["tpe", CURVE_GP, "brute_force", "nsgaii"])
@pytest.mark.parametrize("space", ["stepped", "categorical", "conditional", "lists"])
def test_a_space_that_is_used_up_ends_the_study(sampler, space):
    done = run(sampler, "promotion", SPACES[space], trials=500)
    tried = list(map(configuration, done.trials))
    assert len(tried) == len(set(tried)) == SIZES[space]
    assert done.study.reason == "all configurations of the space have been tried"


def configuration(trial: Trial) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in trial.params.items()))


@pytest.mark.parametrize("sampler", ["tpe", CURVE_GP])
def test_a_study_that_is_resumed_proposes_the_same_rest_of_its_space(sampler):
    search = search_by(sampler)
    spec = spec_with(space=SPACES["conditional"], search=search, budget=PLENTY)
    whole = Simulation(spec, curves=Slope(), workers=1).run().history
    for count in range(1, len(whole.trials)):
        begun = History(whole.study, copy.deepcopy(whole.trials[:count]))
        proposals = Searcher(spec, begun, HistoryStorage(begun)).proposals
        assert not proposals.exhausted
        following = begun.add_trial(Trial(count, State.QUEUED, {}))
        proposals.propose(following)
        assert following.params == whole.trials[count].params


def test_a_trial_whose_worker_was_lost_keeps_its_configuration_to_itself():
    spec = spec_with(space={"x": STEPPED}, search={"sampler": "brute_force"})
    done = Simulation(spec, workers=3, losses=(15.0, 30.0, 45.0)).run()
    assert sorted(trial.params["x"] for trial in done.history.trials) == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert any(len(trial.attempts) > 1 for trial in done.history.trials)


def test_what_is_asked_for_is_tried_though_brute_force_has_no_other_left():
    spec = spec_with(
        space={"x": STEPPED}, search={"sampler": "brute_force"}, enqueue=[{"x": 0.5}, {"x": 0.5}]
    )
    done = Simulation(spec).run()
    assert [trial.params["x"] for trial in done.history.trials[:2]] == [0.5, 0.5]
    assert sorted({trial.params["x"] for trial in done.history.trials}) == [
        *(0.0, 0.25, 0.5, 0.75, 1.0),
    ]


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("kind", ["sobol", "halton"])
def test_a_design_fills_conditional_parameters_too(kind, scramble):
    space = {"c": LETTERS, "x": {**FLOAT, "when": {"c": "a"}}, "y": {**FLOAT, "when": {"c": "b"}}}
    done = run({"kind": "qmc", "qmc_type": kind, "scramble": scramble}, "none", space, trials=32)
    for name in ("x", "y"):
        values = [trial.params[name] for trial in done.trials if name in trial.params]
        quarters = {min(int(value * 4), 3) for value in values}
        assert len(set(values)) == len(values) >= 8
        assert quarters == {0, 1, 2, 3}


def test_a_point_of_a_design_depends_on_the_trials_number_alone():
    space = {"c": LETTERS, "x": {**FLOAT, "when": {"c": "a"}}}
    plain = spec_with(space=space, search={"sampler": "qmc"})
    asked = spec_with(space=space, search={"sampler": "qmc"}, enqueue=[{"c": "a", "x": 0.9}])
    drawn = [[trial.params for trial in run_of(spec).trials[1:]] for spec in (plain, asked)]
    assert drawn[0] == drawn[1]


def run_of(spec: Any) -> History:
    return simulate(spec, Slope(), 2)


def arguments(classes: Mapping[str, str], module: Any) -> Iterator[tuple[str, str]]:
    """Every method with each of its numeric arguments."""
    for kind, name in classes.items():
        schema = methods.arguments_of(getattr(module, name)).model_json_schema()
        for argument, values in schema.get("properties", {}).items():
            if re.search("'type': '(integer|number)'", repr(values)):
                yield kind, argument


SAMPLER_ARGUMENTS = list(arguments(SAMPLERS, optuna.samplers))
PRUNER_ARGUMENTS = list(arguments(PRUNERS, optuna.pruners))


def at_its_edge(name: str, argument: str, value: float) -> dict[str, Any]:
    """Arguments that work, but for one that has this value."""
    more = {"max_resource": 9, "min_resource": 1} if argument == "bootstrap_count" else {}
    known = inspect.signature(
        getattr(optuna.pruners, name, None) or getattr(optuna.samplers, name)
    ).parameters
    return {
        **SOON.get(name, {}),
        **NEEDED.get(name, {}),
        **{k: v for k, v in more.items() if k in known},
        argument: value,
    }


def run_with(place: str, kind: str, name: str, argument: str, value: float) -> History:
    method = {"kind": kind, **at_its_edge(name, argument, value)}
    space = SPACES["all"]
    if place == "sampler":
        return run(method, "none", space, 2 if name in MULTI_OBJECTIVE else 1, trials=5)
    return run("random", method, space, trials=8)


@pytest.mark.parametrize("edge", [0, 1], ids=["least", "most"])
@pytest.mark.parametrize(
    ("place", "kind", "argument"),
    [
        *(("sampler", *each) for each in SAMPLER_ARGUMENTS),
        *(("pruner", *each) for each in PRUNER_ARGUMENTS),
    ],
)
def test_a_number_that_a_method_takes_works_at_the_edge_and_is_refused_past_it(
    place, kind, argument, edge
):
    name = (SAMPLERS if place == "sampler" else PRUNERS)[kind]
    value = RANGES[argument][edge]
    past = (
        (value - 1 if edge == 0 else value * 2) if isinstance(value, int) else (-1e101, 1e101)[edge]
    )
    if (argument, edge) not in OF_TWO:
        done = run_with(place, kind, name, argument, value)
        assert done.study.state is StudyState.FINISHED, done.study.reason
    with pytest.raises(
        SpecError,
        match=rf":\d+: search.{place}.{argument}: (must be text or|should be (greater|less) than) ",
    ):
        run_with(place, kind, name, argument, past)


OF_TWO = {("lower", 1), ("upper", 0)}
"""Edges that exclude another argument, which Optuna sees itself."""


@pytest.mark.parametrize("value", [".nan", ".inf", "-.inf"])
def test_what_is_not_a_finite_number_is_refused(value):
    number = float(value.replace(".", ""))
    with pytest.raises(SpecError, match=r"search.sampler.prior_weight: should be a finite number"):
        run({"kind": "tpe", "prior_weight": number}, "none", SPACES["float"])


def test_brute_force_is_refused_for_more_values_than_it_can_list():
    with pytest.raises(
        SpecError,
        match=r"space.k: brute_force tries every value, and this parameter has over 10000",
    ):
        run("brute_force", "none", {"k": {"type": "int", "low": 0, "high": 10**9}})
