"""Scripts that know their trial: started by hand, and in a trial."""

import argparse
import os
import sys
from pathlib import Path

from support.running.function_runs import (
    problem_of,
    raises_in_training,
    reports_of,
    setup_in,
)
from support.running.programs import run_program
from trials import tasks

SCRIPT = """
import argparse
from trials.script import trial

def main(rate=0.5, epochs=2, seed=0):
    for epoch in range(1, epochs + 1):
        with trial.save() as folder:
            (folder / "epoch").write_text(str(epoch))
        trial.report(epoch, {"rate": rate, "seed": seed})
    return epochs, rate, trial.checkpoint

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--epochs", type=int, default=1)
    arguments = parser.parse_args()
    print(main(arguments.rate, arguments.epochs))
"""


def test_a_script_that_is_started_by_hand_runs_as_it_says(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, "script.py", "--rate", "0.25"]
    environment = {**os.environ, "PYTHONPATH": str(Path(tasks.__file__).parents[2])}
    said = run_program(command, cwd=tmp_path, env=environment, check=True)
    assert said.stdout == "(1, 0.25, None)\n"
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


def test_a_script_that_trains_while_it_is_imported_is_refused_and_runs_as_a_whole_file(
    tmp_path, module
):
    base = module(
        "from trials.script import trial\ntrial.report(3, {'rate': trial.get('rate', 1)})\n"
    )
    said = problem_of("their_training:main", base)
    assert "it asks for its trial while it is imported: write kind: their_training:__main__" in said
    task = tasks.load({"kind": "their_training:__main__"}, base)
    run = task.start(setup_in(tmp_path, params={"rate": 0.1}), None)
    assert [report.metrics for report in reports_of(run)] == [{"rate": 0.1}]


def test_a_script_in_a_trial_has_its_parameters_and_budget(tmp_path, module):
    base = module(SCRIPT)
    task = tasks.load({"kind": "their_training:__main__"}, base)
    before = list(sys.argv), argparse.ArgumentParser.parse_known_args
    reports = reports_of(task.start(setup_in(tmp_path, params={"rate": 0.1}), None))
    assert [report.metrics["rate"] for report in reports] == [0.1, 0.1, 0.1]
    assert reports[-1].checkpoint is not None
    assert (sys.argv, argparse.ArgumentParser.parse_known_args) == before
    unused = task.start(setup_in(tmp_path, params={"rate": 0.1, "width": 3}), None)
    with raises_in_training("has not read width of the study file"):
        reports_of(unused)
