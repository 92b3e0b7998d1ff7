"""Workers that are stopped, told to end, or killed with children: noticed, replaced, and nothing of
them stays."""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import ray

from hpsearch.domain import events as ev
from hpsearch.running.executors.attempt.execution import RETIRED
from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.running.executors.ray import RayExecutor
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources
from support.patience import PATIENCE_S, wait_until
from support.running.executor_events import of, wait_for
from trials.contract import Budget, Unit

TASK = """
import os, subprocess, time
from pathlib import Path

HERE = Path(__file__).parent


def train(params, trial):
    child = subprocess.Popen(["sleep", "1000"])
    away = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    (HERE / "child").write_text(f"{child.pid} {away.pid}")
    with trial.save() as folder:
        (folder / "state").write_text("1")
    resource = 1.0
    trial.report(resource, {"loss": 1.0, "process": os.getppid()})
    while not (HERE / "go on").exists():
        resource += 1e-6
        trial.report(resource, {"loss": 1.0, "process": os.getppid()})
        time.sleep(0.05)
"""

LEAVING = """
import os, subprocess, sys, time
from multiprocessing import get_context
from pathlib import Path

HERE = Path(__file__).parent
SERVES_ALL = subprocess.Popen(["sleep", "1000"])


def sleep():
    time.sleep(1000)


def twice_removed():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            (HERE / "daemon").write_text(str(os.getpid()))
            sleep()
        os._exit(0)


def train(params, trial):
    if not params["leaves"]:
        trial.report(4.0, {"loss": 1.0, "serves": SERVES_ALL.pid})
        return
    process = get_context("fork").Process(target=sleep)
    process.start()
    started = [
        process.pid,
        subprocess.Popen(["sleep", "1000"]).pid,
        subprocess.Popen(["sleep", "1000"], start_new_session=True).pid,
        subprocess.Popen(["sh", "-c", "sleep 1000 & sleep 1000"]).pid,
    ]
    os.system("(setsid sleep 1001 &)")
    twice_removed()
    while not (HERE / "daemon").exists():
        time.sleep(0.01)
    subprocess.Popen(["sleep", "0.1"])
    (HERE / "left").write_text(" ".join(map(str, started)))
    if params["leaves"] == "failing":
        raise ValueError
    trial.report(4.0, {"loss": 1.0})
"""

TIMEOUT_S = PATIENCE_S


@pytest.fixture(scope="module")
def local_ray() -> Iterator[None]:
    with cluster(None, Resources(workers=2)):
        yield


def executor_of(module: str, folder: Path) -> RayExecutor:
    budget = Budget(Unit.EPOCHS, 4.0, (1.0, 4.0))
    saved = str(folder / "checkpoints")
    config = WorkerConfig(
        {"kind": f"{module}:train"}, str(folder), {}, budget, saved, prepares=False
    )
    resources = Resources(workers=1, gpu=0.0).model_copy(update={"worker_timeout_s": TIMEOUT_S})
    return RayExecutor(config, resources)


@pytest.fixture
def executor(local_ray: None, tmp_path: Path) -> Iterator[RayExecutor]:
    (tmp_path / "endless_task.py").write_text(TASK)
    made = executor_of("endless_task", tmp_path)
    yield made
    made.close()


def begun(executor: RayExecutor, until: float = 4.0) -> tuple[str, int]:
    """Starts an attempt; the slot it is on, and the process of its worker."""
    slot = next(
        event.slot for event in wait_for(executor, of(ev.SlotUp)) if isinstance(event, ev.SlotUp)
    )
    executor.launch(ev.Launch(0, 1, slot, {}, 1, until))
    report = next(
        event for event in wait_for(executor, of(ev.Reported)) if isinstance(event, ev.Reported)
    )
    return slot, int(report.metrics["process"])


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_worker_that_is_stopped_while_idle_is_noticed_killed_and_replaced(executor, monkeypatch):
    slot, process = begun(executor, until=1.0)
    os.kill(process, signal.SIGSTOP)
    short = executor._resources.model_copy(update={"worker_timeout_s": 1.0})
    with monkeypatch.context() as patch:
        patch.setattr(executor, "_resources", short)
        events = wait_for(executor, of(ev.SlotDown))
    assert ev.SlotDown(slot, "no sign of life for 1 s (worker_timeout)") in events
    wait_for(executor, of(ev.SlotUp))
    wait_until(lambda: gone(process))


def test_a_worker_is_not_taken_for_silent_while_nobody_listens(executor, monkeypatch):
    _, process = begun(executor, until=1.0)
    executor.poll(0.0)  # the answer to this one is awaited
    os.kill(process, signal.SIGSTOP)
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: now() + 10 * TIMEOUT_S)  # the driver was away
    events = executor.poll(0.0)
    os.kill(process, signal.SIGCONT)
    events += executor.poll(0.1)
    assert [event for event in events if isinstance(event, ev.SlotDown)] == []


def test_a_worker_that_is_told_to_end_saves_first(executor):
    slot, process = begun(executor)
    os.kill(process, signal.SIGTERM)
    events = wait_for(executor, of(ev.SlotUp))
    (stopped,) = [event for event in events if isinstance(event, ev.Stopped)]
    assert (stopped.trial, stopped.attempt, stopped.signalled) == (0, 1, True)
    assert ev.SlotDown(slot, RETIRED) in events
    wait_until(lambda: gone(process))


def test_what_is_launched_just_as_its_idle_worker_is_told_to_end_is_given_back(executor):
    (up,) = wait_for(executor, of(ev.SlotUp))
    assert isinstance(up, ev.SlotUp)
    executor.poll(0.0)  # listens
    ray.get(executor._slots[up.slot].actor.retire.remote())
    executor.launch(ev.Launch(0, 1, up.slot, {}, 1, 4.0))
    events = wait_for(executor, of(ev.SlotDown))
    assert events[-2:] == [ev.Stopped(0, 1, why=RETIRED), ev.SlotDown(up.slot, RETIRED)]


def test_a_workers_children_die_with_it(executor, tmp_path):
    slot, process = begun(executor)
    children = [int(word) for word in (tmp_path / "child").read_text().split()]
    assert not any(map(gone, children))
    os.kill(process, signal.SIGKILL)
    events = wait_for(executor, of(ev.SlotDown))
    assert slot in [event.slot for event in events if isinstance(event, ev.SlotDown)]
    wait_until(lambda: all(map(gone, children)))


@pytest.mark.parametrize("leaves", ["returning", "failing"])
def test_what_an_attempt_leaves_behind_ends_before_the_next_one(local_ray, tmp_path, leaves):
    (tmp_path / "leaving_task.py").write_text(LEAVING)
    with closing(executor_of("leaving_task", tmp_path)) as executor:
        (up,) = wait_for(executor, of(ev.SlotUp))
        assert isinstance(up, ev.SlotUp)
        executor.launch(ev.Launch(0, 1, up.slot, {"leaves": ""}, 1, 4.0))
        events = wait_for(executor, of(ev.Finished))
        (serves,) = [event.metrics["serves"] for event in events if isinstance(event, ev.Reported)]
        assert not any(isinstance(event, ev.SlotDown) for event in events)
        executor.launch(ev.Launch(1, 1, up.slot, {"leaves": leaves}, 1, 4.0))
        events = wait_for(executor, of(ev.Finished if leaves == "returning" else ev.Failed))
        left = [int(word) for word in (tmp_path / "left").read_text().split()]
        left.append(int((tmp_path / "daemon").read_text()))
        assert all(map(gone, left)), "by the end of the attempt"
        commands = Path("/proc").glob("[0-9]*/cmdline")
        assert not any(is_of(command, b"sleep\x001001") for command in commands)
        assert ev.SlotDown in map(type, events)
        wait_until(lambda: gone(int(serves)))
    log = tmp_path / "checkpoints" / "logs" / "trial-00001-attempt-1.log"
    assert "its training left processes behind, which were ended: " in log.read_text()


def is_of(command: Path, words: bytes) -> bool:
    try:
        return words in command.read_bytes()
    except OSError:
        return False


@pytest.mark.thorough
def test_a_worker_that_never_gets_ready_is_tried_anew(executor, monkeypatch, caplog):
    monkeypatch.setattr("hpsearch.running.executors.ray.STARTS", 0)
    monkeypatch.setattr(executor, "_answers", lambda _: [])  # it says nothing
    wait_for(executor, lambda _: "worker w0 is not ready yet" in caplog.text)
    monkeypatch.undo()
    up = [event.slot for event in wait_for(executor, of(ev.SlotUp)) if isinstance(event, ev.SlotUp)]
    assert up[0] != "w0"
