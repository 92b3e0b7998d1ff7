"""Adapters on a GPU: the base in half precision, and checkpoints that continue
exactly."""

import dataclasses
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file

from trials.tasks.final.parts import FinalParts
from trials.tasks.huggingface import lora
from unit.trials.conftest import TextLab, sentences, write_csv

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

DEVICE = "cuda"
SETTINGS = {
    "lora": True,
    "lora_rank": 2,
    "learning_rate": 0.01,
    "batch_size": 16,
    "precision": "bf16",
}


@pytest.fixture
def lab(tmp_path):
    """A text classification whose model is a local folder with a body of 64 units."""
    write_csv(tmp_path / "train.csv", sentences(97))
    lab = TextLab(tmp_path)
    task = lab.task(model={"scratch": {"layers": 2, "width": 64, "heads": 2, "vocabulary": 120}})
    *_, last = task.start(lab.setup("pretraining", {"epochs": 1}), task.prepare({}))
    transformers.logging.disable_progress_bar()
    shutil.copytree(last.checkpoint, tmp_path / "base")
    transformers.BertModel.from_pretrained(tmp_path / "base", dtype=torch.bfloat16).save_pretrained(
        tmp_path / "base"
    )
    return lab


def setup_of(lab, out, settings, resume_from=None):
    setup = lab.setup(out, {"steps": 6, "report_every": 2}, resume_from=resume_from, **settings)
    return dataclasses.replace(setup, device=DEVICE)


def test_a_run_resumes_exactly_and_its_merged_model_computes_the_same(lab):
    settings = SETTINGS
    task = lab.task(model="base")
    data = task.prepare(settings)
    whole = task.start(setup_of(lab, "a", settings), data)
    losses = [item.metrics["loss"] for item in whole if item]
    held = {p.dtype for p in whole._workload.model.parameters() if not p.requires_grad}
    assert held == {torch.bfloat16}
    first = task.start(setup_of(lab, "b", settings), data)
    steps = iter(first)
    for _ in range(3):
        next(steps)
    again = task.start(setup_of(lab, "b", settings, first.save()), data)
    *_, last = (item for item in again if item)
    assert last.metrics["loss"] == losses[-1]
    one, other = (load_file(lab.folder / out / "last" / lora.ADAPTERS) for out in ("a", "b"))
    assert all(torch.equal(one[name], other[name]) for name in one)
    merged = shutil.copytree(last.checkpoint, lab.folder / "merged")
    FinalParts(task).complete(merged, data, setup_of(lab, "c", settings))
    measured = FinalParts(task).evaluate(merged, data, setup_of(lab, "c", settings))
    assert measured["loss"] == pytest.approx(losses[-1], rel=0.05)
