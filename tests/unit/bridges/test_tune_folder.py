"""Past runs from a folder of Ray Tune: recorded as Ray 2.55 writes it, and one that it writes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from support.files.past_runs import imported, refused, states, tune_experiment, values

OPTIONS = ("--metric", "loss", "--direction", "minimize")
TRIALS = [
    ({"lr": 0.1, "opt": {"name": "sgd"}, "n": 4}, [{"loss": 0.9}, {"loss": 0.5}, {"loss": 0.6}]),
    ({"lr": 0.2, "opt": {"name": "adam"}, "n": 4}, [{"loss": 0.8}]),
    ({"lr": 0.3, "opt": {"name": "adam"}, "n": 4}, [{"loss": 0.7}, {"loss": float("nan")}]),
    ({"lr": 0.4, "opt": {"name": "sgd"}, "n": 4}, []),
    ({"lr": 0.5, "opt": {"name": "sgd"}, "n": 4}, [{"loss": 0.4}, {"loss": 0.3}, {"loss": 0.2}]),
]
STATUSES = ["TERMINATED", "ERROR", "TERMINATED", "PENDING", "TERMINATED"]


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    return tune_experiment(tmp_path / "exp", TRIALS, STATUSES)


def test_trials_have_their_curves_states_and_nested_parameters(
    experiment: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    history = imported(sqlite_url, experiment, *OPTIONS)
    assert states(history) == ["complete", "failed", "failed", "complete"]
    assert values(history) == [0.6, None, None, 0.2]
    first, broken, diverged, _ = history.trials
    assert first.params == {"lr": 0.1, "opt.name": "sgd"}
    assert [report.value for report in first.reports.values()] == [0.9, 0.5, 0.6]
    assert broken.error_text == "ValueError: boom"
    assert broken.reports[1.0].value == 0.8
    assert diverged.error_kind == "diverged"
    assert first.ended is not None
    assert first.started == first.ended - 1.5
    said = capsys.readouterr().err
    assert "the same in all runs, and left out: n" in said
    assert "1 unfinished runs without a report were left out" in said.replace("trials", "runs")


def test_a_trial_that_ended_early_counts_as_pruned(tmp_path: Path, sqlite_url: str) -> None:
    trials = [({"lr": 0.1}, [{"loss": 3.0}, {"loss": 4.0}]), ({"lr": 0.2}, [{"loss": 1.0}] * 5)]
    history = imported(sqlite_url, tune_experiment(tmp_path / "exp", trials), *OPTIONS)
    assert states(history) == ["pruned", "complete"]
    assert values(history) == [3.0, 1.0]


def test_a_restored_trial_may_repeat_what_it_did(tmp_path: Path, sqlite_url: str) -> None:
    folder = tune_experiment(tmp_path / "exp", [({"lr": 0.1}, [{"loss": 3.0}, {"loss": 2.0}])])
    (file,) = folder.glob("train_*/result.json")
    again = file.read_text().splitlines()[1].replace('since_restore": 2', 'since_restore": 1')
    file.write_text(file.read_text() + again.replace("2.0", "1.0") + "\n")
    assert values(imported(sqlite_url, folder, *OPTIONS)) == [1.0]


def test_without_the_state_of_the_experiment_the_last_result_tells(
    tmp_path: Path, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tune_experiment(tmp_path / "exp", [TRIALS[0], TRIALS[4]])
    next(folder.glob("experiment_state*")).unlink()
    first = sorted(folder.glob("train_*/result.json"))[0]
    *before, last = first.read_text().splitlines()
    first.write_text("\n".join([*before, last.replace('"done": false', '"done": true')]))
    assert states(imported(sqlite_url, folder, *OPTIONS)) == ["complete", "pruned"]
    assert "there is no experiment_state-*.json" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"loss": 1, "training_iteration": 1}\n{"loss', "result.json:2: is not JSON"),
        ('{"loss": "low", "training_iteration": 1}', "loss is 'low', which is not a number"),
        ('{"los": 1, "training_iteration": 1}', "has no metric loss; did you mean los?"),
        ('{"loss": 1}', "result.json:1: has no number training_iteration"),
        (
            '{"loss": 1, "training_iteration": 2}\n{"loss": 1, "training_iteration": 2}',
            "result.json:2: training_iteration is 2 after 2; it must rise",
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_its_line(
    content: str, said: str, experiment: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (sorted(experiment.glob("train_*"))[0] / "result.json").write_text(content)
    assert said in refused(capsys, experiment, *OPTIONS)


def test_broken_params_are_refused(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (sorted(experiment.glob("train_*"))[1] / "params.json").write_text("{")
    assert "params.json: cannot be read" in refused(capsys, experiment, *OPTIONS)
    options = (*OPTIONS, "--params", "lr,depht")
    assert "has no parameter depht" in refused(capsys, experiment, *options)


REAL = """
import sys
import ray
from ray import tune


def train(config):
    for i in range(3):
        if config["opt"]["name"] == "bad" and i == 1:
            raise ValueError("boom")
        tune.report({"loss": config["lr"] * (3 - i)})


if __name__ == "__main__":
    ray.init("local", num_cpus=1, include_dashboard=False, log_to_driver=False)
    space = {"lr": 0.5, "opt": {"name": tune.grid_search(["sgd", "bad"])}}
    run = tune.RunConfig(name="exp", storage_path=sys.argv[1], verbose=0)
    tune.Tuner(train, param_space=space, run_config=run).fit()
"""


@pytest.mark.thorough
def test_what_ray_tune_writes_is_read(tmp_path: Path, sqlite_url: str) -> None:
    program = tmp_path / "real_search.py"
    program.write_text(REAL)
    subprocess.run([sys.executable, program, tmp_path / "out"], check=True, capture_output=True)
    history = imported(
        sqlite_url, tmp_path / "out" / "exp", *OPTIONS, "--params", "lr,opt=opt.name"
    )
    found = {trial.params["opt"]: trial for trial in history.trials}
    assert found["sgd"].value == 0.5
    assert [report.value for report in found["sgd"].reports.values()] == [1.5, 1.0, 0.5]
    assert found["bad"].error_text == "ValueError: boom"
    assert yaml.safe_load(history.study.spec)["imported"]["from"] == "Ray Tune"
