"""What a worker prints during an attempt is the attempt's log, whoever prints it."""

import sys
import uuid
from pathlib import Path

import pytest

from hpsearch.domain import events as ev
from hpsearch.running.executors.attempt.attempt_log import AttemptLog, logged
from hpsearch.running.executors.worker import Worker
from hpsearch.running.executors.worker_config import WorkerConfig
from support.patience import PATIENCE_S, wait_until
from support.running.programs import run_program
from trials.checkpoints import folders
from trials.checkpoints.disk.log_file import MOST_BYTES
from trials.checkpoints.folders import log_of
from trials.contract import Budget, Unit

TASK = """
import ctypes, logging, os, signal, subprocess, sys, warnings

def train(params, trial):
    print("by Python")
    print("to standard error", file=sys.stderr)
    warnings.warn("a warning")
    logging.getLogger("mine").warning("by logging")
    ctypes.CDLL(None).printf(b"by C\\n")
    subprocess.run(["echo", "by a child"])
    trial.report(1, {"loss": 0.5})
    if params["way"] == "raises":
        raise KeyError("no such column")
    if params["way"] == "killed":
        print("the last words", end="", flush=True)
        os.kill(os.getppid(), signal.SIGKILL)  # its worker
    trial.report(2, {"loss": 0.25})
"""

PROGRAM = """
import sys
from hpsearch.domain import events as ev
from hpsearch.running.executors.worker import Worker
from hpsearch.running.executors.worker_config import WorkerConfig
from trials.contract import Budget, Unit

folder = sys.argv[1]
budget = Budget(Unit.EPOCHS, 2.0, (1.0, 2.0))
config = WorkerConfig({"kind": "talking:train"}, folder, {}, budget, folder + "/s", prepares=False)
worker = Worker(config, lambda data: data, prints_into_logs=True)
for trial, way in enumerate(("ends", "raises", "killed")):
    worker.launch(ev.Launch(trial, 1, "w", {"way": way}, seed=1, until=2.0), None)
    while not any(isinstance(e, ev.Finished | ev.Failed) for e in worker.poll(5.0)):
        pass
    print("between two attempts", flush=True)
"""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[str]]:
    """What a process with a worker printed itself, and the logs of its three attempts, of which the
    last one killed it."""
    folder = tmp_path_factory.mktemp("talking")
    (folder / "talking.py").write_text(TASK)
    done = run_program([sys.executable, "-c", PROGRAM, str(folder)], timeout=PATIENCE_S)
    assert done.returncode == -9, done.stderr
    logs = [Path(log_of(folder / "s", trial, 1)).read_text() for trial in range(3)]
    return done.stdout + done.stderr, logs


def test_all_that_is_printed_during_an_attempt_is_in_its_log_and_nowhere_else(told):
    own, logs = told
    said = ("by Python", "to standard error", "a warning", "by logging", "by a child")
    for log in logs:
        for words in said:
            assert f"{words}\n" in log, words
    for log in logs[:2]:  # C kept it back, and the process that was killed did not write it
        assert "by C\n" in log
    assert own.splitlines() == ["between two attempts"] * 2


def test_a_log_says_how_its_attempt_began_and_ended(told):
    _, (ended, failed, _) = told
    assert "trial 0, attempt 1 begins on " in ended.splitlines()[0]
    assert ended.splitlines()[1].endswith('parameters: {"way": "ends"}')
    assert ended.splitlines()[-1].endswith("ended after its report at 2 epochs: budget used")
    assert "failed after its report at 1 epoch, error: KeyError: 'no such column'\n" in failed
    assert 'raise KeyError("no such column")' in failed


def test_a_killed_worker_leaves_what_it_printed(told):
    assert told[1][2].endswith("the last words")


def test_a_log_in_a_store_is_sent_while_it_grows_and_once_more_in_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("hpsearch.running.executors.attempt.attempt_log.LOOK_S", 0.001)
    monkeypatch.setattr("hpsearch.running.executors.attempt.attempt_log.SEND_S", 0.0)
    folder = f"memory://{uuid.uuid4().hex}/logs"
    attempt_log = AttemptLog(f"{folder}/log")
    draft = attempt_log.path.parent
    attempt_log.file.write(b"one\n")
    wait_until(lambda: folders.folder_at(folder).text("log") == "one\n")
    attempt_log.file.write(b"x" * MOST_BYTES + b"two\n")
    attempt_log.close()
    assert "goes on; what was before is in log.earlier" in str(
        folders.folder_at(folder).text("log")
    )
    assert str(folders.folder_at(folder).text("log.earlier")).endswith("xtwo\n")
    assert not draft.exists()


def test_an_attempt_whose_log_cannot_be_written_trains_without_one(tmp_path, caplog):
    (tmp_path / "file").touch()
    with logged(tmp_path / "file" / "log", redirects=True) as log:
        assert log is None
    assert "there will be no log" in caplog.text


def test_a_store_that_is_gone_costs_the_log_and_nothing_else(caplog):
    with logged("nosuchstore://bucket/logs/log", redirects=False) as log:
        assert log is not None
        log.note("begins")
    assert "was not written" in caplog.text


def test_several_attempts_of_one_worker_have_a_log_each(tmp_path):
    (tmp_path / "silent.py").write_text(
        "def train(params, trial):\n    trial.report(1, {'a': 1})\n    trial.report(2, {'a': 1})\n"
    )
    budget = Budget(Unit.STEPS, 2.0, (1.0, 2.0))
    study = tmp_path / "s"
    config = WorkerConfig(
        {"kind": "silent:train"}, str(tmp_path), {}, budget, str(study), prepares=False
    )
    worker = Worker(config, lambda data: data)
    worker.launch(ev.Launch(0, 1, "w", {}, seed=1, until=1.0), None)
    while not worker.poll(5.0):
        pass
    worker.stop(ev.Stop(0, 1))
    while not any(isinstance(event, ev.Stopped) for event in worker.poll(5.0)):
        pass
    last = Path(log_of(study, 0, 1)).read_text().splitlines()[-1]
    assert last.endswith("told to stop after its report at 1 step; it has no checkpoint")
