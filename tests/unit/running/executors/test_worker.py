"""A worker without a cluster: what it reports, and where its checkpoints go."""

import sys
import time
import types
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.running.executors import worker as worker_module
from hpsearch.running.executors.attempt import execution
from hpsearch.running.executors.attempt.execution import RETIRED
from hpsearch.running.executors.worker import LEAK_BYTES, ReplaceWorker, Worker
from hpsearch.running.executors.worker_config import WorkerConfig
from support.files import moody_store
from trials.checkpoints.folders import folder_at
from trials.contract import Budget, Goal, Unit

TASK = """
def train(params, trial):
    start = int((trial.checkpoint / "epoch").read_text()) if trial.checkpoint else 0
    for epoch in range(start + 1, 5):
        with trial.save() as folder:
            (folder / "epoch").write_text(str(epoch))
        trial.report(epoch, {"loss": 1 / epoch})
"""


def worker_of(
    folder: Path,
    checkpoints: str = "",
    device: str = "cpu",
    task: str = TASK,
    memory_fraction: float = 1.0,
) -> Worker:
    checkpoints = checkpoints or f"{folder}/checkpoints"
    module = f"plain_task_{zlib.crc32(task.encode())}"
    (folder / f"{module}.py").write_text(task)
    budget = Budget(Unit.EPOCHS, 4.0, (1.0, 2.0, 3.0, 4.0))
    goal = Goal("loss", maximize=False)
    kind = {"kind": f"{module}:train"}
    config = WorkerConfig(kind, str(folder), {}, budget, checkpoints, prepares=False, goal=goal)
    return Worker(config, fetch=lambda data: data, device=device, memory_fraction=memory_fraction)


def launched(worker: Worker, trial: int = 7, attempt: int = 1, **order: Any) -> Worker:
    """A worker with an order to train a trial to its end, or as the order says."""
    given = {"params": {}, "seed": 1, "until": 4.0, **order}
    worker.launch(ev.Launch(trial, attempt, "w0", **given), None)
    return worker


def events_of(events: list[Any], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def events_until(worker: Worker, kind: type) -> list[Any]:
    events: list[Any] = []
    give_up = time.monotonic() + 240
    while time.monotonic() < give_up:
        news = worker.poll(1.0)
        events += news
        if any(isinstance(event, kind) for event in news):
            return events
    raise AssertionError(f"no {kind.__name__} in {events}")


def test_checkpoints_go_to_a_url_and_another_worker_continues_from_there(tmp_path):
    url = f"file://{tmp_path}/store"
    first = launched(worker_of(tmp_path, url), until=2.0)
    reports = events_of(events_until(first, ev.Reported), ev.Reported)
    while reports[-1].resource < 2.0:
        reports += events_of(events_until(first, ev.Reported), ev.Reported)
    assert reports[-1].checkpoint == f"{url}/trial-00007/epoch-2"
    first.stop(ev.Stop(7, 1))
    events_until(first, ev.Stopped)
    second = launched(worker_of(tmp_path, url), 7, 2, resume_from=reports[-1].checkpoint)
    again = events_until(second, ev.Finished)
    assert [event.resource for event in events_of(again, ev.Reported)] == [3.0, 4.0]


def test_a_trial_whose_checkpoints_are_all_damaged_starts_afresh(tmp_path):
    first = launched(worker_of(tmp_path))
    events_until(first, ev.Finished)
    for saved in (tmp_path / "checkpoints" / "trial-00007").glob("epoch-*/epoch"):
        saved.write_text("damaged")
    source = str(tmp_path / "checkpoints" / "trial-00007" / "epoch-4")
    launched(first, 7, 2, resume_from=source)
    again = events_until(first, ev.Finished)
    assert [event.resource for event in events_of(again, ev.Reported)] == [1.0, 2.0, 3.0, 4.0]


def test_an_answer_that_comes_before_a_waiting_attempt_looks_for_it_lets_it_go_on(
    tmp_path, monkeypatch
):
    send = execution.Execution._send

    def answered_at_once(self: execution.Execution, report: ev.Reported, *, waits: bool) -> None:
        send(self, report, waits=waits)
        self.control.until = 4.0

    monkeypatch.setattr(execution.Execution, "_send", answered_at_once)
    worker = launched(worker_of(tmp_path), until=1.0)
    events = events_until(worker, ev.Finished)
    assert [event.resource for event in events_of(events, ev.Reported)] == [1.0, 2.0, 3.0, 4.0]


def test_a_worker_says_how_it_computes_with_its_first_report(tmp_path):
    worker = launched(worker_of(tmp_path), until=2.0)
    began, reported = events_until(worker, ev.Reported)[:2]
    assert isinstance(began, ev.Began)
    assert began.arithmetic["threads"] == 1
    assert isinstance(reported, ev.Reported)


def test_a_trial_that_is_continued_elsewhere_keeps_its_threads_and_says_what_else_changed(tmp_path):
    worker = worker_of(tmp_path)
    elsewhere = {"threads": 2, "device": "an abacus"}
    launched(worker, 7, 2, arithmetic=elsewhere)
    events = events_until(worker, ev.Finished)
    (began,) = events_of(events, ev.Began)
    assert began.arithmetic["threads"] == 2
    (finding,) = events_of(events, ev.Finished)[0].findings
    assert finding.name == "arithmetic_changed"
    assert finding.evidence.endswith("instead of an abacus")
    launched(worker, 8)
    events = events_until(worker, ev.Finished)
    (began,) = events_of(events, ev.Began)
    assert began.arithmetic["threads"] == 1, "a trial that begins has those of its study"
    assert not events_of(events, ev.Finished)[0].findings


def test_a_store_that_cannot_tell_what_it_holds_fails_no_trial(tmp_path):
    url = f"moody://{tmp_path}/store"
    task = f"import {moody_store.__name__}\n{TASK}"
    worker = launched(worker_of(tmp_path, url, task=task))
    events = events_until(worker, ev.Finished)
    assert events[-1].checkpoint.endswith("epoch-4")
    assert [event.sizes for event in events_of(events, ev.Reported)] == [None] * 4
    folder_at(url).strip("trial-00007", ["last"])


def test_a_worker_that_is_told_to_end_saves_and_takes_nothing_more(tmp_path):
    worker = launched(worker_of(tmp_path), until=2.0)
    events_until(worker, ev.Reported)
    worker.retire()
    events = events_until(worker, ev.Stopped)
    assert events[-1] == ReplaceWorker(RETIRED, retires=True)
    launched(worker, 8, until=2.0)
    assert events_until(worker, ev.Stopped)[-2:] == [
        ev.Stopped(8, 1, why=RETIRED),
        ReplaceWorker(RETIRED, retires=True),
    ]


@pytest.mark.parametrize(
    ("left", "unfit"), [(LEAK_BYTES, False), (LEAK_BYTES + 1, True), (-LEAK_BYTES, False)]
)
def test_memory_that_stays_behind_is_told_together_with_the_end(tmp_path, monkeypatch, left, unfit):
    readings = iter([10 << 30, (10 << 30) + left])
    monkeypatch.setattr(worker_module, "allocated_bytes", lambda device: next(readings))
    worker = launched(worker_of(tmp_path, device="cuda:0"), 0)
    events = events_until(worker, ev.Finished)
    assert any(isinstance(event, ReplaceWorker) for event in events) == unfit


def test_a_worker_without_a_gpu_has_nothing_to_compare(tmp_path):
    worker = launched(worker_of(tmp_path), 0)
    assert not any(isinstance(event, ReplaceWorker) for event in events_until(worker, ev.Finished))


def waits(control: Any) -> bool:
    """Whether a thread waits for word on an attempt."""
    code = type(control)._wait.__code__
    for frame in sys._current_frames().values():
        caller: types.FrameType | None = frame
        while caller is not None:
            if caller.f_code is code and caller.f_locals["self"] is control:
                return "began" in caller.f_locals
            caller = caller.f_back
    return False


def test_waiting_for_word_takes_none_of_a_trials_time(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(execution, "time", SimpleNamespace(monotonic=lambda: now[0]))
    worker = launched(worker_of(tmp_path), 0, until=2.0, time_limit_s=60.0)
    control = worker._controls[0, 1]
    events = events_until(worker, ev.Reported)
    while not waits(control):
        events += worker.poll(0.01)
    now[0] += 5000.0  # its driver waits for a database
    worker.advance(ev.Advance(0, 1, 4.0))
    events += events_until(worker, ev.Finished)
    assert [event.resource for event in events_of(events, ev.Reported)] == [1.0, 2.0, 3.0, 4.0]


GPU = """
from types import SimpleNamespace
import torch

kept = []
torch.cuda.is_available = lambda: True
torch.cuda.get_device_properties = lambda device: SimpleNamespace(total_memory=16 << 30)
torch.cuda.memory_allocated = lambda device: 0
torch.cuda.set_per_process_memory_fraction = lambda *given: kept.append(given)

def train(params, trial):
    ((share, device),) = kept
    trial.report(4, {"loss": share})
"""
"""Code in a process that has a GPU of 16 GiB."""


def test_training_code_keeps_to_its_share_of_a_gpu_from_the_first_attempt(tmp_path):
    worker = launched(worker_of(tmp_path, device="cuda:0", memory_fraction=0.25, task=GPU), 0)
    (report,) = events_of(events_until(worker, ev.Finished), ev.Reported)
    assert report.metrics == {"loss": 3.5 / 16}


SLOW_TO_IMPORT = """
import time

time.sleep(0.5)


def train(params, trial):
    for epoch in range(1, 5):
        trial.report(epoch, {"loss": 1.0})
"""


def test_a_worker_says_how_long_it_took_to_start_and_less_once_it_is_warm(tmp_path):
    worker = worker_of(tmp_path, task=SLOW_TO_IMPORT)
    start_ups = []
    for trial in range(1, 5):
        launched(worker, trial)
        events = events_until(worker, ev.Finished)
        (began,) = events_of(events, ev.Began)
        assert began.start_up_s is not None
        start_ups.append(began.start_up_s)
    cold, *warm = start_ups
    assert cold >= 0.5
    assert min(warm) < cold


def test_an_attempt_that_fails_before_it_can_train_has_no_start_up(tmp_path):
    worker = launched(worker_of(tmp_path, task="raise RuntimeError('no')"), 1)
    events = events_until(worker, ev.Failed)
    assert [event.start_up_s for event in events_of(events, ev.Began)] in ([], [None])


HOSTILE = """
import sys

class Mute(Exception):
    def __str__(self):
        raise SystemExit(3)
    __repr__ = __str__

class Hidden(Mute):
    @property
    def cause(self):
        raise RuntimeError

class Code:
    def __repr__(self):
        raise Mute

def train(params, trial):
    error = params["error"]
    if error == "sys.exit":
        sys.exit(Code())
    if error == "long":
        raise RuntimeError("x" * 20_000_000)
    if error == "name":
        trial.report(1, {"x" * 20_000_000: 1.0})
    if error == "metric":
        trial.report(1, {"loss": Code()})
    if error == "chained":
        try:
            raise Mute
        except Mute as first:
            raise ValueError("after it") from first
    raise {"mute": Mute, "hidden": Hidden}[error]
"""


def test_an_error_whose_text_cannot_be_had_or_is_endless_fails_its_trial_alone(tmp_path):
    worker = worker_of(tmp_path, task=HOSTILE)
    for number, error in enumerate(
        ("mute", "hidden", "chained", "long", "name", "metric", "sys.exit")
    ):
        launched(worker, number, params={"error": error})
        failed = events_until(worker, ev.Failed)[-1]
        assert failed.kind is ErrorKind.ERROR
        assert 0 < len(failed.text) < 3_000, error
        log = (tmp_path / "checkpoints" / "logs" / f"trial-0000{number}-attempt-1.log").read_text()
        assert "in train" in log, error
        assert len(log) < 30_000, error


def test_what_stays_behind_a_stopped_trial_may_raise_anything(tmp_path, caplog):
    task = TASK.replace(
        'trial.report(epoch, {"loss": 1 / epoch})',
        """
        try:
            trial.report(epoch, {"loss": 1 / epoch})
        except BaseException:
            class Mute(Exception):
                def __str__(self):
                    raise SystemExit(3)
                __repr__ = __str__
            raise Mute
""",
    )
    worker = launched(worker_of(tmp_path, task=task), 0, until=1.0)
    events_until(worker, ev.Reported)
    worker.stop(ev.Stop(0, 1))
    assert isinstance(events_until(worker, ev.Stopped)[-1], ev.Stopped)
    assert "the stopped training function raised" in caplog.text
