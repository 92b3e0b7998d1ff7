"""Study files whose trials train on folds or with several seeds."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.errors import SpecError
from hpsearch.study_file.levels import rung_levels, trial_budget
from hpsearch.study_file.reading import parse
from support.studies.small import spec_with
from trials.contract import Budget, Unit

TABLE = {"kind": "tabular", "train": "train.csv", "target": "y"}
SPACE = {"learning_rate": {"type": "float", "low": 0.01, "high": 0.5}}


def in_folds(folds: int = 5, **changes: Any) -> dict[str, Any]:
    return {"trials": 9, "per_trial": {"epochs": 4, "folds": folds, **changes}}


def problem_of(**changes: Any) -> str:
    with pytest.raises(SpecError) as caught:
        spec_with(**changes)
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("folds", "rungs"), [(2, (1, 2)), (3, (1, 3)), (5, (1, 2, 5)), (10, (1, 3, 10))]
)
def test_a_report_follows_each_fold_and_the_first_folds_are_rungs(folds, rungs):
    spec = spec_with(budget=in_folds(folds))
    budget = trial_budget(spec)
    assert (budget.unit, budget.total) == (Unit.FOLDS, folds)
    assert budget.report_at == tuple(map(float, range(1, folds + 1)))
    assert budget.each == Budget(Unit.EPOCHS, 4.0, (1.0, 2.0, 3.0, 4.0))
    assert rung_levels(spec) == rungs


def test_reports_within_a_fold_are_as_often_as_the_file_says():
    each = trial_budget(spec_with(budget=in_folds(report_every=2))).each
    assert each is not None
    assert each.report_at == (2.0, 4.0)


def test_a_table_needs_no_validation_data_where_folds_are_made_of_its_training_data():
    budget = {"trials": 9, "per_trial": {"steps": 4, "folds": 5}}
    spec = spec_with(task=TABLE, space=SPACE, budget=budget)
    assert spec.task["validation"] == "5 folds"
    assert parse(spec.text, base=Path("/nowhere"), recorded=True).task == spec.task
    assert "folds" not in yaml.safe_dump(yaml.safe_load(spec.text)["task"])


ON_TABLE = {"task": TABLE, "space": SPACE}
TREES = {"trials": 9, "per_trial": {"steps": 4, "folds": 5}}
SEEDS = {"trials": 9, "per_trial": {"epochs": 4, "seeds": 3}}


def command(run: str, **sections: Any) -> dict[str, Any]:
    return {"task": {"kind": "command", "run": run}, **sections}


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "one fold": (
        {"budget": in_folds(1)},
        "budget.per_trial.folds: should be greater than or equal to 2, not 1",
    ),
    "one fold for a command that takes it": (
        {**command("python t.py {x} {fold} {folds}"), "budget": in_folds(1)},
        "budget.per_trial.folds: should be greater than or equal to 2, not 1",
    ),
    "folds and seeds": (
        {"budget": in_folds(seeds=3)},
        "budget.per_trial.seeds: cannot be combined with folds",
    ),
    "folds alone": (
        {"budget": {"trials": 9, "per_trial": {"folds": 5}}},
        "budget.per_trial: sets no length",
    ),
    "validation data": (
        {"task": {**TABLE, "validation": "other.csv"}, "space": SPACE, "budget": TREES},
        "task.validation: the folds of task.train are what trials are measured on; remove it",
    ),
    "no validation data": (
        {**ON_TABLE, "budget": {"trials": 9, "per_trial": {"steps": 4, "seeds": 3}}},
        "task.validation: is missing",
    ),
    "epochs of trees": (
        {**ON_TABLE, "budget": in_folds()},
        "budget.per_trial.epochs: a tabular task has no epochs to count; give steps or seconds",
    ),
    "a command that is not told its fold": (
        command("train {x}", budget=in_folds()),
        "budget.per_trial.folds: the command does not use {fold}, so that all folds are alike",
    ),
    "a command that is not told its seed": (
        command("train {x}", budget=SEEDS),
        "budget.per_trial.seeds: the command does not use {seed}, so that all seeds are alike",
    ),
    "a fold without folds": (
        command("train {x} {fold}"),
        "task.run: nothing is named fold, so {fold} has no value",
    ),
    "trials that are asked for": (
        {"task": {"kind": "ask"}, "budget": in_folds()},
        "budget.per_trial.folds: the program that asks for trials decides itself what",
    ),
    "code of a library": (
        {"task": {"kind": "mine:objective", "library": "optuna"}, "budget": in_folds()},
        "budget.per_trial.folds: optuna decides itself what a trial trains",
    ),
    "several processes": (
        {"resources": {"processes": 2}, "budget": in_folds()},
        "resources.processes: folds are trained by one process",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_go_with_folds_or_seeds_is_refused_with_what_to_do(case):
    changes, expected = WRONG[case]
    assert expected in problem_of(**changes)


def test_a_command_may_have_a_parameter_named_fold_where_there_are_no_folds():
    task = {"kind": "command", "run": "train {x} {fold}"}
    assert spec_with(task=task, settings={"fold": 1})
