"""The main job on the built-in task: run, query, export, and train the winner alone."""

import csv
import json
import random
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

import hpsearch
from integration.test_run_and_resume import Workplace
from support.running.programs import run_program

STUDY: dict[str, Any] = {
    "study": "animals",
    "seed": 3,
    "task": {
        "kind": "text_classification",
        "train": "animals.csv",
        "validation": 0.25,
        "text": "text",
        "label": "label",
        "model": {"scratch": {"layers": 1, "width": 32, "heads": 2}},
    },
    "settings": {"batch_size": 8, "max_length": 16},
    "space": {
        "learning_rate": {"type": "float", "low": 1e-3, "high": 3e-2, "log": True},
        "schedule": {"type": "categorical", "choices": ["cosine", "linear"]},
    },
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "budget": {"trials": 6, "per_trial": {"epochs": 6}},
    "resources": {"workers": 1},
}


def write_animals(path: Path) -> None:
    draw = random.Random(0)
    sounds = {
        "cat": ["meow", "purr", "hiss"],
        "dog": ["bark", "woof", "growl"],
        "cow": ["moo", "low", "graze"],
    }
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for n in range(240):
            label = draw.choice(sorted(sounds))
            words = [
                draw.choice(sounds[label]),
                f"number{n}",
                draw.choice(["today", "again", "loudly"]),
            ]
            writer.writerow([" ".join(draw.sample(words, 3)), label])


@pytest.fixture(scope="module")
def finished(shared_ray: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    workplace = Workplace(tmp_path_factory.mktemp("text") / "work", shared_ray)
    write_animals(workplace.folder / "animals.csv")
    (workplace.folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    workplace.call("run", "study.yaml")
    return workplace


def test_the_study_finds_a_configuration_that_learns(finished):
    (best,) = json.loads(finished.ask("best", "--format", "json"))
    assert best["state"] == "complete"
    assert best["value"] > 0.6, "a majority guess is right in a third of the cases"
    assert Path(best["checkpoint"], "model.safetensors").is_file()
    assert finished.rows("SELECT role FROM trials WHERE number = 0") == [("default",)]


def test_every_report_carries_how_the_training_went(finished):
    (metrics,) = finished.rows("SELECT metrics FROM reports ORDER BY trial, resource LIMIT 1")[0]
    expected = {
        *("loss", "accuracy", "macro_f1", "mcc", "train_loss"),
        *("samples_per_second", "tokens_per_second"),
    }
    expected |= {"padding_ratio", "peak_memory_bytes", "micro_batch", "grad_norm", "learning_rate"}
    assert expected <= set(json.loads(metrics))


def test_the_winners_settings_train_alone_to_the_same_reports(finished):
    out = finished.ask("best", "--format", "yaml")
    (finished.folder / "winner.yaml").write_text(out)
    (best,) = json.loads(finished.ask("best", "--format", "json"))
    alone = run_program(
        [sys.executable, "-m", "trials", "winner.yaml", "--out", "alone"], cwd=finished.folder
    )
    assert alone.returncode == 0, alone.stderr
    assert "not computed as before" not in alone.stderr
    reports = [json.loads(line) for line in alone.stdout.splitlines()]
    assert max(report["metrics"]["accuracy"] for report in reports) == best["value"]
    assert (finished.folder / "alone" / "best" / "model.safetensors").is_file()


def test_a_trial_is_recorded_with_what_its_sums_depend_on(finished):
    recorded = [json.loads(text) for (text,) in finished.rows("SELECT arithmetic FROM attempts")]
    assert {each["threads"] for each in recorded} == {1}, "a worker has one core"
    assert {each["precision"] for each in recorded} <= {"bf16", "fp32"}
    assert all(each["device"] and each["versions"]["torch"] for each in recorded)
    written = yaml.safe_load(finished.ask("best", "--format", "yaml"))
    assert written["arithmetic"] in recorded
    assert "1 thread, " in finished.ask("show", "animals", "0")


def test_frames_files_and_optuna_show_the_same_trials(finished):
    with hpsearch.open(f"sqlite:///{finished.folder}/study.db", "animals") as study:
        trials = study.trials()
        assert list(trials["number"]) == list(range(6))
        assert (
            len(study.trials(where="learning_rate > 0.005"))
            == (trials["learning_rate"] > 0.005).sum()
        )
        printed, *_ = json.loads(finished.ask("best", "--format", "json"))
        best = study.best().iloc[0]
        assert (best["number"], best["expected"]) == (printed["number"], printed["expected"])
        assert {"trial", "resource", "accuracy"} <= set(study.reports().columns)
        best_of_optuna = study.optuna().best_trial
        assert best_of_optuna.value == trials.loc[trials["state"] == "complete", "value"].max()
    finished.ask("export", "animals", "--to", "trials.parquet")
    assert len(pd.read_parquet(finished.folder / "trials.parquet")) == 6
