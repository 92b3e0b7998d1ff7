"""Study files from configurations of Hydra."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.spec_import.draft import StudyDraft, problems_in
from hpsearch.spec_import.hydra_grammar import NotCarried, parameter
from hpsearch.spec_import.source import draft_of


@pytest.mark.parametrize(
    ("sweep", "expected"),
    [
        ("1,2,3", {"choices": [1, 2, 3]}),
        ("a, 'b,c' ,null", {"choices": ["a", "b,c", None]}),
        ("choice(a,true,1e-3)", {"choices": ["a", True, 0.001]}),
        ("choice([1,2],[3])", {"choices": ["[1,2]", "[3]"]}),
        ("shuffle(1,2)", {"choices": [1, 2]}),
        ("shuffle(range(1,4))", {"type": "int", "low": 1, "high": 3}),
        ("sort(3,1,2)", {"choices": [3, 1, 2]}),
        ("range(5)", {"type": "int", "low": 0, "high": 4}),
        ("range(1,8)", {"type": "int", "low": 1, "high": 7}),
        ("range(1,8,2)", {"type": "int", "low": 1, "high": 7, "step": 2}),
        ("range(start=1,stop=9,step=2)", {"type": "int", "low": 1, "high": 7, "step": 2}),
        ("range(0,1,0.25)", {"type": "float", "low": 0.0, "high": 0.75, "step": 0.25}),
        ("float(range(1,4))", {"type": "float", "low": 1.0, "high": 3.0, "step": 1.0}),
        ("interval(-1,2)", {"type": "float", "low": -1.0, "high": 2.0}),
        ("interval(start=0, end=1)", {"type": "float", "low": 0.0, "high": 1.0}),
        ("int(interval(1, 8))", {"type": "int", "low": 1, "high": 8}),
        ("tag(log, interval(1e-4,.1))", {"type": "float", "low": 1e-4, "high": 0.1, "log": True}),
        ("tag(log, int(interval(1,99)))", {"type": "int", "low": 1, "high": 99, "log": True}),
        ("int(tag(log, interval(1,99)))", {"type": "int", "low": 1, "high": 99, "log": True}),
        ("tag(a, b, choice(1,2))", {"choices": [1, 2]}),
        ("str(choice(1,2))", {"choices": ["1", "2"]}),
    ],
)
def test_a_sweep_becomes_a_parameter(sweep: str, expected: dict[str, Any]) -> None:
    found = parameter(sweep, stop_included=False)
    assert {"type": "categorical", **expected} == found


def test_the_stop_belongs_to_a_range_of_optunas_sweeper() -> None:
    assert parameter("range(1,9,step=2)", stop_included=True)["high"] == 9
    assert parameter("range(0,1,step=0.25)", stop_included=True)["high"] == 1.0
    assert parameter("range(1,8,step=3)", stop_included=True)["high"] == 7


@pytest.mark.parametrize(
    ("sweep", "why"),
    [
        ("glob(*)", "depends on the files"),
        ("odd(1,2)", "is not a sweep that is known"),
        ("interval(1)", "needs a start and an end"),
        ("interval(a,b)", "start is 'a', which is not a number"),
        ("range(9,1,-2)", "write it upwards"),
        ("range(4,4)", "empty range"),
        ("choice(1,interval(0,1))", "a choice between sweeps"),
        ("tag(log, choice(1,2))", "goes with an interval only"),
        ("choice(1,2", "a bracket or a quote that is not closed"),
        ("int(choice(a,b))", "not a number"),
        ("str(interval(0,1))", "list the choices"),
    ],
)
def test_what_has_no_form_says_why(sweep: str, why: str) -> None:
    with pytest.raises(NotCarried, match=why.replace("(", r"\(")):
        parameter(sweep, stop_included=False)


OPTUNA = """\
defaults:
  - override hydra/sweeper: optuna
optimized_metric: val/acc
trainer: {max_epochs: 10}
hydra:
  sweeper:
    direction: maximize
    n_trials: 30
    n_jobs: 2
    sampler: {_target_: optuna.samplers.TPESampler, seed: 1}
    study_name: my study
    params:
      model.lr: tag(log, interval(0.0001, 0.1))
      +data.batch: choice(32, 64)
      depth: range(1, 9, step=2)
      files: glob(*)
      only: 5
"""


def made(folder: Path, text: str) -> tuple[StudyDraft, dict[str, Any]]:
    """The draft of a configuration, and its study file, which is right."""
    path = folder / "config.yaml"
    path.write_text(text)
    draft = draft_of(path)
    written = draft.text(path.name)
    assert problems_in(written) == []
    return draft, yaml.safe_load(written)


def test_the_job_becomes_a_command_with_overrides(tmp_path: Path) -> None:
    draft, spec = made(tmp_path, OPTUNA)
    assert spec["study"] == "my-study"
    assert spec["task"] == {
        "kind": "command",
        "run": "python main.py model.lr={model.lr} +data.batch={+data.batch} depth={depth} "
        "only={only} trainer.max_epochs={budget}",
    }
    assert spec["space"]["depth"] == {"type": "int", "low": 1, "high": 9, "step": 2}
    assert spec["objective"] == {"metric": "val/acc", "direction": "maximize"}
    assert spec["budget"] == {"trials": 30, "per_trial": {"epochs": 10}}
    assert spec["search"] == {"sampler": "tpe", "pruner": "none"}
    said = "\n".join(map(str, draft.remarks))
    assert "line 16: files=glob(*) cannot be carried over: glob depends on the files" in said
    assert "line 9: n_jobs: resources.workers" in said
    assert "write yours for main.py" in said


def test_several_directions_become_several_objectives(tmp_path: Path) -> None:
    text = OPTUNA.replace("direction: maximize", "direction: [maximize, minimize]")
    _, spec = made(tmp_path, text)
    assert [each["direction"] for each in spec["objective"]] == ["maximize", "minimize"]


def test_hydras_own_sweeper_has_no_objective(tmp_path: Path) -> None:
    text = "hydra: {sweeper: {params: {lr: '0.1,0.01', n: 'range(1,4)'}}}\n"
    draft, spec = made(tmp_path, text)
    assert spec["space"]["n"] == {"type": "int", "low": 1, "high": 3}
    assert spec["objective"] == {"metric": "value", "direction": "minimize"}
    assert "the basic sweeper states no direction: minimize is assumed" in str(draft.remarks)


@pytest.mark.parametrize(
    "part",
    [
        "search_space: {x: {type: float, low: 0.1, high: 9, log: true}}",
        "ax_config: {max_trials: 7, experiment: {minimize: true}, "
        "params: {x: {type: range, bounds: [0.1, 9], log_scale: true}}}",
    ],
)
def test_older_forms_are_read(part: str, tmp_path: Path) -> None:
    _, spec = made(tmp_path, f"hydra:\n  sweeper:\n    {part}\n")
    assert spec["space"]["x"] == {"type": "float", "low": 0.1, "high": 9, "log": True}
    assert spec["objective"]["direction"] == "minimize"
