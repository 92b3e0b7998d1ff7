"""Trials of two processes, each with a GPU of its own, connected by NCCL."""

from pathlib import Path

import pytest
import torch

from hpsearch.domain import events as ev
from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.running.executors.ray import RayExecutor
from hpsearch.running.executors.worker_config import WorkerConfig
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


def test_a_built_in_task_trains_on_two_gpus_as_on_one_and_continues(tmp_path: Path) -> None:
    rows = [f"the {['rate', 'card'][n % 2]} {n % 7},{n % 2}" for n in range(97)]
    (tmp_path / "train.csv").write_text("\n".join(["text,label", *rows]))
    scratch = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 120}
    task = {
        "kind": "text_classification",
        "train": "train.csv",
        "validation": 0.25,
        "text": "text",
        "label": "label",
        "model": {"scratch": scratch},
    }
    settings = {"batch_size": 16, "micro_batch": 3, "dropout": 0.0, "precision": "fp32"}
    config = WorkerConfig(
        task,
        str(tmp_path),
        settings,
        Budget(Unit.EPOCHS, 2.0, (1.0, 2.0)),
        str(tmp_path / "saved"),
        prepares=True,
    )
    losses = {}
    for trial, processes in enumerate((2, 1)):
        resources = Resources(workers=1, processes=processes, gpu=1.0)
        with cluster(None, resources):
            executor = RayExecutor(config, resources)
            (up,) = wait_for(executor, of(ev.SlotUp))
            assert isinstance(up, ev.SlotUp)
            executor.launch(ev.Launch(trial, 1, up.slot, {}, 7, 1.0))
            events = wait_for(executor, of(ev.Reported))
            executor.stop(ev.Stop(trial, 1, save=True))
            events += wait_for(executor, of(ev.Stopped))
            (stopped,) = [each for each in events if isinstance(each, ev.Stopped)]
            executor.launch(ev.Launch(trial, 2, up.slot, {}, 7, 2.0, stopped.checkpoint))
            events += wait_for(executor, of(ev.Finished))
            reports = [each for each in events if isinstance(each, ev.Reported)]
            losses[processes] = [each.metrics["loss"] for each in reports]
            executor.close()
    assert losses[2] == pytest.approx(losses[1], rel=1e-3)
