"""The final training: versions, what is beside the model, interruption, joined data."""

import dataclasses
import json
import os
import shutil
from pathlib import Path

import pytest
import transformers
from sklearn.metrics import accuracy_score

from trials.contract import Goal, TaskError
from trials.running.arithmetic import Arithmetic
from trials.running.report_grid import budget_from
from trials.tasks.final import training as final
from trials.tasks.final.parts import FinalParts
from trials.tasks.function import function_task as function

SETTINGS = {"batch_size": 8, "learning_rate": 1e-2, "max_length": 16, "monitor": "accuracy"}
WORDS = {
    "card": ["card", "plastic", "chip"],
    "rate": ["exchange", "euro"],
    "fee": ["fee", "charge", "price"],
}
TEST = [
    (f"please {'help ' * (n % 5)}with my {word} today", topic)
    for topic, words in WORDS.items()
    for n, word in enumerate(words * 4)
]
FILES = {
    *("config.json", "model.safetensors", "tokenizer.json"),
    *("tokenizer_config.json", "training.json"),
}


def plan(**changes):
    given = {
        "params": SETTINGS,
        "seed": 5,
        "budget": budget_from({"epochs": 3}),
        "joined": False,
        "device": "cpu",
        "provenance": {"study": "topics", "trial": 7},
        "arithmetic": Arithmetic(1),
    }
    return final.Plan(**{**given, **changes})


@pytest.fixture
def home(lab):
    return lab.folder / "models" / "topics"


@pytest.fixture
def task(lab):
    write_test(lab.folder / "test.csv", TEST)
    return lab.task(test="test.csv")


def write_test(path, rows):
    path.write_text("text,topic\n" + "".join(f"{text},{topic}\n" for text, topic in rows))


def about(version):
    return json.loads((version / "training.json").read_text())


def silent(line):
    """Takes progress lines and drops them."""


def test_a_version_is_a_model_that_transformers_loads_with_its_story_beside_it(task, home, lab):
    told = []
    version = final.train(task, plan(), home, told.append)
    assert version == home / "v1"
    assert set(FILES) <= {path.name for path in version.iterdir()}
    assert not {"manifest.json", "state.pt"} & {path.name for path in version.iterdir()}
    assert [line.split(":")[0] for line in told] == [f"{n} of 3 epochs" for n in (1, 2, 3)]
    story = about(version)
    assert (story["study"], story["trial"], story["seed"], story["data"]) == (
        "topics",
        7,
        5,
        "train",
    )
    assert story["settings"]["learning_rate"] == 1e-2
    assert story["settings"]["optimizer"] == "adamw", "defaults are settings too"
    assert story["finished"] == "budget used"
    assert story["fingerprint"]["files"]["test"] == final.sha256(lab.folder / "test.csv")
    assert set(story["fingerprint"]["files"]) == {"train", "test"}
    assert len(story["fingerprint"]["data"]) == 64
    assert transformers.AutoConfig.from_pretrained(version).id2label == {
        0: "card",
        1: "fee",
        2: "rate",
    }


def test_adapters_are_merged_into_the_model_that_is_measured_and_loaded(task, home):
    lora = {**SETTINGS, "lora": True, "lora_rank": 2, "learning_rate": 5e-2}
    version = final.train(task, plan(params=lora, budget=budget_from({"epochs": 2})), home, silent)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(version)
    assert not [name for name, _ in model.named_parameters() if "lora" in name]
    classify = transformers.pipeline("text-classification", str(version), device="cpu")
    predicted = [answer["label"] for answer in classify([text for text, _ in TEST])]
    truth = [label for _, label in TEST]
    assert about(version)["metrics"]["test"]["accuracy"] == pytest.approx(
        accuracy_score(truth, predicted)
    )


def test_the_validation_metrics_are_those_of_the_trials_best_report(task, home, lab):
    setup = lab.setup("search", {"epochs": 3}, **SETTINGS)
    run = task.start(setup, task.prepare(SETTINGS))
    best = max(item.metrics["accuracy"] for item in run if item is not None)
    version = final.train(task, plan(), home, silent)
    assert about(version)["metrics"]["validation"]["accuracy"] == best


@pytest.mark.thorough
def test_the_best_report_is_the_best_by_the_objective_in_its_direction(task, home, lab):
    params = {**SETTINGS, "monitor": "grad_norm"}
    goal = Goal("grad_norm", maximize=True)
    setup = dataclasses.replace(lab.setup("search", {"epochs": 3}, **params), goal=goal)
    reports = [item for item in task.start(setup, task.prepare(params)) if item is not None]
    best = max(reports, key=lambda report: report.metrics["grad_norm"])
    version = final.train(task, plan(params=params, goal=goal), home, silent)
    assert about(version)["metrics"]["validation"]["loss"] == pytest.approx(best.metrics["loss"])
    assert best is not min(reports, key=lambda report: report.metrics["grad_norm"])


def test_a_version_is_on_the_disk_before_its_checkpoints_go(task, home, monkeypatch):
    """By the system calls: every file and folder of the version is flushed after its last change,
    and the folder that names it after the renaming, before anything of the training is removed."""
    flushed, lost = {}, []
    fsync, rmtree = os.fsync, shutil.rmtree

    def flush(handle):
        status = os.fstat(handle)
        flushed[status.st_ino] = status.st_mtime_ns
        fsync(handle)

    def remove(path, **more):
        if Path(path).name.startswith(".training-"):
            version = home / "v1"
            there = [home, version, *version.rglob("*")]
            lost.extend(
                path for path in there if flushed.get(path.stat().st_ino) != path.stat().st_mtime_ns
            )
        rmtree(path, **more)

    monkeypatch.setattr(os, "fsync", flush)
    monkeypatch.setattr(shutil, "rmtree", remove)
    assert final.train(task, plan(), home, silent) == home / "v1"
    assert not list(home.glob(".training-*"))
    assert lost == []
    for folder in (home, *home.parents[:1]):
        assert folder.parent.stat().st_ino in flushed, "a folder that was made is named on the disk"


@pytest.mark.thorough
def test_versions_are_never_overwritten(task, home):
    first = final.train(task, plan(), home, silent)
    content = (first / "training.json").read_bytes()
    (home / "v7").mkdir()
    assert final.train(task, plan(seed=6), home, silent) == home / "v8"
    assert (first / "training.json").read_bytes() == content
    assert {path.name for path in home.iterdir()} == {"v1", "v7", "v8"}, "nothing temporary is left"


def test_an_interrupted_training_goes_on_to_the_same_model(task, home, lab):
    whole = final.train(task, plan(), lab.folder / "whole", silent)
    steps = iter(range(1000))
    assert final.train(task, plan(), home, silent, lambda: next(steps) >= 11) is None
    assert not list(home.glob("v*"))
    told = []
    version = final.train(task, plan(), home, told.append)
    assert told[0] == "continuing where the same training was interrupted"
    assert told[1].startswith("2 of 3 epochs")
    assert (version / "model.safetensors").read_bytes() == (
        whole / "model.safetensors"
    ).read_bytes()
    assert about(version)["metrics"] == about(whole)["metrics"]


@pytest.mark.thorough
def test_other_settings_do_not_continue_an_interrupted_training(task, home):
    steps = iter(range(1000))
    assert final.train(task, plan(), home, silent, lambda: next(steps) >= 11) is None
    told = []
    final.train(task, plan(seed=6), home, told.append)
    assert told[0].startswith("1 of 3 epochs")


def test_train_and_validation_together_train_to_the_end_on_every_row(task, home):
    joined = FinalParts(task).joined(task.prepare(SETTINGS))
    assert len(joined.train_labels) == len(joined.train.lengths) == 97
    told = []
    impatient = plan(params={**SETTINGS, "patience": 1, "min_delta": 1.0}, joined=True)
    version = final.train(task, impatient, home, told.append)
    story = about(version)
    assert [line.split(":")[0] for line in told] == [f"{n} of 3 epochs" for n in (1, 2, 3)]
    assert all("accuracy" not in line for line in told), (
        "what is measured on trained data says nothing"
    )
    assert story["metrics"]["validation"] is None
    assert story["metrics"]["test"]["accuracy"] > 0
    assert story["data"] == "train+validation"


def test_without_a_test_file_nothing_is_said_of_the_test(lab, home):
    version = final.train(lab.task(), plan(), home, silent)
    assert about(version)["metrics"]["test"] is None


def test_a_function_task_is_refused(home, tmp_path):
    (tmp_path / "trained_alone.py").write_text("def train(params, trial): ...\n")
    task = function.FunctionTask({"kind": "trained_alone:train"}, tmp_path)
    with pytest.raises(TaskError, match="python -m trials"):
        final.train(task, plan(), home, silent)


@pytest.mark.thorough
def test_two_processes_do_not_train_the_same_at_once(task, home):
    def meanwhile(line):
        with pytest.raises(TaskError, match="another process"):
            final.train(task, plan(), home, silent)

    final.train(task, plan(budget=budget_from({"epochs": 1})), home, silent)
    assert final.train(task, plan(), home, meanwhile) == home / "v2"
