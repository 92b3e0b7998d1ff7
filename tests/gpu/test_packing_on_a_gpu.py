"""Packed samples on a GPU: the losses of the unpacked ones, in every precision."""

import random

import numpy as np
import pytest
import torch

from trials import tasks
from trials.contract import Setup
from trials.devices.precision import Precision
from trials.running.report_grid import budget_from

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@pytest.mark.parametrize(
    ("precision", "rounding"), [("fp32", 1e-4), ("bf16", 2e-2), ("fp16", 2e-3)]
)
def test_the_loss_of_packed_documents_is_the_unpacked_one(tmp_path, precision, rounding):
    rng = random.Random(0)
    texts = [
        " ".join(rng.choices(["one", "two", "three"], k=rng.randint(1, 20))) for _ in range(100)
    ]
    (tmp_path / "train.txt").write_text("\n\n".join(texts))
    part = {
        "kind": "language_modeling",
        "train": "train.txt",
        "validation": 0.2,
        "samples": "documents",
    }
    task = tasks.load({**part, "model": "scratch"}, tmp_path)
    losses = []
    for packing in (False, True):
        params = {"precision": precision, "packing": packing, "dropout": 0.0}
        setup = Setup(params, 1, budget_from({"epochs": 1}), tmp_path / "run", device="cuda")
        workload = task.workload(task.prepare(params), task.SETTINGS.parse(params), setup)
        with Precision(precision, torch.device("cuda")).autocast():
            losses.append(workload.loss_sum(workload.batch(np.arange(32))).item())
    assert losses[1] == pytest.approx(losses[0], rel=rounding)
