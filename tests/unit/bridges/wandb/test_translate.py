"""Study files from sweeps of W&B."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.bridges.draft import StudyDraft
from hpsearch.bridges.wandb.translate import DISTRIBUTIONS, translate
from hpsearch.errors import SpecError, UserError
from hpsearch.study_file.reading import parse

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
    ],
)
def test_each_distribution_becomes_a_parameter(
    kind: str, given: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    _, spec = made(tmp_path, parameters={"x": {"distribution": kind, **given}})
    found = spec["space"]["x"]
    assert {key: found[key] for key in expected} == expected


def test_no_distribution_is_forgotten_above() -> None:
    (cases,) = test_each_distribution_becomes_a_parameter.pytestmark  # type: ignore[attr-defined]
    assert {case[0] for case in cases.args[1]} >= set(DISTRIBUTIONS)


def test_what_states_no_distribution_has_the_usual_one(tmp_path: Path) -> None:
    parameters = {"a": {"min": 1, "max": 3}, "b": {"min": 1.0, "max": 3}, "c": {"values": [1, 2]}}
    _, spec = made(tmp_path, parameters=parameters)
    assert [each["type"] for each in spec["space"].values()] == ["int", "float", "categorical"]


def test_constants_become_settings_and_the_length_the_budget(tmp_path: Path) -> None:
    parameters = {
        "lr": {"min": 0.1, "max": 0.5},
        "seed": {"value": 3},
        "epochs": {"value": 12},
        "momentum": {"value": 0.9},
    }
    draft, spec = made(tmp_path, parameters=parameters)
    assert spec["settings"] == {"momentum": 0.9}
    assert spec["budget"] == {"trials": 9, "per_trial": {"epochs": 12}}
    assert spec["task"]["run"] == (
        "python train.py --lr={lr} --seed={seed} --epochs={budget} --momentum={momentum}"
    )
    assert "epochs is how long a trial trains: {budget}" in remarks(draft)


def test_a_command_of_its_own_is_left_out_with_a_remark(tmp_path: Path) -> None:
    draft, spec = made(tmp_path, program="my train.py", command=["run.sh"])
    assert spec["task"]["run"] == "python 'my train.py' --lr={lr}"
    assert "the sweep's own command is left out" in remarks(draft)


@pytest.mark.parametrize(
    ("method", "search"),
    [("bayes", {}), ("random", {"sampler": "random"}), ("grid", {"sampler": "random"})],
)
def test_methods_become_samplers(method: str, search: dict[str, Any], tmp_path: Path) -> None:
    _, spec = made(tmp_path, method=method)
    assert spec["search"] == {**search, "pruner": "none"}


def test_a_grid_of_choices_is_tried_in_full(tmp_path: Path) -> None:
    _, spec = made(tmp_path, method="grid", parameters={"a": {"values": [1, 2]}}, run_cap=None)
    assert spec["search"]["sampler"] == "brute_force"


def test_early_termination_leaves_the_usual_pruner(tmp_path: Path) -> None:
    draft, spec = made(tmp_path, early_terminate={"type": "hyperband", "max_iter": 27})
    assert "search" not in spec
    assert "weak trials pause instead of ending" in remarks(draft)


def test_the_target_ends_the_study(tmp_path: Path) -> None:
    metric = {"name": "acc", "goal": "maximize", "target": 0.9}
    _, spec = made(tmp_path, metric=metric)
    assert spec["objective"] == {"metric": "acc", "direction": "maximize"}
    assert spec["budget"]["target"] == 0.9


def test_what_cannot_be_carried_over_is_one_error_with_its_lines(tmp_path: Path) -> None:
    parameters = {
        "lr": {"min": 0.1, "max": 0.5},
        "odd": {"distribution": "normal"},
        "opt": {"parameters": {"name": {"values": ["a"]}}},
        "short": {"distribution": "uniform", "min": 1},
        "none": 3,
        "folder": {"value": 3},
    }
    with pytest.raises(SpecError) as refused:
        made(tmp_path, parameters=parameters)
    lines = [problem.partition(" must")[0] for problem in refused.value.problems]
    assert lines == [
        "sweep.yaml:10: odd",
        "sweep.yaml:12: opt",
        "sweep.yaml:17: short",
        "sweep.yaml:20: none",
        "sweep.yaml:21: folder cannot be a placeholder of the command; rename it",
    ]
    assert "one of the distributions categorical, int_uniform" in refused.value.problems[0]


def test_a_sweep_with_nothing_to_search_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nothing that a study could search"):
        made(tmp_path, parameters={"lr": {"value": 1}})
