"""A tracker that hangs, raises or is missing: it is told of once, and nothing waits for it.

Each library here is a stand-in of some lines, found in place of the real one.
"""

import logging
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hpsearch.running.tracking.secrets import without_secrets
from hpsearch.running.tracking.senders import Senders, any_is_stuck
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
HANGS = """
import os, pathlib, time
def init(**named):
    here = pathlib.Path(os.environ["HERE"])
    here.touch()
    while here.exists(): time.sleep(0.01)
    raise SystemExit
"""
BROKEN = {
    "hangs": HANGS,
    "raises": "import os\ndef init(**named):\n"
    + " raise ValueError('see https://me:secret@host/x?key=abc ' + os.environ['WANDB_API_KEY'])\n",
    "exits": "def init(**named): raise SystemExit('no API key configured')\n",
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


def library(monkeypatch: pytest.MonkeyPatch, folder: Path, source: str) -> None:
    """A library of this source is found before the real one."""
    (folder / "lib").mkdir()
    (folder / "lib" / "wandb.py").write_text(RUN + source)
    monkeypatch.syspath_prepend(folder / "lib")
    for name in ("wandb", "hpsearch.plugins.wandb.tracker"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_tracker_is_told_of_once_and_left_alone(
    how, sqlite_url, spec, tmp_path, monkeypatch, caplog
):
    library(monkeypatch, tmp_path, BROKEN[how])
    monkeypatch.setenv("WANDB_API_KEY", "0123456789")
    monkeypatch.setenv("HERE", str(tmp_path / "here"))
    with caplog.at_level(logging.WARNING, "hpsearch"):
        if how == "hangs":
            sent = run(sqlite_url, spec, tmp_path, 0.1, until=(tmp_path / "here").exists)
        else:
            sent = run(sqlite_url, spec, tmp_path)
    assert any_is_stuck() == (how == "hangs")
    (tmp_path / "here").unlink(missing_ok=True)
    wait_until(lambda: not any_is_stuck())
    assert sent == []
    (line,) = [record.getMessage() for record in caplog.records]
    assert "track: wandb does not work" in line
    assert "hpsearch export tracked" in line
    assert "secret" not in line
    assert "abc" not in line
    assert "0123456789" not in line


def test_a_library_that_works_is_sent_everything(sqlite_url, spec, tmp_path, monkeypatch, caplog):
    library(monkeypatch, tmp_path, "")
    sent = run(sqlite_url, spec, tmp_path)
    assert sent == ["wandb: /hpsearch online"]
    assert caplog.records == []
    assert (tmp_path / "tracking" / "wandb.json").exists()


def test_an_interruption_leaves_a_sender_behind(sqlite_url, spec, tmp_path, monkeypatch):
    library(monkeypatch, tmp_path, HANGS)
    monkeypatch.setenv("HERE", str(tmp_path / "here"))

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(sqlite_url, spec, tmp_path, until=(tmp_path / "here").exists)
    monkeypatch.undo()
    assert any_is_stuck()
    (tmp_path / "here").unlink()
    wait_until(lambda: not any_is_stuck())


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


def test_a_study_without_trackers_says_where_it_can_go(sqlite_url, capsys):
    tracked(sqlite_url)
    assert command("export", "tracked", "--storage", sqlite_url) == 2
    said = capsys.readouterr().err
    assert "the study file of tracked names no tracker" in said
    assert "add --to with a .csv or .parquet file, mlflow" in said
