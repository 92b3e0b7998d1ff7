"""From a finished study to a model in use: `hpsearch train`, and transformers on what it wrote."""

import json
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest
import transformers
import yaml
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from hpsearch.cli.main import main
from hpsearch.domain.facts import DecisionKind, ErrorKind
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Decision, StudyRecord, StudyState, Trial
from hpsearch.store.store import Store

SOUNDS = {
    "cat": ["meow", "purr", "hiss"],
    "dog": ["bark", "woof", "growl"],
    "cow": ["moo", "low", "graze"],
}
ROWS = [
    (f"{sound} number{n} again", animal)
    for n in range(20)
    for animal, all_ in SOUNDS.items()
    for sound in all_
]
TEST = [
    (f"{sound} number{n} again", animal)
    for n in range(20, 23)
    for animal, all_ in SOUNDS.items()
    for sound in all_
]
STUDY = {
    "study": "animals",
    "task": {
        "kind": "text_classification",
        "train": "animals.csv",
        "validation": 0.25,
        "test": "test.csv",
        "text": "text",
        "label": "label",
        "model": {"scratch": {"layers": 1, "width": 32, "heads": 2}},
    },
    "settings": {"batch_size": 8, "max_length": 16},
    "space": {"learning_rate": {"type": "float", "low": 1.0e-4, "high": 1.0e-1, "log": True}},
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "budget": {"trials": 3, "per_trial": {"epochs": 12}},
}


def write(path: Path, rows: list[tuple[str, str]]) -> None:
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))


@pytest.fixture
def storage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with a study whose second trial is the best; commands run from its folder."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "animals.csv", ROWS)
    write(tmp_path / "test.csv", TEST)
    url = f"sqlite:///{tmp_path}/study.db"
    trials = [
        Trial(0, State.COMPLETE, {"learning_rate": 1e-4}, seed=10, value=0.4, resource=4.0),
        Trial(1, State.COMPLETE, {"learning_rate": 2e-2}, seed=11, value=0.9, resource=4.0),
        Trial(
            2,
            State.FAILED,
            {"learning_rate": 1e-1},
            seed=12,
            error_kind=ErrorKind.DIVERGED,
            error_text="loss is nan",
        ),
    ]
    with closing(Store.open(url)) as store:
        record = StudyRecord(
            0, "animals", yaml.safe_dump(STUDY), ("maximize",), StudyState.FINISHED, "budget used"
        )
        record.base = str(tmp_path)
        store.create_study(record)
        store.commit(
            record.id,
            Changes(trials=trials, decisions=[Decision(1, DecisionKind.FINISH, "budget used")]),
        )
    return url


def train(storage: str, *arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["train", "animals", "--storage", storage, *arguments])
    return int(ended.value.code or 0)


def test_the_best_trial_becomes_a_model_whose_test_metrics_can_be_recomputed(
    storage, tmp_path, capsys
):
    assert train(storage) == 0
    said = capsys.readouterr()
    version = tmp_path / "models" / "animals" / "v1"
    assert said.out == f"{version}\n"
    assert "trial 1 of study animals, complete with 0.9" in said.err
    assert "12 of 12 epochs: train_loss" in said.err
    story = json.loads((version / "training.json").read_text())
    assert (story["study"], story["trial"], story["seed"]) == ("animals", 1, 11)
    assert story["settings"]["learning_rate"] == 2e-2
    assert story["settings"]["monitor"] == "accuracy", (
        "the study's objective chooses the checkpoint"
    )
    assert {"torch", "transformers", "hpsearch", "python"} <= set(story["packages"])
    assert story["hpsearch"] == story["packages"]["hpsearch"]
    classify = transformers.pipeline("text-classification", str(version), device="cpu")
    predicted = [answer["label"] for answer in classify([text for text, _ in TEST])]
    truth = [label for _, label in TEST]
    measured = story["metrics"]["test"]
    assert measured["accuracy"] == pytest.approx(accuracy_score(truth, predicted))
    assert measured["macro_f1"] == pytest.approx(f1_score(truth, predicted, average="macro"))
    assert measured["mcc"] == pytest.approx(matthews_corrcoef(truth, predicted))
    assert measured["accuracy"] > 0.6, "a majority guess is right in a third of the cases"


def test_ctrl_c_saves_and_the_same_command_goes_on(storage, tmp_path, capsys, monkeypatch):
    def press_ctrl_c_after_two_epochs(text: str) -> None:
        if text.startswith("2 of 12"):
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr("hpsearch.cli.studies.train.note", press_ctrl_c_after_two_epochs)
        assert train(storage) == 130
    assert "repeat the same command" in capsys.readouterr().err
    assert not list((tmp_path / "models" / "animals").glob("v*"))
    assert train(storage) == 0
    said = capsys.readouterr()
    assert "continuing where the same training was interrupted\n3 of 12 epochs" in said.err
    assert said.out == f"{tmp_path}/models/animals/v1\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--trial", "9"), "study animals has no trial 9"),
        (("--trial", "2"), "trial 2 of animals failed (diverged: loss is nan)"),
    ],
)
def test_a_trial_that_cannot_be_trained_is_refused(storage, tmp_path, capsys, arguments, complaint):
    assert train(storage, *arguments) == 2
    assert complaint in capsys.readouterr().err
    assert not (tmp_path / "models").exists()
