"""Trials of a built-in task on one, two and three processes, on a Ray cluster of two nodes."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from ray import cloudpickle
from ray.cluster_utils import Cluster

from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.executors.ray import RayExecutor
from hpsearch.executors.ray_cluster import cluster
from hpsearch.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from support.patience import wait_until
from support.running.executor_events import of, wait_for
from trials.checkpoints import folders
from trials.contract import Budget, Setup, Task, Unit

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers do not see the tests

BUDGET = Budget(Unit.EPOCHS, 3.0, (0.5, 1.0, 1.5, 2.0, 2.5, 3.0))
SCRATCH = {"layers": 1, "width": 16, "heads": 2, "vocabulary": 120}
TASK = {
    "kind": "text_classification",
    "train": "train.csv",
    "validation": 0.25,
    "text": "text",
    "label": "topic",
    "model": {"scratch": SCRATCH},
}
SETTINGS = {
    "batch_size": 16,
    "micro_batch": 3,
    "dropout": 0.0,
    "precision": "fp32",
    "learning_rate": 0.01,
    "ema": 0.9,
    "keep_checkpoints": 100,
}
NAMES = ("train_loss", "loss", "accuracy", "macro_f1", "grad_norm", "learning_rate")
TOPICS = {"card": ["card", "chip"], "rate": ["euro", "dollar"], "fee": ["fee", "price"]}


@dataclass(frozen=True)
class FaultyConfig(WorkerConfig):
    """Lets a rank fail in a step, once, as a file `fault.json` beside the data says."""

    def load_task(self) -> Task:
        task: Any = super().load_task()
        build = task.workload
        task.workload = lambda data, settings, setup: self._armed(
            build(data, settings, setup), setup
        )
        return task  # type: ignore[no-any-return]

    def _armed(self, workload: Any, setup: Setup) -> Any:
        steps = 0

        def before_forward(model: torch.nn.Module, _: Any) -> None:
            nonlocal steps
            steps += model.training
            file = Path(self.base) / "fault.json"
            fault = json.loads(file.read_text()) if file.is_file() else None
            if fault is None or setup.ranks is None or not model.training:
                return
            if [setup.ranks.rank, steps] == [fault["rank"], fault["forward"]]:
                file.unlink()
                fail(fault["how"], model)

        workload.model.register_forward_pre_hook(before_forward)
        return workload


def fail(how: str, model: torch.nn.Module) -> None:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "raises":
        raise ValueError("this rank does not like its rows")
    first = next(iter(model.parameters()))
    with torch.no_grad():
        first.view(-1)[0] += 1e-7 if how == "drifts" else float("nan")


@pytest.fixture(scope="module")
def nodes() -> Iterator[Cluster]:
    """Two nodes, with two CPUs and one."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    made.add_node(num_cpus=1)
    with cluster(made.address, Resources()):
        yield made
    made.shutdown()


@pytest.fixture
def make(nodes: Cluster, tmp_path: Path) -> Iterator[Any]:
    """Makes an executor of one slot with so many processes; the one before gives way."""
    made: list[RayExecutor] = []
    rng = random.Random(0)
    with (tmp_path / "train.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "topic"])
        for _ in range(97):
            topic = rng.choice(sorted(TOPICS))
            words = rng.choices(["the", "my", "is", "when"], k=rng.randint(2, 12))
            writer.writerow([" ".join([*words, rng.choice(TOPICS[topic])]), topic])

    def make_for(processes: int) -> tuple[RayExecutor, str]:
        for executor in made:
            executor.close()
        made.clear()
        config = FaultyConfig(
            TASK, str(tmp_path), SETTINGS, BUDGET, str(tmp_path / "saved"), prepares=True
        )
        executor = RayExecutor(config, Resources(workers=1, processes=processes, gpu=0.0))
        made.append(executor)
        return executor, slot_of(wait_for(executor, of(ev.SlotUp)))

    yield make_for
    for executor in made:
        executor.close()


def slot_of(events: list[ev.Event]) -> str:
    return next(event.slot for event in events if isinstance(event, ev.SlotUp))


def launch(slot: str, trial: int = 0, until: float = 3.0, **more: Any) -> ev.Launch:
    attempt = more.pop("attempt", 1)
    resume_from = more.pop("resume_from", None)
    return ev.Launch(trial, attempt, slot, more, 7, until, resume_from)


def ended(events: list[ev.Event]) -> bool:
    return of(ev.Finished)(events) or of(ev.Failed)(events)


def last_of(events: list[ev.Event], kind: type[Any]) -> Any:
    return [event for event in events if isinstance(event, kind)][-1]


def curve(events: list[ev.Event]) -> dict[float, list[float]]:
    """The metrics of the reports, by their level."""
    reports = [each for each in events if isinstance(each, ev.Reported)]
    return {each.resource: [each.metrics[name] for name in NAMES] for each in reports}


def require_equal(found: dict[float, list[float]], expected: dict[float, list[float]]) -> None:
    assert list(found) == list(expected)
    for level, values in found.items():
        assert values == pytest.approx(expected[level], rel=1e-4, abs=1e-6), level


def trained(make: Any, processes: int, **more: Any) -> dict[float, list[float]]:
    executor, slot = make(processes)
    executor.launch(launch(slot, trial=9, **more))
    events = wait_for(executor, ended)
    assert of(ev.Finished)(events), events
    return curve(events)


def test_ranks_train_as_one_process_and_go_on_as_another_number(make: Any) -> None:
    alone = trained(make, 1)
    assert list(alone) == list(BUDGET.report_at)
    executor, slot = make(2)
    executor.launch(launch(slot, until=1.0))
    events = wait_for(executor, of(ev.Reported, 2))
    executor.stop(ev.Stop(0, 1, save=True))
    events += wait_for(executor, of(ev.Stopped))
    paused = last_of(events, ev.Stopped).checkpoint
    # It stays warm: after a pause, the same ranks train the next attempt in full.
    executor.launch(launch(slot, 1))
    assert not of(ev.SlotDown)(more := wait_for(executor, ended))
    require_equal(curve(more), alone)
    for attempt, processes in ((2, 3), (3, 1), (4, 2)):
        executor, slot = make(processes)
        executor.launch(launch(slot, attempt=attempt, resume_from=paused))
        whole = [*events, *wait_for(executor, ended)]
        require_equal(curve(whole), alone)


def test_a_rung_is_waited_at_by_all_ranks_and_passed_by_all(make: Any, tmp_path: Path) -> None:
    executor, slot = make(2)
    executor.launch(launch(slot, until=0.5))
    events = wait_for(executor, of(ev.Reported))
    executor.advance(ev.Advance(0, 1, 1.5))
    events += wait_for(executor, of(ev.Reported, 2))
    executor.recorded(0, 1, 1.5) if hasattr(executor, "recorded") else None
    executor.advance(ev.Advance(0, 1, 3.0))
    events += wait_for(executor, ended)
    assert list(curve(events)) == list(BUDGET.report_at)
    saved = tmp_path / "saved" / folders.trial_folder(0)
    assert (saved / "last").is_symlink()
    assert not list(saved.glob(".*draft*"))


def test_a_stop_between_two_reports_ends_all_ranks_after_one_step(make: Any) -> None:
    executor, slot = make(2)
    for attempt in range(1, 4):
        executor.launch(launch(slot, attempt=attempt))
        wait_for(executor, of(ev.Reported, attempt))
        executor.stop(ev.Stop(0, attempt, save=True))
        events = wait_for(executor, of(ev.Stopped))
        assert not of(ev.SlotDown)(events), "no rank waits for another"


@pytest.mark.parametrize(("rank", "forward"), [(1, 1), (0, 2), (1, 9), (0, 20)])
def test_a_killed_rank_costs_one_attempt(
    make: Any, tmp_path: Path, rank: int, forward: int
) -> None:
    executor, slot = make(2)
    processes = [each.number for each in executor._slots[slot].processes]
    fault = {"rank": rank, "forward": forward, "how": "killed"}
    (tmp_path / "fault.json").write_text(json.dumps(fault))
    executor.launch(launch(slot))
    events = wait_for(executor, of(ev.SlotDown))
    assert not ended(events)
    wait_until(lambda: not any(map(psutil.pid_exists, processes)))
    reports = [each for each in events if isinstance(each, ev.Reported)]
    resume_from = reports[-1].checkpoint if reports else None
    again = slot_of([*events, *wait_for(executor, of(ev.SlotUp))])
    executor.launch(launch(again, attempt=2, resume_from=resume_from))
    events += wait_for(executor, ended)
    assert of(ev.Finished)(events)
    assert set(curve(events)) == set(BUDGET.report_at)


@pytest.mark.parametrize(
    ("rank", "how", "text"),
    [
        (0, "raises", "ValueError: this rank does not like its rows"),
        (1, "raises", "rank 1: ValueError: this rank does not like its rows"),
        (1, "drifts", "the ranks do not train the same model any more"),
    ],
)
def test_a_rank_that_fails_alone_fails_its_trial_at_once(
    make: Any, tmp_path: Path, rank: int, how: str, text: str
) -> None:
    executor, slot = make(2)
    (tmp_path / "fault.json").write_text(json.dumps({"rank": rank, "forward": 7, "how": how}))
    executor.launch(launch(slot))
    events = wait_for(executor, of(ev.SlotDown))
    failed = last_of(events, ev.Failed)
    assert text in failed.text
    assert failed.kind is ErrorKind.ERROR
    again = slot_of([*events, *wait_for(executor, of(ev.SlotUp))])
    executor.launch(launch(again, trial=1))
    assert of(ev.Finished)(wait_for(executor, ended))


def test_a_loss_that_diverges_leaves_the_ranks_warm(make: Any, tmp_path: Path) -> None:
    executor, slot = make(2)
    (tmp_path / "fault.json").write_text(
        json.dumps({"rank": 1, "forward": 7, "how": "becomes nan"})
    )
    executor.launch(launch(slot))
    failed = last_of(wait_for(executor, of(ev.Failed)), ev.Failed)
    assert failed.kind is ErrorKind.DIVERGED
    assert failed.text.startswith("loss became nan at step")
    executor.launch(launch(slot, trial=1))
    events = wait_for(executor, ended)
    assert of(ev.Finished)(events)
    assert not of(ev.SlotDown)(events)


def test_a_damaged_checkpoint_lets_all_ranks_begin_afresh(make: Any) -> None:
    executor, slot = make(2)
    executor.launch(launch(slot, until=0.5))
    checkpoint = last_of(wait_for(executor, of(ev.Reported)), ev.Reported).checkpoint
    executor.stop(ev.Stop(0, 1))
    wait_for(executor, of(ev.Stopped))
    (Path(checkpoint) / "state.pt").write_bytes(b"nothing")
    executor.launch(launch(slot, attempt=2, resume_from=checkpoint))
    events = wait_for(executor, ended)
    assert of(ev.Finished)(events), events
    assert not of(ev.SlotDown)(events)
    assert list(curve(events)) == list(BUDGET.report_at)
