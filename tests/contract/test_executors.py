"""What every executor does with what it is told.

Executors: the simulated one, real workers in threads of this process, and real workers on a real
local Ray.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.domain import events as ev
from hpsearch.running.driver.loop import Executor
from hpsearch.running.executors.awaited import AwaitedExecutor
from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.running.executors.cluster.ray_thread import RayThread
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from support.running.executor_events import of, wait_for
from support.running.local_executor import LocalExecutor
from support.studies.small import Bowl
from trials.contract import Budget, Unit

BUDGET = Budget(Unit.EPOCHS, 4.0, (1.0, 2.0, 4.0))
EVERY_EPOCH = Budget(Unit.EPOCHS, 8.0, tuple(map(float, range(1, 9))))

TASK = """
import os, time
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
    for epoch in {epochs}:
        if epoch <= start:
            continue
        with trial.save() as folder:
            (folder / "epoch").write_text(str(epoch))
        loss = (params["x"] - 0.3) ** 2 + 1 / (1 + epoch)
        trial.report(epoch, {"loss": loss, "process": os.getpid()})
"""


class Make(Protocol):
    def __call__(self, workers: int = 1, budget: Budget = BUDGET) -> Executor: ...


@pytest.fixture(scope="module")
def local_ray() -> Iterator[RayThread]:
    with cluster(None, Resources(workers=2)) as thread:
        yield thread


def config_for(folder: Path, budget: Budget = BUDGET) -> WorkerConfig:
    epochs = [int(level) for level in budget.report_at]
    name = f"own_task_{len(epochs)}"
    (folder / f"{name}.py").write_text(TASK.replace("{epochs}", str(epochs)))
    return WorkerConfig(
        task={"kind": f"{name}:train"},
        base=str(folder),
        settings={},
        budget=budget,
        checkpoints=str(folder / "checkpoints"),
        prepares=False,
    )


@pytest.fixture
def ray_executor(local_ray: RayThread, tmp_path: Path) -> Iterator[Make]:
    made: list[AwaitedExecutor] = []

    def make(workers: int = 1, budget: Budget = BUDGET) -> Executor:
        config = config_for(tmp_path, budget)
        made.append(AwaitedExecutor(local_ray, config, Resources(workers=workers, gpu=0.0)))
        return made[-1]

    yield make
    for executor in made:
        executor.close()


@pytest.fixture(params=["simulated", "ray", "local"])
def make_executor(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    if request.param == "ray":
        return request.getfixturevalue("ray_executor")

    def local(workers: int = 1, budget: Budget = BUDGET) -> Executor:
        return LocalExecutor(config_for(tmp_path, budget), workers)

    def simulated(workers: int = 1, budget: Budget = BUDGET) -> Executor:
        return SimulatedExecutor(Bowl(diverges=0.9), budget, workers)

    return local if request.param == "local" else simulated


def slot_of(executor: Executor) -> str:
    return next(e.slot for e in wait_for(executor, of(ev.SlotUp)) if isinstance(e, ev.SlotUp))


def launch(
    slot: str, x: float = 0.5, until: float = 4.0, trial: int = 0, attempt: int = 1, **more: Any
) -> ev.Launch:
    return ev.Launch(trial, attempt, slot, {"x": x}, 7, until, **more)


def resources_of(events: list[ev.Event]) -> list[float]:
    return [event.resource for event in events if isinstance(event, ev.Reported)]


def test_every_worker_announces_its_slot(make_executor):
    events = wait_for(make_executor(workers=2), of(ev.SlotUp, 2))
    assert len({e.slot for e in events if isinstance(e, ev.SlotUp)}) == 2


@pytest.mark.cases(3)
def test_an_attempt_reports_at_every_level_and_finishes(make_executor):
    executor = make_executor()
    executor.launch(launch(slot_of(executor)))
    events = wait_for(executor, of(ev.Finished))
    assert resources_of(events) == [1.0, 2.0, 4.0]
    assert isinstance(events[-1], ev.Finished)
    loss = next(e.metrics["loss"] for e in events if isinstance(e, ev.Reported))
    assert loss == pytest.approx(0.2**2 + 0.5)


@pytest.mark.cases(3)
def test_an_attempt_waits_where_it_was_told_to_and_goes_on_when_allowed(make_executor):
    executor = make_executor()
    executor.launch(launch(slot_of(executor), until=2.0))
    assert resources_of(wait_for(executor, of(ev.Reported, 2))) == [1.0, 2.0]
    assert executor.poll(0.3) == []
    executor.advance(ev.Advance(0, 1, 4.0))
    assert resources_of(wait_for(executor, of(ev.Finished))) == [4.0]


@pytest.mark.cases(3)
def test_a_stopped_attempt_answers_with_its_checkpoint_and_its_slot_takes_the_next(make_executor):
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


@pytest.mark.cases(3)
def test_repeating_an_order_does_nothing(make_executor):
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


def test_a_failing_attempt_says_how(make_executor):
    executor = make_executor()
    executor.launch(launch(slot_of(executor), x=0.95))
    failed = next(e for e in wait_for(executor, of(ev.Failed)) if isinstance(e, ev.Failed))
    assert failed.kind in ("error", "diverged")
    assert failed.text


class Saved:
    """The checkpoints of trial 0 on the disk of an executor, real or imagined."""

    def __init__(self, executor: Executor, folder: Path) -> None:
        self._executor = executor
        self._folder = folder / "checkpoints" / "trial-00000"

    def __call__(self) -> set[str]:
        if isinstance(self._executor, SimulatedExecutor):
            return set(self._executor.checkpoints.get(0, set()))
        return {str(path) for path in self._folder.glob("epoch-*")}


def trained(executor: Executor, to: float, attempt: int = 1) -> list[str]:
    """Let a waiting attempt of trial 0 train on: the checkpoints that its reports name."""
    executor.advance(ev.Advance(0, attempt, to))
    events = wait_for(executor, lambda events: to in resources_of(events))
    return [str(event.checkpoint) for event in events if isinstance(event, ev.Reported)]


def begun(executor: Executor) -> list[str]:
    """Let attempt 1 of trial 0 train to 4 and wait there: the checkpoints that its reports name."""
    executor.launch(launch(slot_of(executor), until=1.0))
    first = wait_for(executor, of(ev.Reported))[-1]
    assert isinstance(first, ev.Reported)
    return [str(first.checkpoint), *trained(executor, to=4.0)]


def test_a_checkpoint_that_a_report_names_stays_until_word_comes_that_a_later_one_is_on_record(
    make_executor, tmp_path
):
    executor = make_executor(budget=EVERY_EPOCH)
    saved = Saved(executor, tmp_path)
    named = begun(executor)
    assert len(named) == 4
    assert set(named) <= saved(), "nothing has been acknowledged"
    executor.recorded(0, 1, 1.0)
    named += trained(executor, to=5.0)
    assert set(named) <= saved(), "the first report is on record, and no later one"
    executor.recorded(0, 1, 4.0)
    named += trained(executor, to=6.0)
    assert named[0] not in saved(), "only reports from before the one on record named it"
    assert set(named[3:]) <= saved(), "the newest on record, and all after it"


def test_repeated_and_late_words_are_harmless(make_executor, tmp_path):
    executor = make_executor(budget=EVERY_EPOCH)
    saved = Saved(executor, tmp_path)
    named = begun(executor)
    for resource in (4.0, 4.0, 1.0, 2.0):
        executor.recorded(0, 1, resource)
    named += trained(executor, to=6.0)
    assert named[0] not in saved()
    assert set(named[3:]) <= saved()


def test_a_word_for_an_attempt_that_is_not_current_is_dropped(make_executor, tmp_path):
    executor = make_executor(budget=EVERY_EPOCH)
    saved = Saved(executor, tmp_path)
    named = begun(executor)
    executor.stop(ev.Stop(0, 1, save=True))
    stopped = next(e for e in wait_for(executor, of(ev.Stopped)) if isinstance(e, ev.Stopped))
    assert stopped.checkpoint is not None
    slot = "s0" if isinstance(executor, SimulatedExecutor) else "w0"
    executor.launch(launch(slot, attempt=2, until=5.0, resume_from=stopped.checkpoint))
    wait_for(executor, of(ev.Reported))
    for trial, attempt in ((0, 1), (0, 7), (9, 1)):
        executor.recorded(trial, attempt, 5.0)
    named += trained(executor, to=6.0, attempt=2)
    assert set(named) <= saved()


def test_a_lost_word_costs_disk_and_no_data(make_executor, tmp_path):
    """The driver dies after a commit and before it has acknowledged it; the next one continues from
    what it wrote."""
    executor = make_executor(budget=EVERY_EPOCH)
    saved = Saved(executor, tmp_path)
    named = begun(executor)
    executor.stop(ev.Stop(0, 1))
    wait_for(executor, of(ev.Stopped))
    assert set(named) <= saved()
    slot = "s0" if isinstance(executor, SimulatedExecutor) else "w0"
    executor.launch(launch(slot, attempt=2, until=5.0, resume_from=named[-1]))
    events = wait_for(executor, of(ev.Reported))
    assert resources_of(events) == [5.0], "it goes on where the last report on record stood"
    executor.recorded(0, 2, 5.0)
    trained(executor, to=6.0, attempt=2)
    executor.recorded(0, 2, 6.0)
    named += trained(executor, to=7.0, attempt=2)
    assert named[0] not in saved()
    assert named[-1] in saved()


def process_of(events: list[ev.Event]) -> int:
    return next(int(e.metrics["process"]) for e in events if isinstance(e, ev.Reported))


def test_a_worker_stays_the_same_process_from_trial_to_trial(ray_executor):
    executor = ray_executor()
    slot = slot_of(executor)
    processes = set()
    for trial in range(3):
        executor.launch(launch(slot, trial=trial))
        processes.add(process_of(wait_for(executor, of(ev.Finished))))
    assert len(processes) == 1
    assert os.getpid() not in processes


def test_a_worker_is_replaced_after_a_fault(ray_executor):
    executor = ray_executor()
    slot = slot_of(executor)
    executor.launch(launch(slot))
    before = process_of(wait_for(executor, of(ev.Finished)))
    executor.launch(launch(slot, x=0.95, trial=1))
    events = wait_for(executor, of(ev.SlotUp))
    kinds = [type(event) for event in events]
    assert kinds == [ev.Began, ev.Failed, ev.SlotDown, ev.SlotUp]
    executor.launch(launch(events[-1].slot, trial=2))
    assert process_of(wait_for(executor, of(ev.Finished))) != before


def test_a_worker_that_dies_takes_its_slot_down_and_another_comes(ray_executor):
    executor = ray_executor()
    slot = slot_of(executor)
    executor.launch(launch(slot, x=0.85))
    events = wait_for(executor, of(ev.SlotUp))
    down = next(e for e in events if isinstance(e, ev.SlotDown))
    assert down.slot == slot
    assert events[-1].slot != slot


def test_a_worker_that_does_not_stop_is_killed_and_replaced(ray_executor, monkeypatch, tmp_path):
    monkeypatch.setattr("hpsearch.running.executors.ray.STOP_GRACE_S", 0.5)
    executor = ray_executor()
    slot = slot_of(executor)
    executor.launch(launch(slot, x=0.75))
    wait_for(executor, lambda events: (tmp_path / "hangs").exists())
    executor.stop(ev.Stop(0, 1))
    events = wait_for(executor, of(ev.SlotUp))
    assert ev.SlotDown(slot, "it did not stop when told to") in events


def test_an_attempt_past_its_time_limit_fails_as_a_timeout_at_its_next_report(ray_executor):
    executor = ray_executor()
    executor.launch(launch(slot_of(executor), time_limit_s=1e-9))
    failed = next(e for e in wait_for(executor, of(ev.Failed)) if isinstance(e, ev.Failed))
    assert failed.kind == "timeout"
    assert "time limit" in failed.text


@pytest.mark.thorough
def test_data_that_could_not_be_prepared_is_prepared_again_for_the_next_trial(local_ray, tmp_path):
    table = "a,b,label\n" + "".join(f"{n},{n % 7},{'yes' if n % 2 else 'no'}\n" for n in range(60))
    train = tmp_path / "train.csv"
    train.write_text(table)
    config = WorkerConfig(
        task={"kind": "tabular", "train": "train.csv", "validation": 0.5, "target": "label"},
        base=str(tmp_path),
        settings={"num_leaves": 4},
        budget=Budget(Unit.STEPS, 1.0, (1.0,)),
        checkpoints=str(tmp_path / "checkpoints"),
        prepares=True,
    )
    executor = AwaitedExecutor(local_ray, config, Resources(workers=1, gpu=0.0))
    try:
        slot = slot_of(executor)
        train.unlink()
        executor.launch(ev.Launch(0, 1, slot, {}, 7, 1.0))
        (failed,) = [e for e in wait_for(executor, of(ev.Failed)) if isinstance(e, ev.Failed)]
        assert "no such file" in failed.text
        train.write_text(table)
        slot = slot_of(executor)
        executor.launch(ev.Launch(1, 1, slot, {}, 7, 1.0))
        assert of(ev.Finished)(
            wait_for(executor, lambda events: of(ev.Finished)(events) or of(ev.Failed)(events))
        )
    finally:
        executor.close()
