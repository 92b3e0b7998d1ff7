"""The code that prepared data depends on, and the classes of the built-in tasks."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from trials import tasks
from trials.descriptions.builtin import BUILT_IN
from trials.tasks.datasets import prepared
from trials.tasks.workloads.task import TrainedTask

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


def test_the_code_of_this_package_decides_on_the_name_of_prepared_data(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of("tabular", folder)
    recipe = task.recipe(task.SETTINGS())
    before = prepared.fingerprint(recipe)
    assert prepared.fingerprint(recipe) == before
    monkeypatch.setattr(prepared, "digest_of_file", lambda path: f"other {path.name}")
    prepared.code_digests.cache_clear()
    assert prepared.fingerprint(recipe) != before
    prepared.code_digests.cache_clear()


def test_images_behind_a_link_decide_on_the_name_of_prepared_data(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (folder / "photos").mkdir()
    for name, grey in (("cat", 10), ("dog", 200)):
        (elsewhere / name).mkdir()
        (folder / "photos" / name).symlink_to(elsewhere / name)
        for number in range(2):
            Image.new("L", (4, 4), grey).save(elsewhere / name / f"{number}.png")
    part = {"kind": "image_classification", "train": "photos", "validation": 0.5}
    task = tasks.load(part, folder)
    assert isinstance(task, TrainedTask)
    before = prepared.fingerprint(task.recipe(task.SETTINGS()))
    Image.new("L", (4, 4), 90).save(elsewhere / "cat" / "0.png")
    assert prepared.fingerprint(task.recipe(task.SETTINGS())) != before
