"""A worker without a cluster: what it reports, and where its checkpoints go."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest

from hpsearch import events as ev
from hpsearch.executors import worker as worker_module
from hpsearch.executors.worker import LEAK_BYTES, RETIRED, Unfit, Worker, WorkerConfig
from trials import memory
from trials.contract import Budget, Unit

TASK = """
def train(params, trial):
    start = int((trial.checkpoint / "epoch").read_text()) if trial.checkpoint else 0
    for epoch in range(start + 1, 5):
        with trial.save() as folder:
            (folder / "epoch").write_text(str(epoch))
        trial.report(epoch, {"loss": 1 / epoch})
"""


def worker_of(folder: Path, checkpoints: str, device: str = "cpu") -> Worker:
    (folder / "plain_task.py").write_text(TASK)
    budget = Budget(Unit.EPOCHS, 4.0, (1.0, 2.0, 3.0, 4.0))
    config = WorkerConfig({"kind": "plain_task:train"}, str(folder), {}, budget, checkpoints, prepares=False)
    return Worker(config, fetch=lambda data: data, device=device)


def events_until(worker: Worker, kind: type) -> list[Any]:
    events: list[Any] = []
    for _ in range(100):
        events += worker.poll(1.0)
        if any(isinstance(event, kind) for event in events):
            return events
    raise AssertionError(f"no {kind.__name__} in {events}")


def test_checkpoints_go_to_a_url_and_another_worker_continues_from_there(tmp_path: Path) -> None:
    url = f"memory://{uuid.uuid4().hex}"
    first = worker_of(tmp_path, url)
    first.launch(ev.Launch(7, 1, "w0", {}, seed=1, until=2.0), None)
    reports = [e for e in events_until(first, ev.Reported) if isinstance(e, ev.Reported)]
    while reports[-1].resource < 2.0:
        reports += [e for e in events_until(first, ev.Reported) if isinstance(e, ev.Reported)]
    assert reports[-1].checkpoint == f"{url}/trial-00007/step-00000002"
    first.stop(ev.Stop(7, 1))
    events_until(first, ev.Stopped)
    second = worker_of(tmp_path, url)
    second.launch(ev.Launch(7, 2, "w1", {}, seed=1, until=4.0, resume_from=reports[-1].checkpoint), None)
    again = events_until(second, ev.Finished)
    assert [event.resource for event in again if isinstance(event, ev.Reported)] == [3.0, 4.0]


def test_a_trial_whose_checkpoints_are_all_damaged_starts_afresh(tmp_path: Path) -> None:
    first = worker_of(tmp_path, str(tmp_path / "checkpoints"))
    first.launch(ev.Launch(7, 1, "w0", {}, seed=1, until=4.0), None)
    events_until(first, ev.Finished)
    for saved in (tmp_path / "checkpoints" / "trial-00007").glob("step-*/epoch"):
        saved.write_text("damaged")
    source = str(tmp_path / "checkpoints" / "trial-00007" / "step-00000004")
    first.launch(ev.Launch(7, 2, "w0", {}, seed=1, until=4.0, resume_from=source), None)
    again = events_until(first, ev.Finished)
    assert [event.resource for event in again if isinstance(event, ev.Reported)] == [1.0, 2.0, 3.0, 4.0]


def test_a_worker_that_is_told_to_end_saves_and_takes_nothing_more(tmp_path: Path) -> None:
    worker = worker_of(tmp_path, str(tmp_path / "checkpoints"))
    worker.launch(ev.Launch(7, 1, "w0", {}, seed=1, until=2.0), None)
    events_until(worker, ev.Reported)
    worker.retire()
    events = events_until(worker, ev.Stopped)
    assert events[-1] == Unfit(RETIRED)
    worker.launch(ev.Launch(8, 1, "w0", {}, seed=1, until=2.0), None)
    assert events_until(worker, ev.Stopped) == [ev.Stopped(8, 1, why=RETIRED), Unfit(RETIRED)]


@pytest.mark.parametrize(("left", "unfit"), [(LEAK_BYTES, False), (LEAK_BYTES + 1, True), (-LEAK_BYTES, False)])
def test_memory_that_stays_behind_is_told_together_with_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: int, unfit: bool
) -> None:
    readings = iter([10 << 30, (10 << 30) + left])
    monkeypatch.setattr(worker_module, "allocated_bytes", lambda device: next(readings))
    worker = worker_of(tmp_path, str(tmp_path / "checkpoints"), device="cuda:0")
    worker.launch(ev.Launch(0, 1, "w0", {}, seed=1, until=4.0), None)
    events = events_until(worker, ev.Finished)
    assert any(isinstance(event, Unfit) for event in events) == unfit


def test_a_worker_without_a_gpu_has_nothing_to_compare(tmp_path: Path) -> None:
    worker = worker_of(tmp_path, str(tmp_path / "checkpoints"))
    worker.launch(ev.Launch(0, 1, "w0", {}, seed=1, until=4.0), None)
    assert not any(isinstance(event, Unfit) for event in events_until(worker, ev.Finished))


def test_what_a_worker_learns_about_memory_is_told_once_and_what_it_is_told_it_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "_known", {})
    worker = worker_of(tmp_path, str(tmp_path / "checkpoints"))
    memory.learn({"found here": (4, 8)})
    worker.launch(ev.Launch(0, 1, "w0", {}, seed=1, until=4.0, known={"found elsewhere": [16, 32]}), None)
    told = [event for event in events_until(worker, ev.Learned) if isinstance(event, ev.Learned)]
    assert [event.facts for event in told] == [{"found here": (4, 8)}]
    assert memory.facts() == {"found here": (4, 8), "found elsewhere": (16, 32)}
    known = {"found here": [4, 8], "found elsewhere": [16, 32]}
    worker.launch(ev.Launch(1, 1, "w0", {}, seed=1, until=4.0, known=known), None)
    assert not any(isinstance(event, ev.Learned) for event in events_until(worker, ev.Finished))
