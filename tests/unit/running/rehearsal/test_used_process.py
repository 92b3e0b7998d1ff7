"""Functions whose module remembers a trial before, as `hpsearch check` finds them."""

from pathlib import Path

import pytest

from hpsearch.cli.studies.check import check_study

STUDY = """\
study: used
task: {{kind: "used_code:{}", warm: {}}}
space:
  lr: {{type: float, low: 0.001, high: 1, log: true}}
objective: {{metric: loss, direction: minimize}}
budget: {{trials: 6, per_trial: {{epochs: 3}}}}
resources: {{gpu: 0}}
"""

CODE = """\
import random, time

calls = []

def train(trial, loss, **further):
    for epoch in range(1, 4):
        trial.report(epoch, {"loss": loss / epoch, **further})

def good(params, trial):
    train(trial, params["lr"] + random.random())

def leaks(params, trial):
    calls.append(params["lr"])
    train(trial, calls[0], took=time.time())

def gains_a_metric(params, trial):
    calls.append(params["lr"])
    train(trial, params["lr"], **{f"call_{len(calls)}": 1.0})

def fails(params, trial):
    calls.append(params["lr"])
    if len(calls) > 1:
        raise ValueError("already trained")
    train(trial, params["lr"])

def noisy(params, trial):
    train(trial, time.time())

def noisy_in_passing(params, trial):
    train(trial, params["lr"], took=time.time())
"""

REMEDY = "set in the function what it keeps in variables of modules, or write under task: warm"
IN_IT = "study.yaml: task.kind: after another trial in the same process, "


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    ("name", "warm", "said"),
    [
        ("leaks", "true", [f"{IN_IT}the same trial reports loss ", " instead of ", REMEDY]),
        ("gains_a_metric", "true", [f"{IN_IT}the same trial reports other metrics; {REMEDY}"]),
        ("fails", "true", [f"{IN_IT}it fails: ValueError: already trained; {REMEDY}"]),
        ("noisy", "true", ["the same trial reports another loss in each new process, so that"]),
        ("noisy_in_passing", "true", []),
        ("good", "true", []),
        ("leaks", "false", []),
    ],
)
def test_a_function_that_trains_another_way_in_a_used_process_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], name: str, warm: str, said: list[str]
) -> None:
    (tmp_path / "used_code.py").write_text(CODE)
    file = tmp_path / "study.yaml"
    file.write_text(STUDY.format(name, warm))
    check_study(file, f"sqlite:///{tmp_path}/studies.db", None)
    errors = capfd.readouterr().err
    lines = [line for line in errors.splitlines() if "process" in line]
    assert len(lines) == min(1, len(said)), errors
    for words in said:
        assert words in lines[0]
    assert "took" not in "".join(lines)
