"""A study as a job of a real Ray cluster, as docs/cluster.md says: Ray's own command sends it."""

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from support.patience import wait_until
from support.running.programs import HPSEARCH, run_program
from support.running.ray_heads import RAY, RayHead

TASK = """
import os
import time
from pathlib import Path

import beside


def train(params, trial):
    secrets = ("HPSEARCH_STORAGE", "HPSEARCH_NOTIFY", "PGPASSWORD")
    print("sees", [name for name in secrets if name in os.environ], flush=True)
    trial.report(1, {"loss": beside.loss(params)})
    while not Path(params["go"]).exists():
        time.sleep(0.05)
    trial.report(2, {"loss": beside.loss(params)})
"""
STUDY = """
study: sent
task: {kind: "sent:train", args: {go: "GO"}}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 1, per_trial: {epochs: 2}}
search: {sampler: random, pruner: none}
resources: {workers: 1, cpu: 1, gpu: 0, stop_grace: 2s}
"""


@pytest.fixture(scope="module")
def head() -> Iterator[RayHead]:
    """A cluster of one node, with a job server."""
    folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
    started = RayHead(folder / "r", cpus=2, jobs=True)
    yield started
    started.stop()
    shutil.rmtree(folder, ignore_errors=True)


def has_begun(database: Path) -> bool:
    """True if a trial has reported."""
    if not database.exists():
        return False
    with closing(sqlite3.connect(database)) as opened, suppress(sqlite3.Error):
        return bool(opened.execute("SELECT * FROM reports").fetchone())
    return False  # it is being created


def test_a_study_outlives_who_sent_it_is_stopped_and_goes_on_as_another_job(tmp_path, head):
    folder, database, go = tmp_path / "study", tmp_path / "sent.db", tmp_path / "go"
    folder.mkdir()
    (folder / "sent.py").write_text(TASK)
    (folder / "beside.py").write_text("def loss(params):\n    return params['x']\n")
    (folder / "study.yaml").write_text(STUDY.replace("GO", str(go)))
    secrets = {"HPSEARCH_STORAGE": f"sqlite:///{database}"}
    secrets["HPSEARCH_NOTIFY"] = "http://user:secret@127.0.0.1:1/"
    (tmp_path / "job.yaml").write_text(f"env_vars: {secrets}")
    server = ("--address", head.url)
    sends = [RAY, "job", "submit", *server, "--working-dir", ".", "--runtime-env", "../job.yaml"]
    runs = ["hpsearch", "run", "study.yaml", "--resume", "--checkpoints", str(tmp_path / "kept")]
    place = {"cwd": folder, "env": head.environment}

    with subprocess.Popen([*sends, "--submission-id", "sent-1", "--", *runs], **place) as first:
        wait_until(lambda: has_begun(database))
        first.send_signal(signal.SIGINT)
    knows = {**os.environ, **secrets}
    stopped = run_program([HPSEARCH, "stop", "sent"], env=knows)
    assert stopped.returncode == 0, stopped.stderr
    ended = run_program([RAY, "job", "logs", "sent-1", *server, "--follow"], env=head.environment)
    assert "; everything is saved" in ended.stdout

    # From a folder whose files are others by now.
    (folder / "notes.txt").write_text("a package of another name")
    go.touch()
    second = run_program([*sends, "--", *runs], **place)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "study sent has ended: all" in second.stdout
    assert "secret" not in ended.stdout + second.stdout
    shown = run_program([HPSEARCH, "show", "sent", "0", "--log"], env=knows)
    assert shown.stdout.count("\nsees []\n") == 2, shown.stdout + shown.stderr
