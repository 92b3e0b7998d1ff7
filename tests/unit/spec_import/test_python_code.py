"""Study files from Python code of Ray Tune and Optuna, which is never run."""

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


TUNE = """\
from ray import tune
from ray.tune.schedulers import ASHAScheduler

LOW = 1e-4


def train(config): ...


space = {
    "lr": tune.loguniform(LOW, 10 ** -1),
    "layers": tune.randint(1, 5),
    "opt": {"name": tune.choice(["sgd", "adam"]), "m": tune.uniform(0, 1)},
    "epochs": 10,
    "data": load(),
    "s": tune.sample_from(lambda spec: 1),
}
scheduler = ASHAScheduler(max_t=27, grace_period=3, reduction_factor=3)
if __name__ == "__main__":
    tuner = tune.Tuner(
        tune.with_resources(train, {"cpu": 2}),
        param_space=space,
        tune_config=tune.TuneConfig(
            metric="acc", mode="max", num_samples=50, scheduler=scheduler, search_alg=Search()
        ),
        run_config=tune.RunConfig(name="exp", stop={"training_iteration": 27, "acc": 0.9}),
    )
"""


def test_a_tuner_becomes_a_study_of_its_own_function(tmp_path: Path) -> None:
    draft, spec = made(tmp_path, TUNE)
    assert spec["study"] == "exp"
    assert spec["task"] == {"kind": "search:train", "library": "ray_tune"}
    assert spec["space"] == {
        "lr": {"type": "float", "low": 0.0001, "high": 0.1, "log": True},
        "layers": {"type": "int", "low": 1, "high": 4},
        "opt.name": {"type": "categorical", "choices": ["sgd", "adam"]},
        "opt.m": {"type": "float", "low": 0.0, "high": 1.0},
    }
    assert spec["settings"] == {"epochs": 10}
    assert spec["objective"] == {"metric": "acc", "direction": "maximize"}
    assert spec["budget"] == {"trials": 50, "per_trial": {"steps": 27}}
    assert spec["search"] == {"pruner": {"kind": "promotion", "eta": 3, "first_rung": 3}}
    for text in (
        "line 16: data cannot be carried over: only running the code tells what load() is",
        "line 17: s cannot be carried over: sample_from runs code for each value",
        "line 22: with_resources cannot be carried over",
        "line 25: Search() cannot be carried over",
        "stop at acc cannot be carried over",
    ):
        assert text in said(draft)
        assert text in draft.text("search.py")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("uniform(0, 1)", {"type": "float", "low": 0.0, "high": 1.0}),
        ("quniform(0, 1, 0.25)", {"type": "float", "low": 0.0, "high": 1.0, "step": 0.25}),
        ("loguniform(lower=1, upper=9)", {"type": "float", "low": 1.0, "high": 9.0, "log": True}),
        ("qloguniform(1, 9, 2)", {"type": "float", "low": 1.0, "high": 9.0, "log": True}),
        ("randn(1, 2)", {"type": "float", "low": -3.0, "high": 5.0, "prior": 1.0}),
        ("qrandn(1, 2, 0.5)", {"type": "float", "low": -3.0, "high": 5.0, "prior": 1.0}),
        ("randint(1, 9)", {"type": "int", "low": 1, "high": 8}),
        ("qrandint(2, 8, 2)", {"type": "int", "low": 2, "high": 8, "step": 2}),
        ("lograndint(1, 9)", {"type": "int", "low": 1, "high": 8, "log": True}),
        ("qlograndint(2, 8, 2)", {"type": "int", "low": 2, "high": 8, "log": True}),
        ("choice([1, None])", {"type": "categorical", "choices": [1, None]}),
        ("grid_search([1, 2])", {"type": "categorical", "choices": [1, 2]}),
    ],
)
def test_each_space_of_tune_becomes_a_parameter(
    call: str, expected: dict[str, Any], tmp_path: Path
) -> None:
    _, spec = made(
        tmp_path, f"tune.run(train, config={{'x': tune.{call}}}, metric='a', mode='min')"
    )
    assert spec["space"] == {"x": expected}
    assert spec["task"]["kind"] == "search:train"


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
