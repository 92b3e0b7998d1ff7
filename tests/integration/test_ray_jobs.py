"""A study as a job of a real Ray cluster, submitted from a machine that then goes away."""

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

from hpsearch.cli.main import main
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


class Laptop:
    """A person with a study, away from the cluster."""

    def __init__(self, folder: Path, head: RayHead) -> None:
        self.folder = folder / "study"
        self.folder.mkdir()
        self.go = folder / "go"
        self.database = folder / "sent.db"
        self.storage = f"sqlite:///{self.database}"
        self.checkpoints = str(folder / "checkpoints")
        self._head = head
        self.environment = {**head.environment, "HPSEARCH_STORAGE": self.storage}
        self.environment["HPSEARCH_NOTIFY"] = "http://user:secret@127.0.0.1:1/"
        (self.folder / "sent.py").write_text(TASK)
        (self.folder / "beside.py").write_text("def loss(params):\n    return params['x']\n")
        for name in ("random", "ray", "trials"):  # of the user's, and not of Python's or ours
            (self.folder / f"{name}.py").write_text("raise SystemExit('run by mistake')\n")
        (self.folder / "study.yaml").write_text(STUDY.replace("GO", str(self.go)))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [HPSEARCH, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def submit(self) -> subprocess.Popen[str]:
        where = ("--address", self._head.url, "--checkpoints", self.checkpoints)
        return self.start("submit", "study.yaml", *where)

    def run(self, *arguments: str) -> tuple[int, str, str]:
        """The exit code of a command, and what it printed."""
        with self.start(*arguments) as running:
            said, complained = running.communicate()
        return running.returncode, said, complained

    def has_begun(self) -> bool:
        """True if the trial has reported."""
        if not self.database.exists():
            return False
        with closing(sqlite3.connect(self.database)) as database, suppress(sqlite3.Error):
            return bool(database.execute("SELECT * FROM reports").fetchone())
        return False  # it is being created


def test_a_study_survives_who_submitted_it_and_is_refused_a_second_time(tmp_path, head):
    laptop = Laptop(tmp_path, head)
    with laptop.submit() as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "hpsearch-sent-1\n"
        wait_until(laptop.has_begun)
        first.send_signal(signal.SIGINT)
        _, said = first.communicate()
    assert first.returncode == 130
    assert "the study goes on without this terminal" in said
    assert f"ray job logs hpsearch-sent-1 --follow --address {head.url}" in said
    with laptop.submit() as second:
        _, said = second.communicate()
    assert second.returncode == 4
    assert "study sent is job hpsearch-sent-1 already" in said
    code, _, said = laptop.run("stop", "sent")
    assert code == 0, said

    # Where it was interrupted, it goes on: from a folder whose files are others by now.
    (laptop.folder / "notes.txt").write_text("a package of another name")
    log = [RAY, "job", "logs", "hpsearch-sent-1", "--address", head.url, "--follow"]
    ended = run_program(log, env=head.environment)
    assert "; everything is saved" in ended.stdout
    laptop.go.touch()
    with laptop.submit() as third:
        name, said = third.communicate()
    assert third.returncode == 0, said
    assert name == "hpsearch-sent-2\n"
    assert "study sent has ended: all" in said
    assert "secret" not in said
    code, log_of_trial, said = laptop.run("show", "sent", "0", "--log")
    assert code == 0, said
    assert log_of_trial.count("\nsees []\n") == 2


def test_what_a_cluster_could_not_find_is_refused_before_anything_is_sent(
    tmp_path, head, monkeypatch, capsys
):
    laptop = Laptop(tmp_path, head)
    where = ("submit", "study.yaml", "--address", head.url)
    kept = ("--checkpoints", laptop.checkpoints)

    for name, value in laptop.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(laptop.folder)

    def refused(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        said = capsys.readouterr()
        assert (ended.value.code, said.out) == (2, ""), said.err
        return said.err

    assert "checkpoints must be where the cluster finds them" in refused(*where)
    assert "checkpoints must be" in refused(*where, "--checkpoints", "here")
    assert "the database must be where" in refused(*where, "--storage", "sqlite:///h.db", *kept)
    assert "may hold a secret" in refused(*where, *kept, "--notify", "http://u:p@h/")
    assert "No such option: --nodes" in refused(*where, *kept, "--nodes", "4")
    assert "without --slurm" in refused(*where, *kept, "--slurm")
    data = laptop.folder / "data.csv"
    data.touch()
    os.truncate(data, 101 << 20)
    # In processes of their own: one that has asked a server keeps the token of its first one.
    code, _, said = laptop.run(*where, *kept)
    assert code == 2
    assert "has more than 100 MiB of files" in said
    code, _, said = laptop.run("submit", "study.yaml", "--address", "http://127.0.0.1:1", *kept)
    assert code == 3
    assert "Failed to connect" in said
    assert not Path(laptop.checkpoints).exists()
