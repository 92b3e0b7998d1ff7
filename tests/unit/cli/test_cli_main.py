"""The program as a whole: exit codes, errors, what it imports, and signals."""

import inspect
import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import hpsearch.cli.main  # noqa: F401 - adds the commands
from hpsearch.cli.commands.app import CALLED, called_by
from hpsearch.cli.output import suggest_for, suggested
from hpsearch.store.store import Store
from support.running.programs import run_program

Run = Callable[..., Any]


COMMANDS = """\
init; check; run; resume; stop; ls; status; best; trials; show; export; dashboard; rm; db upgrade; \
db check"""


@pytest.mark.parametrize("command", COMMANDS.split("; "))
def test_every_command_explains_itself(run, command):
    said = run(*command.split(), "--help")
    assert said.code == 0
    assert "Usage: hpsearch" in said.out


def test_mistakes_of_the_user_end_with_2_and_show_the_place(run, flowers):
    assert run("best", "--tops", "3").code == 2
    said = run("best", "flower")
    assert said.code == 2
    assert "did you mean flowers?" in said.err
    said = run("trials", flowers, "--where", "lr <")
    assert said.code == 2
    assert said.err == "hpsearch: --where: expected a value, found the end\n    lr <\n        ^\n"
    said = run("run", "study.yaml", "--workers", "many")
    assert said.code == 2
    assert "--workers many" in said.err


def test_a_missing_database_is_not_waited_for_and_not_made(run, sqlite_url):
    said = run("ls")
    assert said.code == 2
    assert said.out == ""
    assert "--storage" in said.err
    assert not Path(sqlite_url.removeprefix("sqlite:///")).exists()


def test_a_bug_keeps_its_traceback_and_an_interruption_ends_with_130(run, flowers, monkeypatch):
    monkeypatch.setattr("hpsearch.cli.results.best.study_result", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("best", flowers)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hpsearch.cli.results.best.study_result", interrupted)
    assert run("best", flowers).code == 130


def test_stop_asks_the_driver_and_says_who_it_is_or_that_there_is_none(run, flowers, sqlite_url):
    said = run("stop", flowers)
    assert said.code == 0
    assert "nothing to stop" in said.err
    with closing(Store.open(sqlite_url)) as store:
        lease = store.acquire(store.find_study(flowers).id, "ada@host:123#b-00t/1/2", 3600.0)
        said = run("stop", flowers)
        assert "ada@host:123 will stop" in said.err
        assert store.renew(lease, 3600.0, 0.0).stop_requested, "the driver learns of it"


def test_db_check_lists_what_must_not_be(run, flowers, sqlite_url):
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute("UPDATE trials SET gpu_seconds = 31 WHERE number = 2")
    said = run("db", "check", flowers)
    assert said.code == 2
    assert "2 problems found" in said.err
    assert "flowers, trial 2: it is charged 31 GPU-seconds" in said.err
    assert (
        "flowers, trial 2: its checkpoint cannot be used: /checkpoints/2 is not a checkpoint"
        in said.err
    )


def test_the_program_says_its_version(run):
    said = run("--version")
    assert said.code == 0
    assert said.out == f"hpsearch {version('hpsearch')}\n"


def test_db_upgrade_makes_the_tables_of_an_empty_database(run):
    assert run("db", "upgrade").code == 0
    assert json.loads(run("ls", "--format", "json").out) == []
    assert "already" in run("db", "upgrade").err


def test_a_dashboard_that_is_not_installed_says_how_to_get_it(run, flowers, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    said = run("dashboard")
    assert said.code == 2
    assert "pip install '.[dashboard]'" in said.err


SLOW = {
    *("alembic", "botorch", "numpy", "optuna", "pandas", "plotly", "psycopg", "pyarrow"),
    *("ray", "scipy", "sklearn", "starlette", "torch", "transformers"),
}
"""Packages that take longer to import than a table takes to read and print."""

PRINTS_ITS_MODULES = """
import json, sys
from hpsearch.cli.main import main
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as ended:
        assert not ended.code, ended.code
    print(*sys.modules, file=sys.stderr)
"""


def imported_by(*commands: tuple[str, ...]) -> list[set[str]]:
    """The packages that a process has imported after each of some commands."""
    program = [sys.executable, "-c", PRINTS_ITS_MODULES, json.dumps(commands)]
    said = run_program(program, check=True)
    assert said.stdout
    lines = said.stderr.splitlines()[-len(commands) :]
    return [{name.partition(".")[0] for name in line.split()} for line in lines]


def test_what_the_program_says_of_itself_needs_no_database():
    for imported in imported_by(("--help",), ("--version",)):
        assert not imported & (SLOW | {"sqlalchemy"})


def test_a_table_needs_no_slow_package(flowers, sqlite_url):
    commands = (
        ("ls",),
        ("status", "flowers"),
        ("best", "flowers", "--top", "3"),  # its best trial was repeated
        ("show", "flowers", "2"),
        ("trials", "flowers", "--where", "lr < 0.05", "--sort", "value desc"),
    )
    asked = [(*command, "--storage", sqlite_url) for command in commands]
    for command, imported in zip(commands, imported_by(*asked), strict=True):
        assert not imported & SLOW, command


PROGRAM = """
import os, signal, sys, time
from hpsearch.cli.entry import main

{before}
sys.argv = ["hpsearch", "--version"]
main()
"""

IMPORTING = """
class Late:
    def find_spec(self, name, path=None, target=None):
        if name == "hpsearch.cli.main":
            os.kill(os.getpid(), {number})
            time.sleep(1000)

sys.meta_path.insert(0, Late())
"""
"""The signal arrives while the program is imported."""

RUNNING = """
import hpsearch.cli.main as program

def waits(arguments):
    os.kill(os.getpid(), {number})
    time.sleep(1000)

program._run = waits
"""
"""The signal arrives while a command runs."""

ENDING = """
import atexit

def last():
    os.kill(os.getpid(), {number})
    time.sleep(1000)

atexit.register(last)
"""
"""The signal arrives while the interpreter ends."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("moment", [IMPORTING, RUNNING, ENDING])
def test_a_signal_ends_the_program_with_its_code(moment, number):
    program = PROGRAM.format(before=moment.format(number=int(number)))
    done = run_program([sys.executable, "-c", program], env=os.environ)
    assert done.returncode == 130, done.stderr
    assert "Traceback" not in done.stderr


def test_what_commands_call_takes_their_parameters():
    for declared in CALLED:
        wanted = set(inspect.signature(declared).parameters)
        taken = inspect.signature(called_by(declared)).parameters
        optional = {name for name, each in taken.items() if each.default is not each.empty}
        assert wanted <= set(taken), declared
        assert set(taken) - wanted <= optional, declared


def test_inside_a_job_of_slurm_a_study_is_submitted_again_and_not_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    suggest_for()
    again = "cd '/my studies' && hpsearch submit s.yaml --nodes 2"
    monkeypatch.setenv("HPSEARCH_SUBMIT", again)
    assert suggested("continue with: hpsearch resume s.1.") == f"continue with: {again}."
    assert suggested("resume it (hpsearch resume 's')") == f"resume it ({again})"
    assert suggested("hpsearch resume s --trials N") == "srun hpsearch resume s --trials N"
    assert suggested("srun hpsearch resume s --trials N") == "srun hpsearch resume s --trials N"
