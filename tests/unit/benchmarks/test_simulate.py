"""`benchmarks/simulate.py`: what it prints, and what it refuses."""

import json
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

STUDY = """
study: replay
seed: 3
task: {kind: "mine.train:train"}
space:
  lr: {type: float, low: 1.0e-4, high: 1.0, log: true}
objective: {metric: loss, direction: minimize}
budget: {trials: 12, per_trial: {epochs: 9}}
search: {sampler: random, pruner: promotion}
resources: {gpu: 0.5}
"""

Run = Callable[..., Any]


@dataclass(frozen=True)
class Said:
    """What the command answered."""

    code: int
    out: str
    err: str


@pytest.fixture
def run(bench: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command as a person would."""

    def call(*arguments: str) -> Said:
        monkeypatch.setattr(sys, "argv", ["simulate.py", *arguments])
        with pytest.raises(SystemExit) as ended:
            bench("simulate").main()
        said = capsys.readouterr()
        return Said(int(ended.value.code or 0), said.out, said.err)

    return call


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A study file, and curves of 41 learning rates whose best is 0.01, at ten seconds an epoch."""
    (tmp_path / "study.yaml").write_text(STUDY)
    table = [
        {
            "trial": i,
            "lr": 10 ** (-4 + i / 10),
            "epochs": e,
            "loss": (i / 10 - 2) ** 2 + 1 / e,
            "seconds": 10.0 * e,
        }
        for i in range(41)
        for e in range(1, 10)
    ]
    pd.DataFrame(table).to_csv(tmp_path / "curves.csv", index=False)
    return str(tmp_path / "study.yaml"), str(tmp_path / "curves.csv")


def test_it_tells_what_would_have_been_found_and_what_it_would_have_cost(run, files):
    study, curves = files
    said = run(study, "--curves", curves, "--workers", "2", "--top", "3", "--format", "json")
    found = json.loads(said.out)
    assert said.code == 0
    assert (found["study"], found["seed"], found["workers"], len(found["best"])) == (
        "replay",
        3,
        2,
        3,
    )
    assert sum(found["trials"].values()) == found["configurations_used"] == 12
    assert found["best"][0]["value"] == pytest.approx(
        (math.log10(found["best"][0]["recorded"]["lr"]) + 2) ** 2 + 1 / 9
    )
    assert 0 < found["saved_by_pruning"] < 1
    in_full_s = 12 * 90
    trained_s = in_full_s * (1 - found["saved_by_pruning"])
    assert found["gpu_hours"] == pytest.approx(trained_s * 0.5 / 3600)
    assert trained_s / 2 <= found["wall_clock_s"] <= trained_s


@pytest.mark.parametrize("kept", [[], ["--keeps-nothing"]])
def test_starts_and_repeated_training_count_against_what_pruning_saves(run, files, kept):
    study, curves = files
    text = Path(study).read_text().replace("promotion", "{kind: promotion, pause: true}")
    Path(study).write_text(text)

    def simulated(*options: str) -> dict[str, Any]:
        given = ("--curves", curves, "--workers", "1", "--format", "json", *options)
        return json.loads(run(study, *given).out)

    free, dear = simulated(), simulated("--start-up", "30", *kept)
    assert dear["starts"] > 12, "trials that go on start again"
    held_s = (12 * 90 + 12 * 30) * (1 - dear["saved_by_pruning"])
    assert held_s == pytest.approx(dear["wall_clock_s"], rel=0.01)
    trained_s = held_s - 30 * dear["starts"]
    free_s = 12 * 90 * (1 - free["saved_by_pruning"])
    assert trained_s > free_s + 1 if kept else trained_s == pytest.approx(free_s, rel=0.01)


def test_a_table_is_printed_for_people(run, files):
    said = run(files[0], "--curves", files[1])
    assert said.code == 0
    assert "12 of 41 recorded configurations tried" in said.out
    assert "pruning saved" in said.out
    assert "choose with --workers" in said.err


def test_another_seed_is_another_search(run, files):
    found = [
        yaml.safe_load(run(files[0], "--curves", files[1], "--seed", seed, "--format", "yaml").out)
        for seed in ("3", "3", "4")
    ]
    assert found[0] == found[1]
    assert found[2]["seed"] == 4
    assert found[2]["best"] != found[0]["best"]


def test_a_table_that_runs_out_is_told(run, files):
    few = pd.read_csv(files[1])
    few[few["lr"] < 1e-3].to_csv(files[1], index=False)
    assert "there are fewer of them than trials" in run(files[0], "--curves", files[1]).out


def test_a_table_without_the_metric_is_refused(run, files):
    pd.read_csv(files[1]).drop(columns="loss").to_csv(files[1], index=False)
    said = run(files[0], "--curves", files[1])
    assert said.code == 2
    assert "no column metrics.loss or loss" in said.err


def test_a_study_whose_trials_all_diverge_gives_up(run, files):
    frame = pd.read_csv(files[1])
    frame.loc[frame["lr"] < 0.999, "loss"] = None
    frame.to_csv(files[1], index=False)
    said = run(files[0], "--curves", files[1])
    assert said.code == 2
    assert "gave up" in said.err


def confirming(files: tuple[str, str]) -> None:
    confirm = "{sampler: random, pruner: promotion, confirm: {top: 2, seeds: 2}}"
    study = Path(files[0])
    study.write_text(STUDY.replace("{sampler: random, pruner: promotion}", confirm))


def best_values(run: Run, files: tuple[str, str]) -> list[float]:
    said = run(files[0], "--curves", files[1], "--format", "json")
    best, *_ = json.loads(said.out)["best"]
    return [best["confirmed"]["low"], best["confirmed"]["high"]]


def test_a_confirmation_measures_the_second_recorded_seed(run, files):
    confirming(files)
    assert "several seeds of 0 of 41 configurations" in run(*files_as(files)).err
    low, high = best_values(run, files)
    narrow = high - low
    first = pd.read_csv(files[1])
    second = first.assign(seed=1, loss=first["loss"] + 0.25)
    pd.concat([first.assign(seed=0), second]).to_csv(files[1], index=False)
    assert "several seeds" not in run(*files_as(files)).err
    low, high = best_values(run, files)
    assert high - low > narrow


def files_as(files: tuple[str, str]) -> tuple[str, str, str]:
    return files[0], "--curves", files[1]


def test_it_says_that_a_simulation_knows_no_earlier_studies(run, files):
    study, curves = files
    warm = STUDY.replace("{sampler: random,", "{sampler: curve_gp, warm_start: [before],")
    Path(study).write_text(warm)
    said = run(study, "--curves", curves, "--workers", "2")
    assert said.code == 0
    assert "is searched without warm_start" in said.err
