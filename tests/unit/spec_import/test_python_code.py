"""Study files from Python code of Optuna, which is never run."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import yaml

from hpsearch.spec_import.draft import StudyDraft
from hpsearch.spec_import.python_code import Code, Unknown
from hpsearch.spec_import.source import draft_of
from hpsearch.study_file.reading import space_in


def made(folder: Path, text: str) -> tuple[StudyDraft, dict[str, Any]]:
    """The draft of a file, and its study file; its space is right."""
    path = folder / "search.py"
    path.write_text(f"raise SystemExit('this code must not run')\n{text}")
    draft = draft_of(path)
    spec = yaml.safe_load(draft.text(path.name))
    assert space_in(spec.get("space", {"x": {"type": "int", "low": 1, "high": 2}}))[1] == []
    return draft, spec


def said(draft: StudyDraft) -> str:
    return "\n".join(map(str, draft.remarks))


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("-1e-3", -0.001),
        ("10 ** -2", 0.01),
        ("2**4 + 1", 17),
        ("LOW / 2", 0.25),
        ("[16 * 2, (1, 'a')]", [32, [1, "a"]]),
        ("list(range(1, 4))", [1, 2, 3]),
        ("dict(a=1, b={'c': LOW})", {"a": 1, "b": {"c": 0.5}}),
        ("float('1e-3')", 0.001),
        ("sorted([2, 1])", [1, 2]),
    ],
)
def test_values_that_are_written_are_known(expression: str, value: Any) -> None:
    code = Code(f"LOW = 0.5\nHIGH: float = LOW\nx = {expression}\n")
    assert code.value(ast.Name("x")) == value


@pytest.mark.parametrize(
    "expression",
    ["f(1)", "np.log(2)", "TWICE", "list(range(10**9))", "9**9**9**9", "1 / 0", "x.y", "-'a'", "y"],
)
def test_values_that_only_running_would_tell_are_unknown(expression: str) -> None:
    code = Code(f"TWICE = 1\nTWICE = 2\ny = y\nx = {expression}\n")
    with pytest.raises(Unknown):
        code.value(ast.Name("x"))


OPTUNA = """\
import optuna


def objective(trial):
    lr = trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam", "lion"])
    if optimizer == "sgd":
        momentum = trial.suggest_float("momentum", 0, 1)
    elif optimizer in ("adam",):
        beta = trial.suggest_uniform("beta", 0.8, 1)
    else:
        other = trial.suggest_int("other", 1, 9, step=2)
    layers = trial.suggest_int("layers", 1, 4)
    for i in range(layers):
        trial.suggest_int(f"width_{i}", 8, 64)
    if layers > 2:
        trial.suggest_float("drop", 0.0, 0.5)
    nesterov = trial.suggest_categorical("nesterov", [True, False])
    if nesterov:
        trial.suggest_loguniform("decay", 1e-4, 1)
    one = trial.suggest_float("one", 0, 1) if layers == 1 else trial.suggest_int("two", 1, 9)
    drawn = nesterov and trial.suggest_float("drawn", 0, 1)
    high = trial.suggest_float("high", 0, layers)
    twice = trial.suggest_float("twice", 0, 1), trial.suggest_float("twice", 0, 1)
    for step in range(20):
        trial.report(0.1, step)
    return 0.1


study = optuna.create_study(
    direction="maximize", sampler=CmaEsSampler(), pruner=optuna.pruners.MedianPruner()
)
study.optimize(objective, n_trials=100, timeout=600)
"""


def test_an_objective_is_kept_with_the_space_that_its_code_states(tmp_path: Path) -> None:
    draft, spec = made(tmp_path, OPTUNA)
    assert spec["task"] == {"kind": "search:objective", "library": "optuna"}
    assert spec["space"] == {
        "lr": {"type": "float", "low": 1e-5, "high": 0.1, "log": True},
        "optimizer": {"type": "categorical", "choices": ["sgd", "adam", "lion"]},
        "momentum": {"type": "float", "low": 0.0, "high": 1.0, "when": {"optimizer": ["sgd"]}},
        "beta": {"type": "float", "low": 0.8, "high": 1.0, "when": {"optimizer": ["adam"]}},
        "other": {
            "type": "int",
            "low": 1,
            "high": 9,
            "step": 2,
            "when": {"optimizer": ["lion"]},
        },
        "layers": {"type": "int", "low": 1, "high": 4},
        "nesterov": {"type": "categorical", "choices": [True, False]},
        "decay": {
            "type": "float",
            "low": 1e-4,
            "high": 1.0,
            "log": True,
            "when": {"nesterov": [True]},
        },
        "one": {"type": "float", "low": 0.0, "high": 1.0, "when": {"layers": [1]}},
    }
    assert spec["objective"] == {"metric": "value", "direction": "maximize"}
    assert spec["budget"] == {"trials": 100, "wall_clock": 600, "per_trial": {"steps": 20}}
    assert spec["search"] == {"sampler": "cmaes", "pruner": "median"}
    for text in (
        "line 16: trial.suggest_int(f'width_{i}', 8, 64) is left to the objective",
        "line 18: drop is left to the objective",
        "line 23: drawn is left to the objective",
        "line 24: high is left to the objective, which draws it itself: only running the code",
        "line 25: twice is left to the objective, which draws it itself: it is suggested in",
    ):
        assert text in said(draft)


def test_what_a_condition_needs_is_there(tmp_path: Path) -> None:
    text = (
        "def objective(t):\n    kind = t.suggest_categorical('kind', ['x', 'y'])\n"
        "    if kind == 'z':\n        t.suggest_float('never', 0, 1)\n"
        "    sub = t.suggest_categorical('sub', [1, 2]) if kind == 'x' else 0\n"
        "    deep = t.suggest_int('deep', 1, 9) if sub == 1 else 0\n"
        "    sub = t.suggest_categorical('sub', [1, 2, 3])\n"
    )
    draft, spec = made(tmp_path, text)
    assert list(spec["space"]) == ["kind"]
    assert "never is left to the objective, which draws it itself: its condition" in said(draft)
    assert "deep is left to the objective, which draws it itself: it depends on" in said(draft)


def test_a_variable_of_another_function_is_no_condition(tmp_path: Path) -> None:
    text = (
        "def a(t):\n    kind = t.suggest_categorical('kind', ['x', 'y'])\n"
        "def b(t, kind):\n    if kind == 'x':\n        t.suggest_float('z', 0, 1)\n"
    )
    draft, spec = made(tmp_path, text)
    assert list(spec["space"]) == ["kind"]
    assert "z is left to the objective" in said(draft)


def test_an_objective_whose_space_is_unknown_is_kept_alone(tmp_path: Path) -> None:
    text = "def objective(t):\n    return t.suggest_float(name(), 0, 1)\n"
    _, spec = made(tmp_path, text)
    assert "space" not in spec
    assert spec["task"]["kind"] == "search:objective"
    assert spec["budget"]["trials"] == 20


def test_several_objectives_and_a_lambda(tmp_path: Path) -> None:
    text = (
        "def f(t):\n    return t.suggest_float('x', 0, 1), 1\n"
        "s = optuna.create_study(directions=['maximize', 'minimize'])\n"
        "s.optimize(lambda t: f(t), 30)\n"
    )
    draft, spec = made(tmp_path, text)
    assert [each["direction"] for each in spec["objective"]] == ["maximize", "minimize"]
    assert spec["task"]["kind"] == "search:f"
    assert spec["budget"]["trials"] == 30
    assert "is not a function at the top of this file" in said(draft)
