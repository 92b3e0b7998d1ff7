"""Databases of every version are upgraded and queried; a failed migration changes nothing."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, inspect, text

from hpsearch.cli.main import main
from hpsearch.domain.facts import EarlierStudy, EarlierTrial, ErrorKind, Race
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import SEARCH_VERSION, Environment, StudyRecord
from hpsearch.folders import Home, Mark, new_uid
from hpsearch.store import schema, version
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.url import parse_url
from hpsearch.store.store import Store, upgrade
from hpsearch.study_file.reading import parse
from hpsearch.wiring.driving import StudyRun, build_study, settle_in
from trials.contract import Finding, Severity

FOLDER = Path(__file__).parents[1] / "data" / "schema"
INSERT_STUDY = """
INSERT INTO studies
(name, spec, directions, state, created, active_seconds, user_attrs, system_attrs)
VALUES ('flowers', '', '["minimize"]', 'finished', 1, 1, :user_attrs, :system_attrs)
"""
INSERT_TRIAL = """
INSERT INTO trials
(study_id, number, state, params, seed, resource, gpu_seconds, created, role, distributions,
revision, user_attrs, system_attrs)
VALUES (1, :number, 'pruned', '{}', 0, 0, 0, 1, 'search', '{}', 1, :user_attrs, :system_attrs)
"""
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


def test_nothing_is_expected_of_the_trials_of_an_older_database(old: str) -> None:
    before = version_of(old)
    upgrade(old)
    with closing(Store.open(old, create=False)) as store:
        trials = store.load("flowers").trials
        found = [(trial.expected, trial.expected_deviation) for trial in trials]
        if before < "hpsearch_0004":
            assert found == [(None, None)] * 3
        else:
            assert found == [(0.71, 0.0), (0.55, 0.0625), (None, None)]
        trials[2].expected, trials[2].expected_deviation = 0.875, 0.125
        record = store.find_study("flowers")
        store.commit(record.id, Changes(trials=trials))
        again = store.load("flowers").trials[2]
    assert (again.expected, again.expected_deviation) == (0.875, 0.125)


def taken_over(url: str, tmp_path: Path) -> None:
    """Let a driver of this version take over the study of an old database, up to its first
    commit."""
    with closing(Store.open(url, create=False)) as store:
        history = store.load("flowers")
        before = store.holder("flowers")
        if before is not None:
            store.release(before)
        lease = store.acquire(history.study.id, "driver", 60.0)
        spec = parse(history.study.spec, base=tmp_path)
        mark = Mark("flowers", history.study.uid or new_uid())
        home = Home(mark, str(tmp_path / "checkpoints"))
        runs_on = Environment(5.0, None, {}, "CPU")
        settle_in(store, history, StudyRun(spec, home, spec.resources), lease, runs_on)
        study = build_study(history, spec)
        study.begin(10.0)
        store.commit(history.study.id, history.drain(), lease)
        store.release(lease)


def test_a_study_that_began_with_an_earlier_search_tells_so_once_when_it_is_resumed(
    old: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = version_of(old)
    upgrade(old)
    taken_over(old, tmp_path)
    messages = [record.getMessage() for record in caplog.records]
    told = [message for message in messages if "of the search" in message]
    taken_over(old, tmp_path)
    notices = "SELECT notice FROM environments WHERE created = 5 ORDER BY id"
    with writing(old) as connection:
        recorded = list(connection.exec_driver_sql(notices).scalars())
    with closing(Store.open(old, create=False)) as store:
        assert store.load("flowers").study.search_version == SEARCH_VERSION
    if before < "hpsearch_0004":
        (notice,) = told
        assert "began with version 1 of the search and goes on with version 2" in notice
        assert recorded == [notice, None]
    else:
        assert told == []
        assert recorded == [None, None]


def test_a_new_study_has_the_search_of_this_version(database_url: str) -> None:
    with closing(Store.open(database_url)) as store:
        store.create_study(StudyRecord(0, "flowers", ""))
        assert store.load("flowers").study.search_version == SEARCH_VERSION


def test_how_long_attempts_took_to_start_is_not_known_of_older_databases(old: str) -> None:
    before = version_of(old)
    upgrade(old)
    with closing(Store.open(old, create=False)) as store:
        trials = store.load("flowers").trials
    found = {attempt.start_up_seconds for trial in trials for attempt in trial.attempts}
    assert found == ({None} if before < "hpsearch_0004" else {0.5})


def test_the_studies_of_an_older_database_started_cold(old: str) -> None:
    upgrade(old)
    with closing(Store.open(old, create=False)) as store:
        assert store.find_study("flowers").warm_start == []
        told = EarlierStudy("flowers", [EarlierTrial({"lr": 0.1, "kind": None}, 2.5)])
        store.create_study(StudyRecord(0, "more", "", warm_start=[told]))
        assert store.find_study("more").warm_start == [told]


def version_of(url: str) -> str:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        (found,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    assert isinstance(found, str)
    return found


RACE = {"given": [4, None, {"$float": "inf"}, None, 1], "first": 2, "begun": True}
SPIKES = {"name": "gradient_spikes", "evidence": "the norm was 55 — once", "severity": "warning"}
OF_THE_STUDY = {
    "user_attrs": {
        "mine": {"$float": "nan"},
        "hpsearch:base": "/studies",
        "hpsearch:checkpoints": "/studies/checkpoints",
        "hpsearch:former_checkpoints": ["/before"],
    },
    "system_attrs": {
        "cma:state": [1, 2.5],
        "hpsearch:step_scale": 1000,
        "hpsearch:enqueued": [{"lr": 0.1}],
        "hpsearch:memory": {"train": [16, None]},
        "hpsearch:race": RACE,
    },
}
OF_TRIALS: list[dict[str, object]] = [
    {"user_attrs": {"mine": 1, "hpsearch:findings": [SPIKES]}, "system_attrs": {}},
    {"user_attrs": {}, "system_attrs": {"constraints:size": -0.5, "hpsearch:left": "paused"}},
    {"user_attrs": {}, "system_attrs": {"hpsearch:failed": "diverged", "hpsearch:forgiven": 2}},
    {"user_attrs": {"hpsearch:mine": "of the user"}, "system_attrs": {"hpsearch:forgiven": "two"}},
]
"""Where versions before the third kept what columns hold now, beside attributes of others."""


def make_old(url: str, which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a database of an old version whose rows have the attributes above."""
    migrations = tmp_path / "migrations"
    shutil.copytree(version.MIGRATIONS, migrations, ignore=shutil.ignore_patterns("__pycache__"))
    for path in (migrations / "versions").glob("v0*.py"):
        if f"hpsearch_{path.name[1:5]}" > which:
            path.unlink()
    with monkeypatch.context() as older:
        older.setattr(version, "MIGRATIONS", migrations)
        older.setattr(schema, "VERSION", which)
        upgrade(url)
    with writing(url) as connection:
        study = {name: json.dumps(value) for name, value in OF_THE_STUDY.items()}
        connection.execute(text(INSERT_STUDY), study)
        for number, attributes in enumerate(OF_TRIALS):
            written = {name: json.dumps(value) for name, value in attributes.items()}
            connection.execute(text(INSERT_TRIAL), {**written, "number": number})


@contextmanager
def writing(url: str) -> Iterator[Connection]:
    with closing(Database(parse_url(url))) as database, database.transaction("write") as connection:
        yield connection


@pytest.mark.parametrize("which", ["hpsearch_0001", "hpsearch_0002"])
def test_attributes_of_old_versions_become_columns_and_those_of_others_stay(
    which: str, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(database_url, which, tmp_path, monkeypatch)
    upgrade(database_url)
    with closing(Store.open(database_url, create=False)) as store:
        history = store.load("flowers")
    study, (ill, left, failed, odd) = history.study, history.trials
    assert list(study.user_attrs) == ["mine"]
    assert math.isnan(study.user_attrs["mine"])
    assert study.system_attrs == {"cma:state": [1, 2.5]}
    assert (study.base, study.checkpoints) == ("/studies", "/studies/checkpoints")
    assert study.former_checkpoints == ["/before"]
    assert study.step_scale == 1000
    assert study.enqueued == [{"lr": 0.1}]
    assert study.memory == {"train": [16, None]}
    assert study.race == Race((4, None, math.inf, None, 1), first=2, begun=True)
    assert ill.findings == [Finding("gradient_spikes", "the norm was 55 — once", Severity.WARNING)]
    assert ill.user_attrs == {"mine": 1}
    assert (left.left_as, left.system_attrs) == (State.PAUSED, {"constraints:size": -0.5})
    assert (failed.error_kind, failed.forgiven) == (ErrorKind.DIVERGED, 2)
    assert failed.system_attrs == {}
    assert (odd.findings, odd.left_as, odd.forgiven, odd.error_kind) == ([], None, 0, None)
    assert odd.user_attrs == {"hpsearch:mine": "of the user"}
    assert odd.system_attrs == {"hpsearch:forgiven": "two"}


def test_a_damaged_row_is_left_as_it_is_by_the_upgrade(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_old(sqlite_url, "hpsearch_0002", tmp_path, monkeypatch)
    damaged = (b'{"hpsearch:left": "pau', b'{"hpsearch:left": "\xff"}', b'["hpsearch:left"]')
    damage = "UPDATE trials SET system_attrs = CAST(? AS TEXT) WHERE number = ?"
    with writing(sqlite_url) as connection:
        for number, written in enumerate(damaged):
            connection.exec_driver_sql(damage, (written, number))
    upgrade(sqlite_url)
    as_written = "SELECT CAST(system_attrs AS BLOB) FROM trials WHERE number < 3 ORDER BY number"
    with writing(sqlite_url) as connection:
        assert tuple(connection.exec_driver_sql(as_written).scalars()) == damaged


@pytest.mark.parametrize("command", ["best", "status", "ls", "trials", "show flowers 1"])
def test_an_upgraded_database_answers_every_question(
    old: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    upgrade(old)
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--storage", old, "--format", "json"])
    assert not ended.value.code
    assert "flowers" in json.dumps(json.loads(capsys.readouterr().out)) or command == "trials"


def test_a_study_of_an_old_database_is_removed_and_its_folder_is_left(
    old: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    upgrade(old)
    shared = tmp_path / "shared"
    (shared / "trial-00000").mkdir(parents=True)
    with closing(sqlite3.connect(tmp_path / "old.db")) as connection, connection:
        connection.execute("UPDATE studies SET checkpoints = ?, uid = NULL", (str(shared),))
    with closing(Store.open(old, create=False)) as store:
        assert store.find_study("flowers").uid is None
    with pytest.raises(SystemExit) as ended:
        main(["rm", "flowers", "--yes", "--storage", old])
    assert not ended.value.code
    assert f"left as it is: {shared}" in capsys.readouterr().err
    assert [path.name for path in shared.iterdir()] == ["trial-00000"]
    with closing(Store.open(old, create=False)) as store:
        assert store.study_names() == []


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
