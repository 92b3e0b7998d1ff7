"""Study files from sweeps of W&B."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.errors import SpecError, UserError
from hpsearch.plugins.wandb.sweep import DISTRIBUTIONS, REFUSED, WITHOUT_BOUNDS
from hpsearch.plugins.wandb.translate import WITHOUT_PLACE, translate
from hpsearch.study_file.reading import parse
from hpsearch.study_file.starters.draft import StudyDraft

USUAL: dict[str, Any] = {
    "program": "train.py",
    "method": "bayes",
    "metric": {"name": "val_loss", "goal": "minimize"},
    "parameters": {"lr": {"min": 0.1, "max": 0.5}},
    "run_cap": 9,
}


def made(folder: Path, **changes: Any) -> tuple[StudyDraft, dict[str, Any]]:
    """The draft of a sweep, and its study file, which has nothing left to complain about."""
    path = folder / "sweep.yaml"
    document = {key: value for key, value in (USUAL | changes).items() if value is not None}
    path.write_text(yaml.safe_dump(document, sort_keys=False))
    draft = translate(str(path), None)
    text = draft.text()
    parse(text, base=Path())
    return draft, yaml.safe_load(text)


def remarks(draft: StudyDraft) -> str:
    return "\n".join(draft.remarks)


UNIFORM = {"min": 0.5, "max": 4}
ZERO = {"min": 0, "max": 1}
EIGHTS = {"min": 32, "max": 256, "q": 8}
LOGS = {"min": -2, "max": 1}
EXP = {"low": 0.1353352832, "high": 2.718281828, "log": True}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("categorical", {"values": [2, "a", True]}, {"choices": [2, "a", True]}),
        ("int_uniform", {"min": 1, "max": 5}, {"type": "int", "low": 1, "high": 5}),
        ("uniform", UNIFORM, {"low": 0.5, "high": 4.0}),
        ("q_uniform", {"min": 0, "max": 1, "q": 0.1}, {"low": 0.0, "high": 1.0, "step": 0.1}),
        ("q_uniform", {"min": 3, "max": 20, "q": 4}, {"low": 4, "high": 20, "step": 4}),
        ("q_uniform", {"min": 0.5, "max": 4}, {"type": "int", "low": 1, "high": 4}),
        ("log_uniform", LOGS, EXP),
        ("log_uniform_values", UNIFORM, {"low": 0.5, "high": 4.0, "log": True}),
        ("q_log_uniform_values", UNIFORM, {"type": "int", "low": 1, "high": 4, "log": True}),
        ("q_log_uniform_values", EIGHTS, {"type": "int", "low": 32, "high": 256, "step": 8}),
        ("q_log_uniform", {"min": 0, "max": 2}, {"type": "int", "low": 1, "high": 7, "log": True}),
        ("inv_log_uniform_values", UNIFORM, {"low": 0.5, "high": 4.0, "log": True}),
        ("inv_log_uniform", {"min": -1, "max": 2}, EXP),
        ("categorical_w_probabilities", {"values": [1, 2], "probabilities": [0.5, 0.5]}, {}),
    ],
)
def test_each_distribution_becomes_a_parameter(kind, given, expected, tmp_path):
    _, spec = made(tmp_path, parameters={"x": {"distribution": kind, **given}})
    found = spec["space"]["x"]
    assert {key: found[key] for key in expected} == expected


def test_no_distribution_is_forgotten_above():
    (cases,) = test_each_distribution_becomes_a_parameter.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in cases.args[1]} | {"constant"} == set(DISTRIBUTIONS)


def test_what_states_no_distribution_has_the_usual_one(tmp_path):
    parameters = {"a": {"min": 1, "max": 3}, "b": {"min": 1.0, "max": 3}, "c": {"values": [1, 2]}}
    _, spec = made(tmp_path, parameters=parameters)
    assert [each["type"] for each in spec["space"].values()] == ["int", "float", "categorical"]


def test_constants_are_in_the_config_and_the_length_is_the_budget(tmp_path):
    parameters = {
        "lr": {"min": 0.1, "max": 0.5},
        "seed": {"value": 3},
        "epochs": {"value": 12},
        "momentum": {"value": 0.9},
    }
    draft, spec = made(tmp_path, parameters=parameters)
    assert spec["task"] == {
        "kind": "command",
        "library": "wandb",
        "run": "python train.py ${args}",
        "config": {"seed": "{seed}", "epochs": "{budget}", "momentum": 0.9},
    }
    assert spec["budget"] == {"trials": 9, "per_trial": {"epochs": 12}}
    assert "epochs is how long a trial trains: {budget}" in remarks(draft)
    assert "seed is the trial's own" in remarks(draft)


def test_nested_parts_keep_their_places_and_numbers_that_yaml_takes_for_text_are_numbers(tmp_path):
    inner = {"depth": {"values": [1, 2]}, "kind": {"value": "mlp"}}
    _, spec = made(tmp_path, parameters={"model": {"parameters": inner}, "a.b": {"values": [1, 2]}})
    assert list(spec["space"]) == ["model.depth", "a.b"]
    assert spec["task"]["config"] == {"model": {"kind": "mlp"}}
    parameters = {"lr": {"min": "1e-4", "max": "1E-1"}, "decay": {"values": [0, "1e-3", "none"]}}
    _, spec = made(tmp_path, parameters=parameters)
    assert spec["space"]["lr"] == {"type": "float", "low": 0.0001, "high": 0.1}
    assert spec["space"]["decay"]["choices"] == [0, 0.001, "none"]


@pytest.mark.parametrize(
    ("command", "run"),
    [
        (["${env}", "${interpreter}", "${program}"], "/usr/bin/env python 'my train.py'"),
        (
            ["python3", "${program}", "${args_no_hyphens}"],
            "python3 'my train.py' ${args_no_hyphens}",
        ),
        (["run.sh", "a b", 3], "run.sh 'a b' 3"),
        (["x", "--d=${envvar:DATA}/in", "${args_json}"], "x '--d=${envvar:DATA}/in' ${args_json}"),
        (["sh", "-c", "train {} ${args}"], "sh -c 'train {{}} ${{args}}'"),
    ],
)
def test_a_command_is_carried_over_word_by_word(command, run, tmp_path):
    _, spec = made(tmp_path, program="my train.py", command=command)
    assert spec["task"]["run"] == run


@pytest.mark.parametrize(
    ("method", "search"),
    [("bayes", {}), ("random", {"sampler": "random"}), ("grid", {"sampler": "random"})],
)
def test_methods_become_samplers(method, search, tmp_path):
    _, spec = made(tmp_path, method=method)
    assert spec["search"] == {**search, "pruner": "none"}


def test_a_grid_of_choices_is_tried_in_full(tmp_path):
    parameters = {"a": {"values": [1, 2]}, "b": {"min": 1, "max": 12}}
    _, spec = made(tmp_path, method="grid", parameters=parameters, run_cap=None)
    assert spec["search"]["sampler"] == "brute_force"
    assert spec["budget"]["trials"] == 24


@pytest.mark.parametrize(
    ("stated", "first", "eta"),
    [
        ({"min_iter": 5}, 5, 3),
        ({"max_iter": 27, "s": 2}, 3, 3),
        ({"max_iter": 27, "s": 9}, 1, 3),
        ({"max_iter": 27}, 1, 3),
        ({"max_iter": 64, "s": 2, "eta": 4}, 4, 4),
    ],
)
def test_hyperband_ends_trials_from_its_first_bracket_on(stated, first, eta, tmp_path):
    draft, spec = made(tmp_path, early_terminate={"type": "hyperband", **stated})
    pruner = {"kind": "successive_halving", "min_resource": first, "reduction_factor": eta}
    assert spec["search"] == {"pruner": pruner}
    assert spec["budget"]["per_trial"]["steps"] == stated.get("max_iter", 30)
    assert f"weak trials end at {first}, {first * eta}, " in remarks(draft)


def test_the_target_ends_the_study(tmp_path):
    metric = {"name": "acc", "goal": "maximize", "target": 0.9}
    _, spec = made(tmp_path, metric=metric)
    assert spec["objective"] == {"metric": "acc", "direction": "maximize"}
    assert spec["budget"]["target"] == 0.9


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"metric": None}, "metric: is missing; add metric: {name"),
        ({"metric": {"goal": "minimize"}}, "metric.name: is missing"),
        ({"metric": {"name": "a", "goal": "max"}}, "metric.goal: should be 'minimize' or"),
        ({"metric": {"name": "a", "gaol": "max"}}, "metric.gaol: unknown key; did you mean goal?"),
        ({"metric": {"name": "a", "target": "low"}}, "metric.target: should be a valid number"),
        ({"method": "annealing"}, "method: should be 'bayes', 'random' or 'grid'"),
        ({"program": None}, "program: is missing"),
        ({"command": "python train.py"}, "command: should be a valid list"),
        ({"command": ["${pogram}"]}, "${pogram} is not one of ${env}"),
        ({"run_cap": "many"}, "run_cap: should be a valid integer"),
        ({"early_terminate": {"type": "envelope"}}, "early_terminate.type: should be 'hyperband'"),
        ({"early_terminate": {"type": "hyperband"}}, "neither min_iter nor max_iter"),
        ({"early_terminate": {"type": "hyperband", "min_iter": 2, "eta": 1.5}}, "eta: should be"),
        ({"early_terminate": {"type": "hyperband", "miniter": 2}}, "miniter: unknown key"),
        ({"paramters": {}}, "paramters: unknown key"),
        *(({key: {"a": 1}}, f"{key}: ") for key in REFUSED),
        ({"parameters": {"lr": {"min": 1}}}, "lr.max: is missing"),
        ({"parameters": {"lr": {"min": 1, "max": 2, "q": 2}}}, "lr.q: unknown key"),
        ({"parameters": {"lr": {"min": "low", "max": 2}}}, "lr.min: should be a valid number"),
        ({"parameters": {"lr": {"mu": 1, "sigma": 2}}}, "lr: has the distribution normal"),
        ({"parameters": {"lr": {"value": 1, "valeus": 2}}}, "lr.valeus: unknown key"),
        ({"parameters": {"lr": {"distribution": "constant"}}}, "lr.value: is missing"),
        ({"parameters": {"lr": {"values": []}}}, "lr.values: "),
        ({"parameters": {"lr": {"values": [1, 2], "probabilities": [0.9, 0.1]}}}, "probabilities"),
        ({"parameters": {"m": {"parameters": {}}}}, "must be a mapping of names"),
        ({"parameters": {"m": {"value": {"x": 1}}, "m.y": {"values": [1, 2]}}}, "m.y: has a"),
        ({"parameters": {"x": {"distribution": "log_uniform_values", **ZERO}}}, "bounds above 0"),
    ],
)  # fmt: skip
def test_what_a_study_cannot_have_is_refused_by_its_name(changes, expected, tmp_path):
    with pytest.raises(SpecError) as refused:
        made(tmp_path, **changes)
    (problem,) = refused.value.problems
    assert expected in problem


@pytest.mark.parametrize("kind", WITHOUT_BOUNDS)
def test_a_distribution_without_bounds_is_refused_with_what_to_write(kind, tmp_path):
    with pytest.raises(SpecError, match=f"lr: has the distribution {kind}, .* uniform"):
        made(tmp_path, parameters={"lr": {"distribution": kind}})


def test_parts_that_say_nothing_of_the_search_are_named(tmp_path):
    draft, _ = made(
        tmp_path, **dict.fromkeys(WITHOUT_PLACE, "a"), metric={"name": "a"}, method=None
    )
    assert "without a place in a study: description, project, entity, controller" in draft.remarks
    assert "metric has no goal: minimize, as W&B takes it" in draft.remarks
    assert "the sweep has no method: bayes" in draft.remarks


def test_all_that_cannot_be_carried_over_is_one_error_with_its_lines(tmp_path):
    parameters = {
        "lr": {"min": 0.1, "max": 0.5},
        "odd": {"distribution": "odd"},
        "none": 3,
        "opt": {"parameters": {"name": {"values": "a"}}},
    }
    with pytest.raises(SpecError) as refused:
        made(tmp_path, parameters=parameters)
    lines = [" ".join(problem.split()[:2]) for problem in refused.value.problems]
    assert lines == [
        "sweep.yaml:10: parameters.odd:",
        "sweep.yaml:12: parameters.none:",
        "sweep.yaml:16: parameters.opt.parameters.name.values:",
    ]


def test_a_sweep_with_nothing_to_search_is_refused(tmp_path):
    with pytest.raises(UserError, match="nothing that a study could search"):
        made(tmp_path, parameters={"lr": {"value": 1}})
