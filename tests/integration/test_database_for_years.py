"""A database that is kept for years: copied while a driver writes to it, read for long, and on a
network file system. The drivers are real, in processes of their own; their trainings are
simulated."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hpsearch.cli.main import main
from hpsearch.cli.results.listing import _looks
from hpsearch.domain.records import StudyState, Trial
from hpsearch.store.audit.invariants import violations
from hpsearch.store.connecting import engine, file_systems
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from support.patience import wait_until
from support.studies.driven import drive
from support.studies.small import Bowl, spec_with

TESTS = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{TESTS}{os.pathsep}{TESTS.parent}"}
DRIVER = """
import sys
from pathlib import Path
from hpsearch.store.connecting import file_systems
from support.studies.driven import drive
from support.studies.small import Bowl
from integration.test_database_for_years import spec_of

file_systems.MOUNTS = Path(sys.argv[2])
drive(sys.argv[1], spec_of(), Bowl(), workers=2)
"""


def spec_of(name: str = "years") -> StudySpec:
    return spec_with(
        study=name,
        budget={"trials": 24, "per_trial": {"epochs": 27}},
        search={"sampler": "tpe", "pruner": "promotion"},
    )


@contextmanager
def driving(url: str, mounts: Path = file_systems.MOUNTS) -> Iterator[subprocess.Popen[bytes]]:
    """A driver in a process of its own, which has begun to write."""
    command = [sys.executable, "-c", DRIVER, url, str(mounts)]
    with subprocess.Popen(command, env=ENVIRONMENT) as process:
        try:
            wait_until(lambda: process.poll() is not None or trials_of(url))
            yield process
        finally:
            process.kill()


def trials_of(url: str) -> list[Trial]:
    if not Path(url.removeprefix("sqlite:///")).exists():
        return []
    with closing(Store.open(url)) as store:
        return store.load("years").trials if store.study_names() else []


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main([*arguments])
    return int(end.value.code or 0)


def refuses_nothing(url: str) -> None:
    with closing(Store.open(url)) as store, store.reading() as connection:
        assert violations(connection) == []


def test_copies_that_are_taken_while_a_driver_writes_can_be_resumed(sqlite_url, tmp_path):
    copies: list[Path] = []
    with driving(sqlite_url) as driver:
        while driver.poll() is None:
            copies.append(tmp_path / f"copy-{len(copies)}.db")
            with (
                closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as original,
                closing(sqlite3.connect(copies[-1])) as copy,
            ):
                original.backup(copy)  # as `.backup` of SQLite's shell
        assert driver.returncode == 0
    whole = {each.number: (each.params, each.state, each.value) for each in trials_of(sqlite_url)}
    is_midway = []
    copies = copies[:: max(1, len(copies) // 20)]
    for path in copies:
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            # As if the time of the lease of the driver had passed, which the copy still has.
            connection.execute("UPDATE studies SET lease_expires = 0")
            connection.commit()
        url = f"sqlite:///{path}"
        with closing(Store.open(url)) as store:
            is_midway.append(store.find_study("years").state is StudyState.RUNNING)
        refuses_nothing(url)
    assert any(is_midway)
    resumed = f"sqlite:///{copies[is_midway.index(True)]}"
    drive(resumed, spec_of(), Bowl(), workers=2, resume=True)
    refuses_nothing(resumed)
    with closing(Store.open(resumed)) as store:
        assert store.find_study("years").state is StudyState.FINISHED
        assert len(store.load("years").trials) == len(whole)


def test_a_reader_for_the_whole_of_a_study_costs_space_only_while_it_reads(sqlite_url, monkeypatch):
    monkeypatch.setattr(engine, "LOG_BYTES", 100_000)
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    log = Path(f"{file}-wal")
    Store.open(sqlite_url).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM trials").fetchone() == (0,)
        drive(sqlite_url, spec_of(), Bowl(), workers=2)
        assert reader.execute("SELECT count(*) FROM trials").fetchone() == (0,)
        grown = log.stat().st_size
        assert grown > 10 * 100_000
        reader.execute("COMMIT")
        drive(sqlite_url, spec_of("another"), Bowl(), workers=2)
        assert log.stat().st_size < grown / 2, "it is cut back though the file is still open"
    refuses_nothing(sqlite_url)


def test_who_watches_a_study_does_not_hold_the_database_open(sqlite_url):
    drive(sqlite_url, spec_of(), Bowl(), stop_after=20)
    with closing(Store.open(sqlite_url)) as store:
        looks = _looks(store, "years")
        document, _ = next(looks)
        assert document["study"] == "years"
        with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), timeout=0)) as other:
            other.execute("UPDATE studies SET name = 'other'")
            other.commit()
            (is_busy, *_) = other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        assert not is_busy


def test_on_a_network_file_system_a_driver_and_readers_take_turns(
    sqlite_url, tmp_path, monkeypatch, capsys
):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"1 0 0:1 / {tmp_path.resolve()} rw - nfs4 nas:/lab rw,local_lock=none\n")
    monkeypatch.setattr(file_systems, "MOUNTS", mounts)
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    readings = 0
    with driving(sqlite_url, mounts) as driver:
        while driver.poll() is None:
            assert not Path(f"{file}-wal").exists()
            assert ended("best", "years", "--storage", sqlite_url) == 0
            refuses_nothing(sqlite_url)
            readings += 1
        assert driver.returncode == 0
    assert readings > 1
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    ended("db", "check", "--storage", sqlite_url)  # simulated trainings leave no checkpoints
    assert "network file system (nfs4)" in capsys.readouterr().err


def test_a_database_that_moves_to_a_network_file_system_loses_its_log(
    sqlite_url, tmp_path, monkeypatch
):
    file = Path(sqlite_url.removeprefix("sqlite:///"))
    drive(sqlite_url, spec_of(), Bowl(), stop_after=20)
    assert file.read_bytes()[18:20] == b"\2\2"
    mounts = tmp_path / "mounts"
    mounts.write_text(f"1 0 0:1 / {tmp_path.resolve()} rw - cifs //nas/lab rw\n")
    monkeypatch.setattr(file_systems, "MOUNTS", mounts)
    refuses_nothing(sqlite_url)
    assert file.read_bytes()[18:20] == b"\1\1"
