"""Opening a database: new, ours, older, newer, somebody else's, out of reach."""

import hashlib
import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
import yaml
from sqlalchemy import Engine, event, inspect

from hpsearch.domain.records import StudyRecord
from hpsearch.errors import StoreUnreachable, Unreachable
from hpsearch.store import schema
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.url import parse_url
from hpsearch.store.store import Store, upgrade
from hpsearch.store.version import VERSIONS
from support.studies.small import PLAIN


def execute(url: str, *statements: str) -> None:
    """Run statements as another program would."""
    database = Database(parse_url(url))
    with database.transaction("write") as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    database.close()


def tables(url: str) -> set[str]:
    database = Database(parse_url(url))
    with database.connected() as connection:
        found = set(inspect(connection).get_table_names())
    database.close()
    return found


def with_a_study(url: str) -> None:
    store = Store.open(url)
    store.create_study(StudyRecord(0, "a-study", ""))
    store.close()


def contents_hash(url: str) -> str:
    return hashlib.sha256(Path(str(parse_url(url).database)).read_bytes()).hexdigest()


def test_a_new_database_is_made_and_found_again(database_url):
    with_a_study(database_url)
    again = Store.open(database_url, create=False)
    assert again.study_names() == ["a-study"]
    again.close()


def test_a_database_that_another_program_makes_meanwhile_is_ours(database_url):
    """After each statement with which a new database is looked at, before the first lock."""
    moment, has_met = 0, True
    while has_met:
        moment, has_met = moment + 1, False
        said: list[str] = []

        def meanwhile(*details: Any, said: list[str] = said, moment: int = moment) -> None:
            nonlocal has_met
            statement = details[2]
            said.append(statement)
            if len(said) == moment and not statement.startswith("BEGIN"):
                has_met = True
                Store.open(database_url).close()

        event.listen(Engine, "after_cursor_execute", meanwhile)
        try:
            Store.open(database_url).close()
        finally:
            event.remove(Engine, "after_cursor_execute", meanwhile)
        database = Database(parse_url(database_url))
        with database.transaction("write") as connection:
            schema.metadata.drop_all(connection)
            VERSIONS.drop(connection)
        database.close()
    assert moment > 2


def test_an_empty_database_is_not_made_where_none_was_asked_for(database_url):
    with pytest.raises(StoreUnreachable, match=r"no study database.*\n.*hpsearch run"):
        Store.open(database_url, create=False)
    if database_url.startswith("sqlite"):
        assert not Path(str(parse_url(database_url).database)).exists()
    else:
        assert tables(database_url) == set()


def test_a_newer_database_is_refused(database_url):
    with_a_study(database_url)
    execute(database_url, "UPDATE hpsearch_schema SET version = 9999")
    with pytest.raises(Unreachable, match=r"newer hpsearch.*schema 9999"):
        Store.open(database_url)
    with pytest.raises(Unreachable, match=r"newer hpsearch.*schema 9999"):
        upgrade(database_url)


def test_upgrade_says_what_it_found(database_url):
    assert upgrade(database_url) is None
    with_a_study(database_url)
    assert upgrade(database_url) == schema.VERSION
    assert Store.open(database_url).study_names() == ["a-study"]


@pytest.mark.parametrize("version_table", [False, True])
def test_the_database_of_another_program_is_left_as_it_is(database_url, version_table):
    execute(
        database_url, "CREATE TABLE studies (study_id INTEGER)", "INSERT INTO studies VALUES (7)"
    )
    if version_table:
        execute(
            database_url,
            "CREATE TABLE alembic_version (version_num VARCHAR(32))",
            "INSERT INTO alembic_version VALUES ('v3.2.0.a')",
        )
    before = tables(database_url)
    for attempt in (Store.open, upgrade):
        with pytest.raises(StoreUnreachable, match="belongs to another program"):
            attempt(database_url)
    assert tables(database_url) == before


def test_a_file_that_is_not_ours_keeps_every_byte(sqlite_url):
    path = str(parse_url(sqlite_url).database)
    foreign = sqlite3.connect(path)
    foreign.execute("CREATE TABLE notes (text)")
    foreign.close()
    before = contents_hash(sqlite_url)
    with pytest.raises(StoreUnreachable, match="belongs to another program"):
        Store.open(sqlite_url)
    assert contents_hash(sqlite_url) == before
    assert [each.name for each in Path(path).parent.iterdir()] == [Path(path).name]
    Path(str(parse_url(sqlite_url).database)).write_text(
        "a shopping list, long enough to be read as a header\n" * 99
    )
    before = contents_hash(sqlite_url)
    with pytest.raises(StoreUnreachable, match="file is not a database"):
        Store.open(sqlite_url)
    assert contents_hash(sqlite_url) == before


def test_a_folder_that_is_missing_is_named_and_one_in_the_place_of_the_file_refused(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreUnreachable, match=f"the folder {tmp_path}/runs does not exist"):
        Store.open("sqlite:///runs/study.db")
    with pytest.raises(StoreUnreachable, match="is a folder"):
        Store.open(f"sqlite:///{tmp_path}")


def test_a_database_in_memory_works_for_as_long_as_it_is_open():
    store = Store.open("sqlite://")
    store.create_study(StudyRecord(0, "a-study", ""))
    assert store.study_names() == ["a-study"]


def test_commits_to_a_file_are_durable_and_readers_do_not_block(sqlite_url):
    store = Store.open(sqlite_url)
    with store.reading() as connection:
        found = {
            name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30000,
    }
    store.close()


def test_a_connection_that_the_server_ends_is_told_and_the_next_call_connects_anew(postgresql_url):
    store = Store.open(postgresql_url)
    study = store.create_study(StudyRecord(0, "a-study", ""))
    with store.reading() as connection:
        backend = connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one()
    with psycopg.connect(postgresql_url, autocommit=True) as administrator:
        administrator.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])
    with pytest.raises(StoreUnreachable, match=r"check the URL"):
        store.acquire(study.id, "one", ttl_s=60.0)
    assert store.holder("a-study") is None
    assert store.acquire(study.id, "one", ttl_s=60.0).epoch == 1


@pytest.mark.parametrize("command", [("ls",), ("db", "upgrade"), ("check", "study.yaml")])
def test_a_missing_schema_is_told(postgresql_url, command, tmp_path, run, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(yaml.safe_dump(PLAIN))
    nowhere = f"{postgresql_url}?options=-csearch_path%3Dnowhere"
    code, _, said = run(*command, "--storage", nowhere)
    assert "Traceback" not in said
    assert command[0] == "check" or code == 2
    with pytest.raises(StoreUnreachable, match="search_path names no schema"):
        Store.open(nowhere)


def test_a_file_that_another_program_keeps_locked_is_told(sqlite_url, monkeypatch):
    with_a_study(sqlite_url)
    other = sqlite3.connect(str(parse_url(sqlite_url).database), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr("hpsearch.store.connecting.engine.wait_s", lambda: 0.0)
    store = Store.open(sqlite_url)
    with pytest.raises(StoreUnreachable, match="locked"):
        store.request_stop("a-study")
    other.execute("COMMIT")
    store.request_stop("a-study")
    other.close()
