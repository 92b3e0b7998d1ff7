"""A tracker that hangs, raises, crashes or is missing: it is told of once, and nothing waits for
it.

Each library here is a stand-in of some lines, found in place of the real one by the sender's real
process.
"""

import fcntl
import logging
import os
import signal
import tracemalloc
import types
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from hpsearch.running.tracking.processes import Senders
from hpsearch.running.tracking.secrets import without_secrets
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.trackers import NamedTracker
from support.files.past_runs import command
from support.patience import wait_until
from support.studies.tracked import tracked

RUN = """
class Settings:
    def __init__(self, **named): pass
class Run:
    summary = {}
    def define_metric(self, *a, **k): pass
    def log(self, *a, **k): pass
    def finish(self, *a, **k): pass
def init(**named):
    print("noise from a library", flush=True)
    return Run()
"""
HERE = RUN + "import os, signal\ndef here(): open(os.environ['HERE'], 'w').close()\n"
"""A library whose `here` writes a file."""
STUCK = {
    "hangs": "def init(**named):\n here()\n while True: os.write(2, b'.' * 65536)\n",
    "is stopped": "def init(**named):\n here()\n os.kill(os.getpid(), signal.SIGSTOP)\n",
}
BROKEN = {
    "hangs": HERE + STUCK["hangs"],
    "is stopped": HERE + STUCK["is stopped"],
    "raises": RUN
    + "import os\ndef init(**named):\n"
    + " raise ValueError('see https://me:secret@host/x?key=abc ' + os.environ['WANDB_API_KEY'])\n",
    "crashes": RUN + "import os\ndef init(**named): os.abort()\n",
    "exits": RUN + "def init(**named): raise SystemExit('no API key configured')\n",
    "is not the package": "import nothing_of_this_name\n",
}
WANDB = NamedTracker.model_validate({"wandb": {}})


@pytest.fixture
def spec(sqlite_url: str) -> StudySpec:
    return tracked(sqlite_url)


def run(
    url: str,
    spec: StudySpec,
    folder: Path,
    end_s: float | None = None,
    until: Callable[[], object] = lambda: True,
) -> list[str]:
    """Where everything was sent, by senders that are asked to end once something has happened."""
    with closing(Store.open(url)) as store:
        senders = Senders(store, spec.study, str(folder), [WANDB], end_s)
        senders.begin()
        wait_until(until)
        return senders.end()


def child_that_holds(file: Path) -> str:
    """The source of a child process that keeps a file locked."""
    return f"""
import fcntl, subprocess
held = open({str(file)!r}, "w")
fcntl.flock(held, fcntl.LOCK_EX)
subprocess.Popen(["sleep", "100000"], pass_fds=[held.fileno()])
"""


def can_lock(held: Path) -> bool:
    """Whether nobody keeps a file locked any more."""
    with held.open() as file, suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def library(monkeypatch: pytest.MonkeyPatch, folder: Path, source: str) -> None:
    """A library of this source is found before the real one."""
    (folder / "lib").mkdir()
    (folder / "lib" / "wandb.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder / "lib"))


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_tracker_is_told_of_once_and_left_alone(
    how, sqlite_url, spec, tmp_path, monkeypatch, caplog
):
    library(monkeypatch, tmp_path, BROKEN[how])
    here = tmp_path / "here"
    monkeypatch.setenv("HERE", str(here))
    monkeypatch.setenv("WANDB_API_KEY", "0123456789")
    with caplog.at_level(logging.WARNING, "hpsearch"):
        if how in STUCK:
            sent = run(sqlite_url, spec, tmp_path, 0.1, until=here.exists)
        else:
            sent = run(sqlite_url, spec, tmp_path)
    assert sent == []
    (line,) = [record.getMessage() for record in caplog.records]
    assert "track: wandb does not work" in line
    assert "hpsearch export tracked" in line
    assert "secret" not in line
    assert "abc" not in line
    assert "0123456789" not in line


def test_a_library_that_works_is_sent_everything(sqlite_url, spec, tmp_path, monkeypatch, caplog):
    library(monkeypatch, tmp_path, RUN)
    sent = run(sqlite_url, spec, tmp_path)
    assert sent == ["wandb: /hpsearch online"]
    assert caplog.records == []
    assert (tmp_path / "tracking" / "wandb.json").exists()


def test_what_a_library_leaves_running_ends_with_its_study(sqlite_url, spec, tmp_path, monkeypatch):
    held = tmp_path / "held"
    library(monkeypatch, tmp_path, RUN + child_that_holds(held))
    sent = run(sqlite_url, spec, tmp_path)
    assert sent == ["wandb: /hpsearch online"]
    wait_until(lambda: can_lock(held))


def test_an_interruption_leaves_no_sender_behind(sqlite_url, spec, tmp_path, monkeypatch):
    held = tmp_path / "held"
    interrupts = """
import __main__, os, signal, time
__main__.GRACE_S = 100_000
def init(**named):
    os.kill(os.getppid(), signal.SIGUSR1)
    time.sleep(100_000)
"""
    library(monkeypatch, tmp_path, RUN + child_that_holds(held) + interrupts)

    def interrupt(number: int, frame: types.FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(sqlite_url, spec, tmp_path)
    finally:
        signal.signal(signal.SIGUSR1, before)
    wait_until(lambda: can_lock(held))


def test_endless_noise_takes_no_memory(sqlite_url, spec, tmp_path, monkeypatch):
    noise = "import os\nfor _ in range(512): os.write(2, b'.' * 65536)\n"
    library(monkeypatch, tmp_path, RUN + noise)
    tracemalloc.start()
    try:
        sent = run(sqlite_url, spec, tmp_path)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sent == ["wandb: /hpsearch online"]
    assert peak_bytes < 512 * 65536 / 2


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at http://host/path, write to me@host", "at http://host/path, write to me@host"),
        ("http://host:80/path of me@host", "http://host:80/path of me@host"),
        ("'http://me:p@ss@host/x?key=abc', me@host", "'http://host/x?...', me@host"),
        ("got 0123456789 and 01234567", "got ... and ..."),
    ],
)
def test_a_text_keeps_all_but_its_secrets(text, shown, monkeypatch):
    monkeypatch.setenv("SOME_TOKEN", "01234567")
    monkeypatch.setenv("SOME_SECRET", "0123456789")
    assert without_secrets(text) == shown


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/dev/full").exists(), reason="no full disk")
def test_a_disk_that_is_full_is_told_of(sqlite_url, spec, tmp_path, monkeypatch, caplog):
    write_full = "\ndef init(**named): open('/dev/full', 'w').write('x' * 10 ** 6)\n"
    library(monkeypatch, tmp_path, RUN + write_full)
    with caplog.at_level(logging.WARNING, "hpsearch"):
        sent = run(sqlite_url, spec, tmp_path)
    assert sent == []
    assert "No space left on device" in caplog.text


def test_a_study_without_trackers_says_where_it_can_go(sqlite_url, capsys):
    tracked(sqlite_url)
    assert command("export", "tracked", "--storage", sqlite_url) == 2
    said = capsys.readouterr().err
    assert "the study file of tracked names no tracker" in said
    assert "add --to with a .csv or .parquet file, mlflow" in said
