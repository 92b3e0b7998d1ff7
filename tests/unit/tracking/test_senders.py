"""A tracker that hangs, raises, crashes or is missing: it is told of once, and nothing waits for
it.

Each library here is a stand-in of some lines, found in place of the real one by the sender's real
process.
"""

from __future__ import annotations

import fcntl
import logging
import os
from contextlib import closing
from pathlib import Path

import pytest

from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.trackers import NamedTracker
from hpsearch.tracking.processes import Senders
from patience import PATIENCE_S
from tracked_studies import tracked

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
BROKEN = {
    "hangs": RUN + "import time\ndef init(**named): time.sleep(100_000)\n",
    "raises": RUN + "def init(**named): raise ValueError('see https://me:secret@host/x?key=abc')\n",
    "crashes": RUN + "import os\ndef init(**named): os.abort()\n",
    "exits": RUN + "def init(**named): raise SystemExit('no API key configured')\n",
    "is not the package": "import nothing_of_this_name\n",
}
WANDB = NamedTracker.model_validate({"wandb": {}})


@pytest.fixture
def spec(sqlite_url: str) -> StudySpec:
    return tracked(sqlite_url)


def run(url: str, spec: StudySpec, folder: Path, end_s: float) -> list[str]:
    """Where everything was sent."""
    with closing(Store.open(url)) as store:
        senders = Senders(store, spec.study, str(folder), [WANDB], end_s)
        senders.begin()
        return senders.end()


def library(monkeypatch: pytest.MonkeyPatch, folder: Path, source: str) -> None:
    """A library of this source is found before the real one."""
    (folder / "lib").mkdir()
    (folder / "lib" / "wandb.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(folder / "lib"))


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_tracker_is_told_of_once_and_left_alone(
    how: str,
    sqlite_url: str,
    spec: StudySpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    library(monkeypatch, tmp_path, BROKEN[how])
    end_s = 4.0 if how == "hangs" else PATIENCE_S
    with caplog.at_level(logging.WARNING, "hpsearch"):
        sent = run(sqlite_url, spec, tmp_path, end_s)
    assert sent == []
    (line,) = [record.getMessage() for record in caplog.records]
    assert "track: wandb does not work" in line
    assert "hpsearch track tracked" in line
    assert "secret" not in line
    assert "abc" not in line


def test_a_library_that_works_is_sent_everything(
    sqlite_url: str,
    spec: StudySpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    library(monkeypatch, tmp_path, RUN)
    sent = run(sqlite_url, spec, tmp_path, PATIENCE_S)
    assert sent == ["wandb: /hpsearch online"]
    assert caplog.records == []
    assert (tmp_path / "tracking" / "wandb.json").exists()


def test_what_a_library_leaves_running_ends_with_its_study(
    sqlite_url: str, spec: StudySpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = tmp_path / "held"
    child = f"""
import fcntl, subprocess
held = open({str(held)!r}, "w")
fcntl.flock(held, fcntl.LOCK_EX)
subprocess.Popen(["sleep", "100000"], pass_fds=[held.fileno()])
"""
    library(monkeypatch, tmp_path, RUN + child)
    sent = run(sqlite_url, spec, tmp_path, PATIENCE_S)
    assert sent == ["wandb: /hpsearch online"]
    with held.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # once the child has ended


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/dev/full").exists(), reason="no full disk")
def test_a_disk_that_is_full_is_told_of(
    sqlite_url: str,
    spec: StudySpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    write_full = "\ndef init(**named): open('/dev/full', 'w').write('x' * 10 ** 6)\n"
    library(monkeypatch, tmp_path, RUN + write_full)
    with caplog.at_level(logging.WARNING, "hpsearch"):
        sent = run(sqlite_url, spec, tmp_path, PATIENCE_S)
    assert sent == []
    assert "No space left on device" in caplog.text
