"""The code that prepared data depends on, and the classes of the built-in tasks."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import trials
from trials import tasks
from trials.descriptions.builtin import BUILT_IN
from trials.tasks.imports import imported_by
from trials.tasks.trained import TrainedTask

SCRATCH = {"scratch": {"layers": 1, "width": 16, "heads": 2, "vocabulary": 280}}
PARTS: dict[str, dict[str, Any]] = {
    "text_classification": {
        "train": "train.csv",
        "text": "text",
        "label": "topic",
        "model": SCRATCH,
    },
    "text_regression": {
        "train": "train.csv",
        "text": ["text", "words"],
        "label": "size",
        "model": SCRATCH,
    },
    "token_classification": {"train": "train.conll", "model": SCRATCH},
    "language_modeling": {"train": "train.csv", "model": SCRATCH},
    "sequence_to_sequence": {
        "train": "train.csv",
        "source": "text",
        "target": "words",
        "model": SCRATCH,
    },
    "image_classification": {"train": "train.npz"},
    "tabular": {"train": "train.csv", "target": "topic"},
}
ROOT = Path(trials.__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [(f"one two {n}", f"word {n % 4}", n % 5, ("a", "b")[n % 2]) for n in range(40)]
    with (tmp_path / "train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "words", "size", "topic"), *rows])
    lines = [f"word{n}\tB-X\nout\tO\n\n" for n in range(40)]
    (tmp_path / "train.conll").write_text("".join(lines))
    pixels = np.arange(640, dtype=np.uint8).reshape(40, 4, 4)
    np.savez(tmp_path / "train.npz", images=pixels, labels=["a", "b"] * 20)
    return tmp_path


def task_of(kind: str, folder: Path) -> TrainedTask[Any]:
    built = tasks.load({"kind": kind, "validation": 0.25, **PARTS[kind]}, folder)
    assert isinstance(built, TrainedTask)
    return built


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_kind_is_built_by_the_class_that_it_describes(kind: str, folder: Path) -> None:
    assert task_of(kind, folder).DESCRIPTION is BUILT_IN[kind]


@pytest.mark.parametrize("kind", BUILT_IN)
def test_the_fingerprint_covers_every_module_whose_code_prepares_data(
    kind: str, folder: Path
) -> None:
    task = task_of(kind, folder)
    recipe = task.recipe(task.SETTINGS())
    ran: set[Path] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            ran.add(Path(frame.f_code.co_filename))

    sys.setprofile(note)
    try:
        recipe.build()
    finally:
        sys.setprofile(None)
    own = {path for path in ran if path.is_relative_to(ROOT)}
    own.discard(ROOT / "tasks" / "trained.py")  # it starts the preparation, and decides nothing
    covered = set(imported_by(recipe.module))
    assert own
    assert own <= covered
    assert ROOT / "tasks" / "trained.py" not in covered


def test_imports_are_followed_through_other_modules_and_into_functions() -> None:
    names = {path.relative_to(ROOT).as_posix() for path in imported_by("trials.tasks.tokens.data")}
    assert "tasks/huggingface/tokenizer.py" in names
    assert "tasks/huggingface/pretrained.py" in names, "the tokenizer's module imports it"
    assert "tasks/tabular/data.py" not in names
    assert "loop/training.py" not in names
    assert "tasks/images/processor.py" in {
        path.relative_to(ROOT).as_posix() for path in imported_by("trials.tasks.images.task")
    }, "a function imports it"


def test_a_module_of_another_package_has_no_code_here() -> None:
    assert imported_by("numpy") == ()
