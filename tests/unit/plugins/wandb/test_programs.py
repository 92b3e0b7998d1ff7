"""Scripts of W&B sweeps as commands. What needs the real wandb is tested beside the trackers."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hpsearch.cli.studies.check import check_study
from hpsearch.errors import UserError
from hpsearch.plugins.wandb.hook.wandb import Reports
from hpsearch.plugins.wandb.programs import config_of
from trials import tasks
from trials.contract import Budget, ProgramFailed, Setup, Unit


def test_the_config_has_constants_and_parameters_each_in_its_place():
    constants = {
        "model": {"kind": "mlp", "inner": {}},
        "seed": "{seed}",
        "texts": ["{budget}", "{"],
    }
    params = {"model.depth": 2, "model.inner.rate": 0.5, "optim.lr": 0.1, "layers": [8, 8]}
    config = config_of(constants, params, {"seed": 7, "budget": 3})
    assert config == {
        "model": {"kind": "mlp", "inner": {"rate": 0.5}, "depth": 2},
        "seed": 7,
        "texts": [3, "{"],
        "optim.lr": 0.1,
        "layers": [8, 8],
    }
    assert constants["model"] == {"kind": "mlp", "inner": {}}


class Run:
    """A run of wandb's, as far as its summary."""

    def __init__(self, **summary: Any) -> None:
        self.summary = summary


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    return {
        "reports": str(tmp_path / "reports"),
        "summary": str(tmp_path / "summary"),
        "goals": [["acc", True]],
        "total": 5,
    }


def lines(told: dict[str, Any]) -> list[dict[str, float]]:
    file = Path(told["reports"])
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def follow(told: dict[str, Any], run: Run) -> Reports:
    reports = Reports(told, lambda run, data, commit: None)
    reports.begin(run)
    return reports


def test_a_report_is_a_step_with_the_objective_and_the_newest_of_all_else(told):
    run = Run()
    reports = follow(told, run)
    reports.log(run, {"loss": 3}, None, None)
    reports.log(run, {"acc": 0.1, "text": "no", "_own": 1}, None, False)
    assert lines(told) == []
    reports.log(run, {"val": {"f1": 0.5}}, None, None)
    assert lines(told) == [{"_resource": 1, "loss": 3, "acc": 0.1, "val.f1": 0.5}]
    reports.log(run, {"acc": 0.2}, 7, None)
    reports.log(run, {"loss": 2}, 7, None)
    reports.log(run, {"acc": 0.9}, 3, None)  # of a step that is over
    assert len(lines(told)) == 1
    reports.log(run, {"loss": 1}, 8, None)
    assert lines(told)[1:] == [{"_resource": 2, "loss": 2, "acc": 0.2, "val.f1": 0.5}]


def test_the_level_of_the_end_is_that_of_the_summary(told):
    run = Run(acc={"max": 0.7, "min": 0.0}, loss={"min": 1.0}, best="NaN", done=True)
    reports = follow(told, run)
    for value in range(9):
        reports.log(run, {"acc": value}, None, None)
    assert [line["_resource"] for line in lines(told)] == [1, 2, 3, 4]
    reports.end(run)
    found = json.loads(Path(told["summary"]).read_text())
    assert found["logged"] == 9
    assert (found["values"]["acc"], found["values"]["acc.min"]) == (0.7, 0.0)
    assert found["values"]["loss"] == 1.0
    assert found["values"]["best"] != found["values"]["best"]


def test_a_run_that_fails_has_no_summary(told):
    run = Run(acc=1.0)
    reports = follow(told, run)
    reports.end(run, exit_code=1)
    reports.end(run)  # where the process ends
    assert not Path(told["summary"]).exists()


def test_only_the_first_of_several_processes_reports(told):
    first, second = Run(), Run()
    one, other = follow(told, first), follow(dict(told), second)
    one.log(first, {"acc": 0.1}, None, None)
    other.log(second, {"acc": 0.9}, None, None)
    other.end(second)
    assert [line["acc"] for line in lines(told)] == [0.1]
    assert not Path(told["summary"]).exists()


WITHOUT_WANDB = """
import os, sys
sys.path = [each for each in sys.path if not os.path.isdir(os.path.join(each, "wandb"))]
import wandb
"""


@pytest.mark.parametrize(
    ("script", "what"),
    [
        (WITHOUT_WANDB, r"needs wandb in its own Python .* pip install wandb"),
        ("print(1)", "no run of wandb has"),
    ],
)
def test_a_script_without_wandb_or_a_run_fails_with_what_to_do(script, what, tmp_path):
    (tmp_path / "train.py").write_text(script)
    command = f"{sys.executable} train.py ${{args}}"
    task = tasks.load({"kind": "command", "run": command, "library": "wandb"}, tmp_path)
    budget = Budget(Unit.EPOCHS, 3.0, (3.0,))
    setup = Setup({"x": 1}, 5, budget, tmp_path / "trial", log=tmp_path / "log")
    run = task.start(setup, None)
    with pytest.raises(ProgramFailed, match=what):
        list(run)
    assert run.close()
    assert "train.py --x=1\n" in (tmp_path / "log").read_text()


STUDY = """\
study: sweep
task: {kind: command, run: "sh train.sh", library: wandb}
space: {x: {type: float, low: 0, high: 1}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 2}}
"""


def test_no_pattern_is_proposed_for_what_a_script_prints(tmp_path, capfd):
    (tmp_path / "train.sh").write_text("for n in 1 2; do echo Epoch $n/2: acc_val=0.$n; done")
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    with pytest.raises(UserError, match="no run of wandb has"):
        check_study(file, f"sqlite:///{tmp_path / 'studies.db'}", None)
    assert "report: " not in capfd.readouterr().err, "what wandb logs are its reports"
