"""Databases of every version so far: each is upgraded and queried; a migration that fails leaves the old one."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import inspect

from hpsearch.cli.main import main
from hpsearch.lifecycle import State
from hpsearch.records import StudyRecord
from hpsearch.store import schema, version
from hpsearch.store.database import Database
from hpsearch.store.store import Store, upgrade
from hpsearch.store.url import parse_url

FOLDER = Path(__file__).parents[1] / "data" / "schema"
BROKEN = """
from alembic import op
revision, down_revision = "hpsearch_9998", "{before}"
def upgrade():
    op.execute("CREATE TABLE half (made INTEGER)")
    op.execute("DELETE FROM studies")
    raise RuntimeError("the disk is full")
"""


@pytest.fixture(params=sorted(path.stem for path in FOLDER.glob("*.sql")))
def old(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database of each version in turn, with a study of three trials."""
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        connection.executescript((FOLDER / f"{request.param}.sql").read_text(encoding="utf-8"))
    return f"sqlite:///{tmp_path}/old.db"


def test_every_version_there_has_been_is_kept_as_a_file() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.sql")) == version.known_versions()
    assert version.known_versions()[-1] == schema.VERSION


def test_an_old_database_is_upgraded_and_has_all_it_had(old: str) -> None:
    upgrade(old)
    with closing(Store.open(old, create=False)) as store:
        trials = store.load("flowers").trials
    assert [trial.state for trial in trials] == [State.COMPLETE, State.PRUNED, State.COMPLETE]
    assert [trial.value for trial in trials] == [0.7, 0.5, 0.9]
    assert all(len(trial.attempts) == len(trial.reports) == 1 for trial in trials)


@pytest.mark.parametrize("command", ["best", "status", "ls", "trials", "show flowers 1"])
def test_an_upgraded_database_answers_every_question(
    old: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    upgrade(old)
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--storage", old, "--format", "json"])
    assert not ended.value.code
    assert "flowers" in json.dumps(json.loads(capsys.readouterr().out)) or command == "trials"


def test_a_migration_that_fails_leaves_the_old_database_as_it_was(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(Store.open(database_url)) as store:
        store.create_study(StudyRecord(0, "flowers", ""))
    migrations = tmp_path / "migrations"
    shutil.copytree(version.MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    (migrations / "versions" / "v9998_breaks.py").write_text(BROKEN.format(before=schema.VERSION))
    with monkeypatch.context() as newer:
        newer.setattr(version, "MIGRATIONS", migrations)
        newer.setattr(schema, "VERSION", "hpsearch_9998")
        with pytest.raises(RuntimeError, match="the disk is full"):
            upgrade(database_url)
    with closing(Store.open(database_url, create=False)) as store:
        assert store.study_names() == ["flowers"]
        store.create_study(StudyRecord(0, "more", ""))
    with closing(Database(parse_url(database_url))) as database, database.connected() as connection:
        assert "half" not in inspect(connection).get_table_names()
