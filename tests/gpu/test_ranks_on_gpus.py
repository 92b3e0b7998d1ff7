"""A trial of two processes, each with a GPU of its own, connected by NCCL."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from hpsearch.domain import events as ev
from hpsearch.executors.ray import RayExecutor
from hpsearch.executors.ray_cluster import cluster
from hpsearch.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from support.running.executor_events import of, wait_for
from trials.contract import Budget, Unit

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two GPUs")

TASK = """
import torch
from torch import distributed


def train(params, trial):
    assert trial.device == f"cuda:{trial.rank}"
    own = torch.full((4,), float(trial.rank + 1), device=trial.device)
    for epoch in (1, 2):
        if params["raises"] and trial.rank == 1 and epoch == 2:
            raise ValueError("rank 1 does not like epoch 2")
        total = own.clone()
        distributed.all_reduce(total)
        trial.report(epoch, {"total": total.sum(), "gpus": torch.cuda.device_count()})
"""


def test_ranks_have_a_gpu_each_and_a_failed_one_ends_the_wait_of_the_other(tmp_path: Path) -> None:
    (tmp_path / "on_gpus.py").write_text(TASK)
    config = WorkerConfig(
        {"kind": "on_gpus:train"},
        str(tmp_path),
        {},
        Budget(Unit.EPOCHS, 2.0, (1.0, 2.0)),
        str(tmp_path / "saved"),
        prepares=False,
    )
    resources = Resources(workers=1, processes=2, gpu=1.0)
    with cluster(None, resources):
        executor = RayExecutor(config, resources)
        assert executor.gpus == 2.0
        (up,) = wait_for(executor, of(ev.SlotUp))
        assert isinstance(up, ev.SlotUp)
        executor.launch(ev.Launch(0, 1, up.slot, {"raises": False}, 7, 2.0))
        events = wait_for(executor, lambda events: of(ev.Finished)(events) or of(ev.Failed)(events))
        metrics = [each.metrics for each in events if isinstance(each, ev.Reported)]
        assert metrics == [{"total": 12.0, "gpus": 2.0}] * 2
        executor.launch(ev.Launch(1, 1, up.slot, {"raises": True}, 7, 2.0))
        events = wait_for(executor, of(ev.SlotDown))
        (failed,) = [each for each in events if isinstance(each, ev.Failed)]
        assert "rank 1 does not like epoch 2" in failed.text
        executor.close()
