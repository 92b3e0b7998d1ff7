"""What every executor does with orders: the simulated one, and real workers on a real local Ray."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from executor_events import of, wait_for
from hpsearch import events as ev
from hpsearch.driver import Executor
from hpsearch.executors.ray import RayExecutor
from hpsearch.executors.ray_cluster import cluster
from hpsearch.executors.simulated import SimulatedExecutor
from hpsearch.executors.worker import WorkerConfig
from hpsearch.spec import Resources
from studies import Bowl
from trials.contract import Budget, Unit

BUDGET = Budget(Unit.EPOCHS, 4.0, (1.0, 2.0, 4.0))

TASK = """
import itertools, os, time
from pathlib import Path


def train(params, trial):
    start = int((trial.checkpoint / "epoch").read_text()) if trial.checkpoint else 0
    if params["x"] > 0.9:
        raise ValueError("x is too large")
    if params["x"] > 0.8:
        os.kill(os.getpid(), 9)
    if params["x"] > 0.7:
        Path(__file__).with_name("hangs").touch()
        while True:
            time.sleep(0.01)
    if params["x"] > 0.6:  # from now on, every reading of the GPU's memory is a GiB more than the one before
        from hpsearch.executors import worker
        worker.allocated_bytes = lambda device, readings=itertools.count(): next(readings) << 30
    for epoch in (1, 2, 4):
        if epoch <= start:
            continue
        with trial.save() as folder:
            (folder / "epoch").write_text(str(epoch))
        trial.report(epoch, {"loss": (params["x"] - 0.3) ** 2 + 1 / (1 + epoch), "process": os.getpid()})
"""


class Make(Protocol):
    def __call__(self, workers: int = 1) -> Executor: ...


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    with cluster(None, Resources(workers=2)):
        yield


def config_for(folder: Path) -> WorkerConfig:
    (folder / "own_task.py").write_text(TASK)
    return WorkerConfig(
        task={"kind": "own_task:train"},
        base=str(folder),
        settings={},
        budget=BUDGET,
        checkpoints=str(folder / "checkpoints"),
        prepares=False,
    )


@pytest.fixture
def ray_executor(local_ray: None, tmp_path: Path) -> Iterator[Make]:
    made: list[RayExecutor] = []

    def make(workers: int = 1) -> Executor:
        made.append(RayExecutor(config_for(tmp_path), Resources(workers=workers, gpu=0.0)))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


@pytest.fixture(params=["simulated", "ray"])
def make_executor(request: pytest.FixtureRequest) -> Make:
    if request.param == "ray":
        return request.getfixturevalue("ray_executor")

    def make(workers: int = 1) -> Executor:
        return SimulatedExecutor(Bowl(diverges=0.9), BUDGET, workers)

    return make


def slot_of(executor: Executor) -> str:
    return next(e.slot for e in wait_for(executor, of(ev.SlotUp)) if isinstance(e, ev.SlotUp))


def launch(slot: str, x: float = 0.5, until: float = 4.0, trial: int = 0, attempt: int = 1, **more: Any) -> ev.Launch:
    return ev.Launch(trial, attempt, slot, {"x": x}, 7, until, **more)


def resources_of(events: list[ev.Event]) -> list[float]:
    return [event.resource for event in events if isinstance(event, ev.Reported)]


def test_every_worker_announces_its_slot(make_executor: Make) -> None:
    events = wait_for(make_executor(workers=2), of(ev.SlotUp, 2))
    assert len({e.slot for e in events if isinstance(e, ev.SlotUp)}) == 2


def test_an_attempt_reports_at_every_level_and_finishes(make_executor: Make) -> None:
    executor = make_executor()
    executor.launch(launch(slot_of(executor)))
    events = wait_for(executor, of(ev.Finished))
    assert resources_of(events) == [1.0, 2.0, 4.0]
    assert isinstance(events[-1], ev.Finished)
    loss = next(e.metrics["loss"] for e in events if isinstance(e, ev.Reported))
    assert loss == pytest.approx(0.2**2 + 0.5)


def test_an_attempt_waits_where_it_was_told_to_and_goes_on_when_allowed(make_executor: Make) -> None:
    executor = make_executor()
    executor.launch(launch(slot_of(executor), until=2.0))
    assert resources_of(wait_for(executor, of(ev.Reported, 2))) == [1.0, 2.0]
    assert executor.poll(0.3) == []
    executor.advance(ev.Advance(0, 1, 4.0))
    assert resources_of(wait_for(executor, of(ev.Finished))) == [4.0]


def test_a_stopped_attempt_answers_with_its_checkpoint_and_its_slot_takes_the_next(make_executor: Make) -> None:
    executor = make_executor()
    slot = slot_of(executor)
    executor.launch(launch(slot, until=2.0))
    wait_for(executor, of(ev.Reported, 2))
    executor.stop(ev.Stop(0, 1, save=True))
    executor.launch(launch(slot, trial=1))
    events = wait_for(executor, of(ev.Finished))
    stopped = next(e for e in events if isinstance(e, ev.Stopped))
    assert (stopped.trial, stopped.attempt) == (0, 1)
    assert {e.trial for e in events if isinstance(e, ev.Reported)} == {1}
    executor.launch(launch(slot, attempt=2, resume_from=stopped.checkpoint))
    assert resources_of(wait_for(executor, of(ev.Finished))) == [4.0]


def test_repeating_an_order_does_nothing(make_executor: Make) -> None:
    executor = make_executor()
    order = launch(slot_of(executor), until=1.0)
    executor.launch(order)
    executor.launch(order)
    wait_for(executor, of(ev.Reported))
    for _ in range(2):
        executor.advance(ev.Advance(0, 1, 2.0))
    assert resources_of(wait_for(executor, of(ev.Reported))) == [2.0]
    for _ in range(2):
        executor.stop(ev.Stop(0, 1))
    wait_for(executor, of(ev.Stopped))
    assert executor.poll(0.3) == []


def test_a_failing_attempt_says_how(make_executor: Make) -> None:
    executor = make_executor()
    executor.launch(launch(slot_of(executor), x=0.95))
    failed = next(e for e in wait_for(executor, of(ev.Failed)) if isinstance(e, ev.Failed))
    assert failed.kind in ("error", "diverged")
    assert failed.text


# --------------------------------------------------------------------------------------------- real workers alone


def process_of(events: list[ev.Event]) -> int:
    return next(int(e.metrics["process"]) for e in events if isinstance(e, ev.Reported))


def test_a_worker_stays_the_same_process_from_trial_to_trial(ray_executor: Make) -> None:
    executor = ray_executor()
    slot = slot_of(executor)
    processes = set()
    for trial in range(3):
        executor.launch(launch(slot, trial=trial))
        processes.add(process_of(wait_for(executor, of(ev.Finished))))
    assert len(processes) == 1
    assert os.getpid() not in processes


def test_a_worker_is_replaced_after_a_fault(ray_executor: Make) -> None:
    executor = ray_executor()
    slot = slot_of(executor)
    executor.launch(launch(slot))
    before = process_of(wait_for(executor, of(ev.Finished)))
    executor.launch(launch(slot, x=0.95, trial=1))
    events = wait_for(executor, of(ev.SlotUp))
    kinds = [type(event) for event in events]
    assert kinds == [ev.Failed, ev.SlotDown, ev.SlotUp]
    executor.launch(launch(events[-1].slot, trial=2))
    assert process_of(wait_for(executor, of(ev.Finished))) != before


def test_a_worker_whose_gpu_memory_stays_behind_is_replaced_after_its_trial(ray_executor: Make) -> None:
    executor = ray_executor()
    slot = slot_of(executor)
    executor.launch(launch(slot, x=0.65))
    wait_for(executor, of(ev.Finished))
    executor.launch(launch(slot, trial=1))
    events = wait_for(executor, of(ev.SlotUp))
    assert [type(event) for event in events if not isinstance(event, ev.Reported)] == [
        ev.Finished,
        ev.SlotDown,
        ev.SlotUp,
    ]
    down = next(event for event in events if isinstance(event, ev.SlotDown))
    assert down.why == "1024 MiB of GPU memory stayed behind after its last trial"


def test_a_worker_that_dies_takes_its_slot_down_and_another_comes(ray_executor: Make) -> None:
    executor = ray_executor()
    slot = slot_of(executor)
    executor.launch(launch(slot, x=0.85))
    events = wait_for(executor, of(ev.SlotUp))
    down = next(e for e in events if isinstance(e, ev.SlotDown))
    assert down.slot == slot
    assert events[-1].slot != slot


def test_a_worker_that_does_not_stop_is_killed_and_replaced(
    ray_executor: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("hpsearch.executors.ray.STOP_GRACE_S", 0.5)
    executor = ray_executor()
    slot = slot_of(executor)
    executor.launch(launch(slot, x=0.75))
    wait_for(executor, lambda events: (tmp_path / "hangs").exists())
    executor.stop(ev.Stop(0, 1))
    events = wait_for(executor, of(ev.SlotUp))
    assert ev.SlotDown(slot, "it did not stop when told to") in events


def test_an_attempt_past_its_time_limit_fails_as_a_timeout_at_its_next_report(ray_executor: Make) -> None:
    executor = ray_executor()
    executor.launch(launch(slot_of(executor), time_limit_s=1e-9))
    failed = next(e for e in wait_for(executor, of(ev.Failed)) if isinstance(e, ev.Failed))
    assert failed.kind == "timeout"
    assert "time limit" in failed.text
