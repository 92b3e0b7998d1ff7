"""A local Ray that starts while signals come, while its head dies, slowly, below a long path, or
beside any files; it ends with a terminal."""

import fcntl
import json
import os
import pty
import signal
import sqlite3
import subprocess
import sys
import termios
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from hpsearch.errors import HpsearchError
from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.study_file.models import Resources
from support.patience import wait_until
from support.running.programs import HPSEARCH, run_program

STUDY = """
study: starts
task: {kind: "starts:train"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 2, per_trial: {epochs: 1}}
resources: {workers: 1}
"""

CODE = """
def train(params, trial):
    trial.report(1, {"loss": params["x"]})
"""

COMMAND = """
study: shadows
task: {kind: command, run: "PYTHON programs/train.py {x}"}
space: {x: {type: float, low: 0.0, high: 1.0}}
objective: {metric: loss, direction: minimize}
budget: {trials: 1, per_trial: {epochs: 1}}
resources: {workers: 1, gpu: 0}
"""

PROGRAM = "from hpsearch.cli.entry import main; main()"

SLOW = """
import time
import ray
import ray._private.services as services
from hpsearch.running.executors.cluster.ray_cluster import cluster
from hpsearch.study_file.models import Resources

ready, answer = time.monotonic() + 33, services.get_node


def slow(*arguments, **options):
    if time.monotonic() < ready:
        time.sleep(1)
        raise RuntimeError("the node has not registered")
    return answer(*arguments, **options)


services.get_node = slow
with cluster(None, Resources(workers=1)) as thread:
    print(len(thread.call(ray.nodes)), "node")
"""


def processes_of(folder: Path) -> dict[int, str]:
    """The programs that run with a mark of their own, as all that a study starts does."""
    found = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):  # it has ended, or is another user's
                if f"STARTED_IN={folder}".encode() in (process / "environ").read_bytes():
                    program, _, _ = (process / "cmdline").read_bytes().partition(b"\0")
                    found[int(process.name)] = program.decode()
    return found


def part_of(folder: Path, name: str, command: subprocess.Popen[str]) -> int:
    """The process of a part of the Ray that a command starts, as soon as there is one."""
    found: list[int] = []

    def has_begun() -> bool:
        found[:] = [each for each, program in processes_of(folder).items() if name in program]
        return bool(found) or command.poll() is not None

    wait_until(has_begun)
    assert found, command.communicate()
    return found[0]


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "starts.py").write_text(CODE)
    return tmp_path


def started(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "run", "study.yaml"],
        cwd=folder,
        env={**os.environ, "STARTED_IN": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.cases(1)
@pytest.mark.parametrize("part", ["gcs_server", "raylet"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_while_ray_starts_ends_the_command_and_all_of_it(study, part, number):
    with started(study) as command:
        part_of(study, part, command)
        command.send_signal(number)
        said, _ = command.communicate()
    assert command.returncode == 130, said
    assert "Traceback" not in said
    wait_until(lambda: not processes_of(study))


LONG = """
import time
def train(params, trial):
    for epoch in range(1, trial.budget + 1):
        time.sleep(0.05)
        trial.report(epoch, {"loss": params["x"]})
"""


def rows(folder: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "hpsearch.db")) as database, suppress(sqlite3.Error):
        return database.execute(statement).fetchall()
    return []


@pytest.mark.parametrize(
    "by", ["its group", pytest.param("its terminal", marks=pytest.mark.thorough)]
)
def test_what_ends_a_whole_group_leaves_rays_processes_to_save_the_trials(study, by):
    """As `timeout` does, which sends its signal twice, and the kernel for a closed terminal."""
    (study / "starts.py").write_text(LONG)
    text = STUDY.replace("epochs: 1", "epochs: 3000")
    (study / "study.yaml").write_text(text)
    near, far = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "run", "study.yaml", "--quiet"],
        cwd=study,
        stdin=far,
        stdout=far,
        stderr=far,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    ) as command:
        os.close(far)
        begun = "SELECT 1 FROM reports"
        wait_until(lambda: rows(study, begun) or command.poll() is not None)
        if by == "its group":
            command.send_signal(signal.SIGTERM)
            os.killpg(command.pid, signal.SIGTERM)
        else:
            os.close(near)
        code = command.wait()
    name = "SIGTERM" if by == "its group" else "SIGHUP"
    assert rows(study, "SELECT state, reason FROM studies") == [
        ("interrupted", f"told to end by {name}")
    ]
    assert rows(study, "SELECT outcome FROM attempts") == [("interrupted",)]
    assert code == 130


POOL = """
import multiprocessing
def train(params, trial):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        trial.report(1, {"loss": params["x"] + pool.apply(abs, (-1,))})
"""


def test_sockets_of_ray_and_of_a_trial_work_below_a_long_temporary_folder(study):
    (study / "starts.py").write_text(POOL)
    long = study / ("a/rather/long/name/" * 5)
    long.mkdir(parents=True)
    done = run_program(
        [sys.executable, "-c", PROGRAM, "run", "study.yaml"],
        cwd=study,
        env={**os.environ, "TMPDIR": str(long)},
    )
    assert done.returncode == 0, done.stderr
    assert (long / "ray").is_dir(), "what needs room is where it was meant to be"


@pytest.mark.parametrize(
    ("error", "code", "hint"),
    [
        (
            OSError("AF_UNIX path length cannot exceed 107 bytes: /x"),
            2,
            "set TMPDIR to a short one",
        ),
        (PermissionError(13, "Permission denied", "/.ray"), 2, "HOME and TMPDIR must be"),
        (RuntimeError("the raylet died"), 3, "try again; its logs are in"),
    ],
)
def test_a_start_that_will_never_succeed_is_not_told_as_one_that_may(
    error, code, hint, monkeypatch
):
    def fail(**_: object) -> None:
        raise error

    monkeypatch.setattr("ray.init", fail)
    with pytest.raises(HpsearchError) as caught, cluster(None, Resources(workers=1)):
        pass
    assert caught.value.exit_code == code
    assert hint in str(caught.value)


@pytest.mark.thorough
def test_a_head_that_dies_while_it_starts_ends_the_command_within_its_limit(study):
    with started(study) as command:
        os.kill(part_of(study, "gcs_server", command), signal.SIGKILL)
        said, _ = command.communicate()
    assert command.returncode == 3, said
    assert "Traceback" not in said
    assert "try again" in said
    wait_until(lambda: not processes_of(study))


@pytest.mark.thorough
def test_a_machine_on_which_ray_starts_slowly_gets_another_try(tmp_path):
    done = run_program(
        [sys.executable, "-c", SLOW], env={**os.environ, "STARTED_IN": str(tmp_path)}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1 node\n"
    wait_until(lambda: not processes_of(tmp_path))


@pytest.mark.parametrize("places", [None, "."])
def test_files_of_the_user_do_not_stand_in_for_modules_that_are_installed(tmp_path, places):
    names = ["hpsearch", "trials", "ray", "torch", "optuna", "queue", "random", "sqlalchemy"]
    if places is None:  # Python itself would read these
        names += ["types", "logging", "signal"]
    else:
        names.remove("hpsearch")
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name}.py of the user was run')")
    program = "import json, os, sys; print(json.dumps({'resource': 1, 'loss': float(sys.argv[1]), "
    program += "'placed': len(os.environ.get('PYTHONPATH', ''))}))"
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "train.py").write_text(program)
    (tmp_path / "study.yaml").write_text(COMMAND.replace("PYTHON", sys.executable))
    environment = {**os.environ, "HPSEARCH_STORAGE": "sqlite:///study.db", "OMP_NUM_THREADS": "1"}
    if places is not None:
        environment["PYTHONPATH"] = places
    for command in ("check", "run"):
        ended = run_program([HPSEARCH, command, "study.yaml"], cwd=tmp_path, env=environment)
        assert ended.returncode == 0, ended.stderr
    assert "of the user was run" not in ended.stdout + ended.stderr
    with closing(sqlite3.connect(tmp_path / "study.db")) as database:
        (metrics,) = database.execute("SELECT metrics FROM reports").fetchone()
    assert json.loads(metrics)["placed"] == len(places or "")
