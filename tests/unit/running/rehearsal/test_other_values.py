"""Parameters that never reach a program, as `hpsearch check` finds them, in every kind of task."""

from pathlib import Path

import pytest

from hpsearch.cli.studies.check import check_study

SPACE = """
space:
  lr: {type: float, low: 0.001, high: 1, log: true}
  mode: {type: categorical, choices: [a, b]}"""

STUDY = """\
study: deaf
task: TASK
objective: {metric: loss, direction: minimize}
budget: {trials: 6, per_trial: {epochs: 3}}
resources: {gpu: 0}
"""

CODE = """\
import time
from hpsearch import tune

def hears(params, trial):
    for epoch in range(1, 4):
        is_b = params["mode"] == "b"
        trial.report(epoch, {"loss": params["lr"] / 7 / epoch + is_b, "took": time.time()})

def deaf(params, trial):
    for epoch in range(1, 4):
        trial.report(epoch, {"loss": 1 / 7 / epoch, "took": time.time()})

def hears_one(params, trial):
    for epoch in range(1, 4):
        trial.report(epoch, {"loss": params["lr"] / 7 / epoch})

def hears_late(params, trial):
    for epoch in range(1, 4):
        trial.report(epoch, {"loss": 1 / 7 if epoch == 1 else params["lr"] / epoch})

def by_chance(params, trial):
    trial.report(3, {"loss": round(params["lr"])})

def noise(params, trial):
    trial.report(3, {"loss": time.time()})

def trainable(config):
    for epoch in range(1, 4):
        tune.report({"loss": 1 / 7 / epoch})

def objective(trial):
    trial.suggest_float("lr", 0.001, 1.0)
    return 1 / 7

def fails_elsewhere(params, trial):
    if params["lr"] > 0.0011:
        raise ValueError("too large")
    trial.report(3, {"loss": 0.5})
"""


def said(folder: Path, task: str, capfd: pytest.CaptureFixture[str], space: str = SPACE) -> str:
    """All lines of a check on parameters."""
    (folder / "deaf_code.py").write_text(CODE)
    file = folder / "study.yaml"
    file.write_text(STUDY.replace("TASK", task) + space)
    check_study(file, f"sqlite:///{folder}/studies.db", None)
    return capfd.readouterr().err


def own(name: str, library: str = "") -> str:
    return f'{{kind: "deaf_code:{name}"{library}}}'


ALL = "PARAMETERS WITHOUT EFFECT: 2 trials with different values of lr, mode have all reported loss"


@pytest.mark.thorough
def test_a_function_that_reads_no_parameter_is_named(tmp_path, capfd):
    assert ALL in said(tmp_path, own("deaf"), capfd)


def test_a_parameter_that_alone_changes_nothing_is_named_and_the_others_are_not(tmp_path, capfd):
    lines = said(tmp_path, own("hears_one"), capfd)
    assert "PARAMETER WITHOUT EFFECT: wherever mode alone differed, trials have" in lines
    assert "WITHOUT EFFECT: lr" not in lines


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["hears", "hears_late", "by_chance", "noise", "fails_elsewhere"])
def test_nothing_is_said_of_a_program_that_reads_them_or_may_do_so(tmp_path, capfd, name):
    space = SPACE if name == "hears" else SPACE.partition("  mode")[0]
    lines = said(tmp_path, own(name), capfd, space)
    assert "WITHOUT EFFECT" not in lines
    assert ("it fails (error): ValueError: too large" in lines) == (name == "fails_elsewhere")


@pytest.mark.thorough
def test_an_objective_a_trainable_and_a_command_that_read_none_are_named(tmp_path, capfd):
    assert ALL in said(tmp_path, own("trainable", ", library: ray_tune"), capfd)
    lines = said(tmp_path, own("objective", ", library: optuna"), capfd, "")
    assert "no difference between 4 trials with different values of lr: all have reported" in lines
    loop = 'for n in 1 2 3; do echo "$n 0.14285714$n"; done'
    command = f"""{{kind: command, run: "sh -c '{loop}' {{lr}} {{mode}}", """.replace('"$n', "$n")
    command = command.replace('$n"; done', "$n; done") + "report: '{resource} {loss}'}"
    assert ALL in said(tmp_path, command, capfd)
