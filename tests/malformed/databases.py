"""Databases that cannot be: other files, other programs', other versions, half made, damaged,
locked."""

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

from malformed import Case, Make, written
from malformed.commands import RUN, study

DATABASE = "study.db"
LOCKS: list[sqlite3.Connection] = []
"""Connections that keep a database locked for as long as they are referred to."""


def raw(content: bytes | str) -> Make:
    """A file in the database's place."""
    return written(DATABASE, content)


def without_study(*statements: str) -> Make:
    """Another program's database."""

    def make(folder: Path) -> None:
        with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    return make


def after(*statements: str) -> Make:
    """Our database, after somebody has worked on it."""

    def make(folder: Path) -> None:
        study(folder)
        without_study(*statements)(folder)

    return make


def bytes_of(change: object) -> Make:
    """Our database with other bytes."""

    def make(folder: Path) -> None:
        study(folder)
        path = folder / DATABASE
        path.write_bytes(change(path.read_bytes()))  # type: ignore[operator]

    return make


def garbled(content: bytes) -> bytes:
    """Every third byte after the first page is another one."""
    return content[:4096] + bytes(
        0x5A if i % 3 == 0 else byte for i, byte in enumerate(content[4096:])
    )


def locked(folder: Path) -> None:
    """Somebody else is writing, without end."""
    study(folder)
    for lock in LOCKS:
        lock.close()
    LOCKS[:] = [sqlite3.connect(folder / DATABASE, isolation_level=None)]
    LOCKS[0].execute("PRAGMA journal_mode = DELETE")
    LOCKS[0].execute("BEGIN EXCLUSIVE")


STATUS = ("status", "flowers")
UPGRADE = ("db", "upgrade")
NEWER = after("UPDATE hpsearch_schema SET version = 9999")
NOTES = without_study("CREATE TABLE notes (text)")
VERSION_TABLE = "CREATE TABLE alembic_version (version_num VARCHAR(32))"
OPTUNAS = without_study(
    "CREATE TABLE studies (study_id INTEGER)",
    VERSION_TABLE,
    "INSERT INTO alembic_version VALUES ('v3.2.0.a')",
)
FORMER = without_study(VERSION_TABLE, "INSERT INTO alembic_version VALUES ('hpsearch_0013')")
# A case a line, however long: a table is read by its columns.
# fmt: off
CASES = [
    Case("a text", raw("a shopping list\n" * 100), "study.db", "check the path", STATUS, 2),
    Case("an empty file", raw(""), "no study database at", "name another", STATUS, 2),
    Case("zeros", raw(bytes(8192)), "study.db", "check the path", STATUS, 2),
    Case("gzip", bytes_of(gzip.compress), "study.db", "check the path", STATUS, 2),
    Case("cut short", bytes_of(lambda content: content[:5000]), "malformed", "check the path", STATUS, 2),
    Case("garbled", bytes_of(garbled), "malformed", "check the path", STATUS, 2),
    Case("of a format to come", bytes_of(lambda content: content[:18] + b"\x09\x09" + content[20:]), "study.db", "check",
         STATUS, 2),
    Case("a folder", lambda folder: (folder / DATABASE).mkdir(), "is a folder", "check the path", STATUS, 2),
    Case("another program's, read", NOTES, "tables named notes", "name another database", STATUS, 2),
    Case("another program's, run in", NOTES, "tables named notes", "name another database", RUN, 2),
    Case("another program's, upgraded", NOTES, "tables named notes", "name another database", UPGRADE, 2),
    Case("Optuna's", OPTUNAS, "belongs to another program", "name another database", RUN, 2),
    Case("of no version", without_study(VERSION_TABLE), "another program", "name another database", STATUS, 2),
    Case("newer, read", NEWER, "newer hpsearch (schema 9999", "install the newer version", STATUS, 2),
    Case("newer, run in", NEWER, "newer hpsearch (schema 9999", "install the newer version", RUN, 2),
    Case("newer, upgraded", NEWER, "newer hpsearch (schema 9999", "install the newer version", UPGRADE, 2),
    Case("before 0.2.0, read", FORMER, "before 0.2.0 (schema hpsearch_0013)", "begin a new database", STATUS, 2),
    Case("before 0.2.0, run in", FORMER, "before 0.2.0", "begin a new database", RUN, 2),
    Case("before 0.2.0, upgraded", FORMER, "before 0.2.0", "begin a new database", UPGRADE, 2),
    Case("half made, read", after("DROP TABLE reports"), "no such table: reports", "check the path", STATUS, 2),
    Case("half made, its version gone", after("DROP TABLE hpsearch_schema"), "another program", "name another", STATUS, 2),
    Case("half made, a column gone", after("ALTER TABLE trials DROP COLUMN speed"), "trials.speed", "check the", ("trials",), 2),
    Case("an unknown state", after("UPDATE trials SET state = 'dancing'"), "'dancing'", "hpsearch db check", STATUS, 2),
    Case("a study whose name is a path", after("UPDATE studies SET name = '../flowers'"), "studies.name holds '../flowers'", "db check", ("ls",), 2),
    Case("a study whose name is a path, trained", after("UPDATE studies SET name = '../flowers'"), "studies.name holds '../flowers'",
         "db check", ("train", "../flowers"), 2),
    Case("a study whose uid is a path", after("UPDATE studies SET uid = '../../x'"), "studies.uid holds '../../x'", "db check",
         ("resume", "flowers"), 2),
    Case("a study of unknown state", after("UPDATE studies SET state = 'dancing'"), "'dancing'", "db check", ("ls",), 2),
    Case("parameters that are no JSON", after("UPDATE trials SET params = '{'"), "'{': it is not JSON", "db check", ("trials",), 2),
    Case("parameters that are a list", after("UPDATE trials SET params = '[1]'"), "'[1]': ", "db check",
         ("trials",), 2),
    Case("parameters that are a number, chosen from", after("UPDATE trials SET params = '1'"), "holds 1: ",
         "db check", ("trials", "--where", "number >= 0"), 2),
    Case("parameters that are null", after("UPDATE trials SET params = 'null'"), "'null': ", "db check",
         ("trials",), 2),
    Case("metrics that are a text", after("INSERT INTO reports (study_id, trial, resource, metrics, created) VALUES (1, 2, 1, '\"0.5\"', 0)"),
         "reports.metrics holds", "db check", ("show", "2"), 2),
    Case("directions that are an object", after("UPDATE studies SET directions = '{}'"), "'{}': ", "db check",
         ("ls",), 2),
    Case("attributes that are a list, exported", after("UPDATE trials SET system_attrs = '[]'"), "'[]': ",
         "db check", ("best", "--format", "json"), 2),
    Case("a distribution that is none", after("UPDATE trials SET distributions = '{\"lr\": \"{}\"}'"), "trials.distributions holds",
         "db check", ("resume", "flowers"), 2),
    Case("parameters nested without end", after(f"UPDATE trials SET params = '{'[' * 100_000}'"), "it is not JSON",
         "db check", ("trials",), 2),
    Case("a study file that is not YAML", after("UPDATE studies SET spec = '{'"), "not YAML", "db check", STATUS, 2),
    Case("a study file to resume that is no YAML", after("UPDATE studies SET spec = '{'"), "not YAML",
         "db check", ("resume", "flowers"), 2),
    Case("a study file to resume with more budget that is no YAML", after("UPDATE studies SET spec = '{'"), "not YAML",
         "db check", ("resume", "flowers", "--trials", "9"), 2),
    Case("locked, read", locked, "database is locked", "see which: fuser", STATUS, 3),
    Case("locked, run in", locked, "database is locked", "see which: fuser", RUN, 3),
    Case("locked, removed from", locked, "database is locked", "see which: fuser", ("rm", "flowers", "--yes"), 3)
]
