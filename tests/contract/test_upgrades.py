"""Databases of every version are upgraded and queried; a failed migration changes nothing.

A dump of each version is in `tests/data/schema/`, written once, when that version was current."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, inspect

from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.errors import Unreachable
from hpsearch.store import schema, version
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.url import parse_url
from hpsearch.store.store import Store, upgrade

FOLDER = Path(__file__).parents[1] / "data" / "schema"


def add_a_column(connection: Connection) -> None:
    """A migration that works."""
    connection.exec_driver_sql("ALTER TABLE trials ADD COLUMN mood TEXT DEFAULT 'calm' NOT NULL")


def break_off(connection: Connection) -> None:
    """A migration that fails in the middle."""
    connection.exec_driver_sql("CREATE TABLE half (made INTEGER)")
    connection.exec_driver_sql("DELETE FROM studies")
    raise RuntimeError("the disk is full")


@pytest.fixture(params=sorted(int(path.stem) for path in FOLDER.glob("*.sql")))
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database of each version in turn, with a study of three trials."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        connection.executescript((FOLDER / f"{request.param}.sql").read_text(encoding="utf-8"))
    return f"sqlite:///{tmp_path}/old.db"


def test_every_version_there_has_been_is_kept_as_a_file():
    versions = [version.FIRST, *version.MIGRATIONS]
    assert versions == [*range(version.FIRST, schema.VERSION + 1)]
    assert sorted(int(path.stem) for path in FOLDER.glob("*.sql")) == versions


def test_an_old_database_is_upgraded_and_has_all_it_had(old):
    upgrade(old)
    with closing(Store.open(old, create=False)) as store:
        trials = store.load("flowers").trials
    assert [trial.state for trial in trials] == [State.COMPLETE, State.PRUNED, State.COMPLETE]
    assert [trial.value for trial in trials] == [0.7, 0.5, 0.9]
    assert all(len(trial.attempts) == len(trial.reports) == 1 for trial in trials)


@contextmanager
def writing(url: str) -> Iterator[Connection]:
    with closing(Database(parse_url(url))) as database, database.transaction("write") as connection:
        yield connection


@pytest.mark.parametrize("command", ["best", "status", "ls", "trials", "show flowers 1"])
def test_an_upgraded_database_answers_every_question(old, command, run):
    upgrade(old)
    code, out, _ = run(*command.split(), "--storage", old, "--format", "json")
    assert code == 0
    assert "flowers" in json.dumps(json.loads(out)) or command == "trials"


def test_runs_of_changed_code_that_had_the_role_of_repeats_are_told_from_them(tmp_path, run):
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript((FOLDER / "4.sql").read_text(encoding="utf-8"))
        connection.row_factory = sqlite3.Row
        row = dict(connection.execute("SELECT * FROM trials WHERE number = 2").fetchone())
        row |= {"role": "confirm", "standing": None}
        repeat, of_code = {"repeats": 0}, {"system_attrs": '{"revision":[1,0,true]}'}
        insert = f"INSERT INTO trials VALUES ({', '.join('?' * len(row))})"
        for number, more in enumerate((repeat, of_code, of_code), start=3):
            connection.execute(insert, list((row | more | {"number": number}).values()))
    upgrade(old := f"sqlite:///{path}")
    with closing(Store.open(old, create=False)) as store:
        history = store.load("flowers")
    assert (history.repeats, history.revision_runs, history.searched) == ([3], [4, 5], 3)
    told = json.loads(run("status", "--storage", old, "--format", "json")[1])
    assert (told["trials"], told["revision_runs"]) == ({"complete": 3, "pruned": 1}, 2)
    assert run("trials", "--storage", old)[1].count("revision 1, pair 1") == 2


def test_a_study_of_an_old_database_is_removed_and_its_folder_is_left(old, tmp_path, run):
    upgrade(old)
    shared = tmp_path / "shared"
    (shared / "trial-00000").mkdir(parents=True)
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        connection.execute("UPDATE studies SET checkpoints = ?, uid = NULL", (str(shared),))
    with closing(Store.open(old, create=False)) as store:
        assert store.find_study("flowers").uid is None
    code, _, said = run("rm", "flowers", "--yes", "--storage", old)
    assert code == 0
    assert f"left as it is: {shared}" in said
    assert [path.name for path in shared.iterdir()] == ["trial-00000"]
    with closing(Store.open(old, create=False)) as store:
        assert store.study_names() == []


@contextmanager
def next_version(
    migration: Callable[[Connection], None], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Let this program have one migration more."""
    with monkeypatch.context() as newer:
        newer.setitem(version.MIGRATIONS, schema.VERSION + 1, migration)
        newer.setattr(schema, "VERSION", schema.VERSION + 1)
        yield


def structure_of(url: str) -> dict[str, Any]:
    """The columns of each table of a database (name, type, whether it may be NULL), its key and its
    indexes."""
    with writing(url) as connection:
        found = inspect(connection)
        return {name: _table(found, name) for name in found.get_table_names()}


def _table(found: Any, name: str) -> tuple[Any, ...]:
    columns = {
        (each["name"], str(each["type"]), each["nullable"]) for each in found.get_columns(name)
    }
    indexes = sorted((each["name"], each["column_names"]) for each in found.get_indexes(name))
    return columns, found.get_pk_constraint(name)["constrained_columns"], indexes


def test_an_upgraded_database_is_as_a_new_one(old, tmp_path):
    upgrade(old)
    new = f"sqlite:///{tmp_path}/new.db"
    upgrade(new)
    assert structure_of(old) == structure_of(new)


def test_a_migration_adds_to_what_is_there(database_url, monkeypatch):
    with closing(Store.open(database_url)) as store:
        study = store.create_study(StudyRecord(0, "flowers", ""))
        store.commit(study.id, Changes(trials=[Trial(0, State.PRUNED, {"lr": 0.1}, created=1.0)]))
    with next_version(add_a_column, monkeypatch):
        with pytest.raises(
            Unreachable, match=r"older hpsearch.*\n.*hpsearch db upgrade --storage "
        ):
            Store.open(database_url, create=False)
        assert upgrade(database_url) == schema.VERSION - 1
        assert upgrade(database_url) == schema.VERSION
        with writing(database_url) as connection:
            found = connection.exec_driver_sql("SELECT number, mood FROM trials").one()
    assert tuple(found) == (0, "calm")


def test_a_database_from_before_the_first_schema_is_left_as_it_is(database_url):
    with writing(database_url) as connection:
        connection.exec_driver_sql("CREATE TABLE studies (id INTEGER)")
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('hpsearch_0013')")
    before = structure_of(database_url)
    said = r"before 0\.2\.0 \(schema hpsearch_0013\).*\n.*begin a new database.*--storage"
    for attempt in (upgrade, Store.open):
        with pytest.raises(Unreachable, match=said):
            attempt(database_url)
    assert structure_of(database_url) == before


def test_a_migration_that_fails_leaves_the_old_database_as_it_was(database_url, monkeypatch):
    with closing(Store.open(database_url)) as store:
        store.create_study(StudyRecord(0, "flowers", ""))
    with (
        next_version(break_off, monkeypatch),
        pytest.raises(RuntimeError, match="the disk is full"),
    ):
        upgrade(database_url)
    with closing(Store.open(database_url, create=False)) as store:
        assert store.study_names() == ["flowers"]
        store.create_study(StudyRecord(0, "more", ""))
    with closing(Database(parse_url(database_url))) as database, database.connected() as connection:
        assert "half" not in inspect(connection).get_table_names()
