"""What checkpoints will take, and what is said before a study starts whose disk has no room for
that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from hpsearch.brain.retention import BEST, WAITING
from hpsearch.forecast.footprint import CheckpointSize, guessed, peak_bytes, warnings
from hpsearch.study_file.models import StudySpec
from support.studies.small import spec_with
from trials.descriptions.models import Pretrained, Scratch
from trials.tasks.huggingface import model_size
from unit.brain.test_retention import GIGABYTE

ONE = CheckpointSize(whole_bytes=3 * GIGABYTE, weights_bytes=GIGABYTE)


def study(trials: int = 1000, **changes: Any) -> StudySpec:
    return spec_with(budget={"trials": trials, "per_trial": {"epochs": 9}}, **changes)


def gigabytes(spec: StudySpec, workers: int = 2) -> float:
    return peak_bytes(spec, ONE, workers) / GIGABYTE


def test_trials_that_run_wait_and_ended_add_up() -> None:
    running = 2 * ((2 + 2) * 3 + 1)
    assert gigabytes(study()) == running + WAITING * (3 + 1) + BEST * 1
    assert gigabytes(study(trials=5)) == running + 5 * (3 + 1)
    assert gigabytes(study(search={"pruner": "none"})) == running + BEST * 1
    assert gigabytes(study(settings={"keep_checkpoints": 1})) == gigabytes(study()) - 2 * 3
    confirm = {"confirm": {"top": BEST + 5, "seeds": 1}}
    assert gigabytes(study(search=confirm)) == gigabytes(study()) + 5


def test_a_limit_holds_but_for_what_runs() -> None:
    assert gigabytes(study(checkpoints={"max_gb": 50})) == 50
    assert gigabytes(study(checkpoints={"max_gb": 5})) == 26


def test_a_disk_without_room_is_told_with_what_to_do(tmp_path: Path) -> None:
    huge = CheckpointSize(whole_bytes=1e18, weights_bytes=3e17)
    (told,) = warnings(study(), huge, 1, str(tmp_path / "not" / "there" / "yet"))
    assert "checkpoints may take 137300000000 GB" in told
    advice = (
        "GB left: choose another folder with --checkpoints, "
        "or a limit with checkpoints: {max_gb: ...}"
    )
    assert advice in told
    assert list(warnings(study(), CheckpointSize(3.0, 1.0), 1, str(tmp_path))) == []
    assert list(warnings(study(), huge, 1, "memory://somewhere")) == []


def test_a_limit_that_running_trials_exceed_is_told(tmp_path: Path) -> None:
    small = CheckpointSize(whole_bytes=300.0, weights_bytes=100.0)
    (told,) = warnings(study(checkpoints={"max_gb": 1e-7}), small, 4, str(tmp_path))
    assert told.startswith(
        "checkpoints.max_gb: 1e-07 GB is less than the 5.2e-06 GB that running trials take"
    )


def test_a_model_is_measured_by_its_files_without_being_loaded(tmp_path: Path) -> None:
    weights = {"a": torch.zeros(10, 20), "b": torch.zeros(5, dtype=torch.float16)}
    safetensors.torch.save_file(weights, tmp_path / "model.safetensors")
    assert model_size.parameters(Pretrained(str(tmp_path))) == 205
    (tmp_path / "model.safetensors").write_bytes(b"no header")
    assert not model_size.parameters(Pretrained(str(tmp_path)))
    assert model_size.parameters(Pretrained("not/downloaded-yet")) is None
    assert model_size.parameters(Pretrained("no id: at all")) is None


def test_a_model_from_scratch_is_measured_by_its_shape(lab_spec: StudySpec) -> None:
    shape = Scratch.parse({"layers": 3, "width": 64, "vocabulary": 500})
    about = model_size.parameters(shape)
    assert about is not None
    assert guessed(lab_spec) == CheckpointSize(12 * about, 4 * about)


@pytest.fixture
def lab_spec(tmp_path: Path) -> StudySpec:
    task = {"kind": "text_classification", "train": "train.csv", "text": "text", "label": "label"}
    model = {"scratch": {"layers": 3, "width": 64, "vocabulary": 500}}
    spec = study(
        task={**task, "validation": 0.25, "model": model},
        objective={"metric": "loss", "direction": "minimize"},
        space={"learning_rate": {"type": "float", "low": 1e-4, "high": 1e-2, "log": True}},
    )
    return spec.model_copy(update={"base": tmp_path})


def test_nothing_is_guessed_of_adapters_and_of_code_of_ones_own(lab_spec: StudySpec) -> None:
    assert guessed(lab_spec.model_copy(update={"settings": {"lora": True}})) is None
    assert guessed(study()) is None
