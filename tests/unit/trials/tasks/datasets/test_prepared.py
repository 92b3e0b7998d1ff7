"""The code that prepared data depends on, and the classes of the built-in tasks."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from trials import tasks
from trials.descriptions.builtin import BUILT_IN
from trials.tasks.datasets import prepared
from trials.tasks.workloads.trained_task import BuiltInTask
from unit.trials.tasks.datasets.test_remarks import KINDS, rows, write


def task_of(kind: str, folder: Path) -> BuiltInTask[Any]:
    train = write(folder, kind, "train", rows(*range(40)))
    part = {"kind": kind, **KINDS[kind], "train": train, "validation": 0.25}
    built = tasks.load(part, folder)
    assert isinstance(built, BuiltInTask)
    return built


@pytest.mark.parametrize("kind", BUILT_IN)
def test_every_kind_is_built_by_the_class_that_it_describes(kind, tmp_path):
    assert task_of(kind, tmp_path).DESCRIPTION is BUILT_IN[kind]


def test_the_code_of_this_package_decides_on_the_name_of_prepared_data(tmp_path, monkeypatch):
    task = task_of("tabular", tmp_path)
    settings = task.SETTINGS()
    before = task.name_of_data(settings)
    assert task.name_of_data(settings) == before
    monkeypatch.setattr(prepared, "digest_of_file", lambda path: f"other {path.name}")
    prepared.code_digests.cache_clear()
    assert task.name_of_data(settings) != before
    prepared.code_digests.cache_clear()


def test_images_behind_a_link_decide_on_the_name_of_prepared_data(tmp_path, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (tmp_path / "photos").mkdir()
    for name, grey in (("cat", 10), ("dog", 200)):
        (elsewhere / name).mkdir()
        (tmp_path / "photos" / name).symlink_to(elsewhere / name)
        for number in range(2):
            Image.new("L", (4, 4), grey).save(elsewhere / name / f"{number}.png")
    part = {"kind": "image_classification", "train": "photos", "validation": 0.5}
    task = tasks.load(part, tmp_path)
    assert isinstance(task, BuiltInTask)
    before = task.name_of_data(task.SETTINGS())
    Image.new("L", (4, 4), 90).save(elsewhere / "cat" / "0.png")
    assert task.name_of_data(task.SETTINGS()) != before
