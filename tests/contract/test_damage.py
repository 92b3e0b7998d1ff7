"""Values that the program never writes: whoever reads one is told where it stands, and `db check`
lists them all.

Each column of the schema that holds JSON has its row in the table below.
"""

from __future__ import annotations

import html
import random
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Table
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError
from starlette.testclient import TestClient

import hpsearch
from hpsearch.agents.reading import Reader
from hpsearch.cli.main import main
from hpsearch.domain.facts import DecisionKind, RequestKind
from hpsearch.domain.history import Changes, History
from hpsearch.domain.records import Decision, Environment, Request, StudyRecord
from hpsearch.errors import Damaged, UserError, hearing
from hpsearch.pages.site import site_of
from hpsearch.store.cells import Json, Words
from hpsearch.store.damage import Violation, damaged_rows
from hpsearch.store.schema import metadata, requests, studies
from hpsearch.store.store import Store
from support import thoroughness
from support.studies.small import Bowl, Simulation, spec_with


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database: what is written to harm it is much the same in both."""
    url = request.getfixturevalue(f"{request.param}_url")
    assert isinstance(url, str)
    return url


READERS = (
    *(
        "ls",
        "status toy",
        "best toy",
        "best toy --format json",
        "trials toy",
        "show toy {best}",
        "resume toy",
    ),
    *("export toy --to {to}/trials.csv", "export toy --to {to}/reports.parquet --what reports"),
)
SHOWN_ONLY = ("show toy {best}",)
RESUMED_ONLY = ("resume toy",)

# By column: a value that is wrong far down, what must be said about it, and the commands that read
# it.
DEEP: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "studies.directions": (
        '["minimize", "up"]',
        "'\"up\"' where one of minimize, maximize, not_set",
        READERS,
    ),
    "studies.user_attrs": ("[1]", "'[1]' where a JSON object should be", RESUMED_ONLY),
    "studies.system_attrs": (
        '{"hpsearch:curve_model": {"values": 1, "theta": [0.5, "low"]}}',
        "'\"low\"' where a number should be, at hpsearch:curve_model.theta[1]",
        RESUMED_ONLY,
    ),
    "studies.former_checkpoints": (
        '["/a", 7]',
        "'7' where a text should be, at [1]",
        RESUMED_ONLY,
    ),
    "studies.enqueued": (
        '[{"x": 1}, 2]',
        "'2' where a JSON object should be, at [1]",
        RESUMED_ONLY,
    ),
    "studies.memory": (
        '{"train": [16, "all"]}',
        "'\"all\"' where a whole number should be, at train[1]",
        RESUMED_ONLY,
    ),
    "studies.race": (
        '{"given": [4], "first": 0.5, "begun": true}',
        "'0.5' where a whole number should be, at first",
        RESUMED_ONLY,
    ),
    "studies.warm_start": (
        '[{"name": "a", "trials": [{"params": {}, "standing": "high"}]}]',
        "'\"high\"' where a number should be, at [0].trials[0].standing",
        RESUMED_ONLY,
    ),
    "trials.params": ("[1]", "'[1]' where a JSON object should be", READERS),
    "trials.objective_values": (
        '[0.5, "high"]',
        "'\"high\"' where a number should be, at [1]",
        READERS,
    ),
    "trials.distributions": (
        '{"x": "{}"}',
        "'{}' where a distribution should be, at x",
        RESUMED_ONLY,
    ),
    "trials.user_attrs": ("[1]", "'[1]' where a JSON object should be", RESUMED_ONLY),
    "trials.findings": (
        '[{"name": "a", "evidence": null, "severity": "notice"}]',
        "'null' where a text should be, at [0].evidence",
        (*SHOWN_ONLY, *RESUMED_ONLY),
    ),
    "trials.system_attrs": (
        '{"constraints:size": "big"}',
        "'\"big\"' where a number should be, at constraints:size",
        READERS,
    ),
    "reports.metrics": (
        '{"loss": {"mean": 1}}',
        "'{\"mean\":1}' where a number should be, at loss",
        READERS,
    ),
    "attempts.arithmetic": (
        '{"threads": 1, "versions": {"torch": 2}}',
        "'2' where a text should be, at versions.torch",
        (*SHOWN_ONLY, *RESUMED_ONLY),
    ),
    "decisions.against": (
        "[1, 2.5]",
        "'2.5' where a whole number should be, at [1]",
        SHOWN_ONLY,
    ),
    "requests.content": (
        "[1]",
        "'[1]' where a JSON object should be",
        ("status toy",),
    ),
    "environments.packages": ('{"torch": 2}', "'2' where a text should be, at torch", ()),
}
COLUMNS = [str(c) for table in metadata.sorted_tables for c in table.c if isinstance(c.type, Json)]
ANYWHERE = ("7", '"a text"', "true", "null", "[[]]", '{"a": 1e999}', '{"a": {"$float": []}}')
"""What is wrong in any column."""


def test_every_column_that_holds_json_is_in_the_table() -> None:
    assert sorted(DEEP) == sorted(COLUMNS)


@cache
def history() -> History:
    return (
        Simulation(spec_with(budget={"trials": 5, "per_trial": {"epochs": 9}}), curves=Bowl())
        .run()
        .history
    )


class Toy:
    """A study in a database, for somebody to work on by hand."""

    def __init__(self, url: str) -> None:
        self.url = url
        told = history()
        trials = [replace(trial, checkpoint=None) for trial in told.trials]
        attempts = [attempt for trial in trials for attempt in trial.attempts]
        reports = [report for trial in trials for report in trial.reports.values()]
        valued = [trial for trial in trials if trial.value is not None]
        self.best = min(valued, key=lambda trial: trial.value or 0.0).number
        decisions = [Decision(self.best, DecisionKind.PRUNE, "it lags", against=[0])]
        environments = [Environment(0.0, None, {"torch": "2"}, "CPU")]
        with closing(Store.open(url)) as store:
            record = store.create_study(replace(told.study, name="toy", base="/"))
            changes = Changes(None, trials, attempts, reports, decisions, environments)
            store.commit(record.id, changes)
            store.add_request("toy", Request(0, RequestKind.STOP, {"trial": 0}, "ann@desk", 1.0))

    def damage(self, column: str, value: str) -> None:
        """Write a value into a column of the best trial's (latest) row, or of the study's."""
        table, name = column.split(".")
        self.execute(f"UPDATE {table} SET {name} = '{value}' WHERE {self.row(table)}")

    def row(self, table: str) -> str:
        """The condition for the best trial's (latest) row, or the study's."""
        return {
            "studies": "name = 'toy'",
            "trials": f"number = {self.best}",
            "reports": f"trial = {self.best} AND resource = (SELECT max(resource) FROM reports"
            f" WHERE trial = {self.best})",
            "attempts": f"trial = {self.best} AND number = 1",
        }.get(table, "1 = 1")

    @contextmanager
    def harmed(self, column: Column[Any], value: str) -> Iterator[bool]:
        """Write SQL's value into a column, and what was there back where the block ends; whether
        the database takes it."""
        table, name = column.table.name, column.name
        harm = f"UPDATE {table} SET {name} = {value} WHERE {self.row(table)}"
        if self.url.startswith("sqlite"):
            with closing(sqlite3.connect(self.url.removeprefix("sqlite:///"))) as connection:
                with connection:
                    which = f"FROM {table} WHERE {self.row(table)}"
                    (kept,) = connection.execute(f"SELECT {name} {which}").fetchone()
                try:
                    with connection:
                        harmed = connection.execute(f"{harm} RETURNING rowid").fetchone()
                except sqlite3.IntegrityError:
                    yield False
                    return
                yield True
                back = f"UPDATE {table} SET {name} = ? WHERE rowid = ?"
                with connection:
                    connection.execute(back, (kept, *harmed))
            return
        type_ = column.type.compile(postgresql.dialect())
        self.execute(f"CREATE TABLE kept AS SELECT {name} FROM {table} WHERE {self.row(table)}")
        try:
            place = self.execute(f"{harm} RETURNING ctid")  # the condition may not find it again
        except DBAPIError:
            yield False
        else:
            yield True
            back = f"(SELECT CAST({name} AS {type_}) FROM kept LIMIT 1)"
            self.execute(f"UPDATE {table} SET {name} = {back} WHERE ctid = '{place}'")
        self.execute("DROP TABLE kept")

    def execute(self, statement: str) -> Any:
        """What the statement returns first, if it returns anything."""
        with (
            closing(Store.open(self.url)) as store,
            store._database.transaction("write") as connection,
        ):
            result = connection.exec_driver_sql(statement)
            return result.scalar() if result.returns_rows else None

    def found(self) -> list[Violation]:
        with closing(Store.open(self.url)) as store, store.reading() as connection:
            return [*damaged_rows(connection)]

    def place(self, column: str) -> str:
        """How errors name the row that `damage` changes."""
        of_trial = column.split(".")[0] in ("trials", "attempts", "reports", "decisions")
        return f"toy, trial {self.best}: {column} holds" if of_trial else f"toy: {column} holds"


@pytest.fixture
def toy(database_url: str) -> Toy:
    return Toy(database_url)


@pytest.fixture
def here(sqlite_url: str) -> Toy:
    return Toy(sqlite_url)


Run = Callable[[Toy, str], tuple[int, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Run:
    """Runs a command on a study's database; returns its exit code and what it said on stderr."""

    def call(toy: Toy, command: str) -> tuple[int, str]:
        capsys.readouterr()
        words = command.format(best=toy.best, to=tmp_path).split()
        with pytest.raises(SystemExit) as ended:
            main([*words, "--storage", toy.url])
        return int(ended.value.code or 0), capsys.readouterr().err

    return call


def test_nothing_is_damaged_before_anybody_damages_it(toy: Toy) -> None:
    assert toy.found() == []


@pytest.mark.parametrize("column", COLUMNS)
def test_whatever_else_stands_in_a_column_is_found(toy: Toy, column: str) -> None:
    deep, what, _ = DEEP[column]
    for value in (deep, *ANYWHERE):
        toy.damage(column, value)
        (violation,) = toy.found()
        assert str(violation).startswith(toy.place(column)), value
        assert value != deep or what in violation.what


@pytest.mark.parametrize("column", COLUMNS)
def test_who_reads_a_damaged_value_is_told_its_place_and_the_remedy(
    here: Toy, run: Run, column: str
) -> None:
    deep, what, readers = DEEP[column]
    here.damage(column, deep)
    for command in READERS:
        code, said = run(here, command)
        if command in readers:
            assert code == 3, command
            assert f"the database is damaged: {here.place(column)} {what}" in said, command
            assert "restore a backup" in said
            assert "hpsearch db check" in said
        elif command != "resume toy":  # which would continue with the study
            assert code == 0, (command, said)


@pytest.mark.parametrize("command", ["trials toy --where not(loss<-9)", "best toy", "resume toy"])
def test_readers_of_postgresql_are_told_as_well(
    new_postgresql_url: Callable[[], str], run: Run, command: str
) -> None:
    toy = Toy(new_postgresql_url())
    for value in ('{"loss": 1e999}', '["loss"]', '{"loss": "low"}'):
        toy.damage("reports.metrics", value)
        code, said = run(toy, command)
        assert code == 3
        assert toy.place("reports.metrics") in said


@pytest.mark.parametrize(
    "value", ["'{'", "'nothing'", "''", "CAST(x'ff' AS TEXT)", "x'ff00'", "7.5"]
)
@pytest.mark.parametrize(
    "command", ["trials toy", "trials toy --where not(x<-9)", "show toy {best}", "resume toy"]
)
def test_what_is_no_json_is_told_with_its_place_too(
    here: Toy, run: Run, value: str, command: str
) -> None:
    here.execute(f"UPDATE trials SET params = {value} WHERE number = {here.best}")
    code, said = run(here, command)
    assert code == 3
    assert here.place("trials.params") in said


def test_all_that_is_damaged_is_listed_in_one_go(toy: Toy, run: Run) -> None:
    for column in COLUMNS:
        toy.damage(column, DEEP[column][0])
    for command in ("db check", "db check toy"):
        code, said = run(toy, command)
        assert code == 2
        for column in COLUMNS:
            assert f"{toy.place(column)} {DEEP[column][1]}" in said
    _, said = run(toy, "best toy")
    assert f"(and {len(toy.found()) - 1} more)" in said


def test_a_check_names_the_report_among_those_of_its_trial(toy: Toy) -> None:
    toy.damage("reports.metrics", "[]")
    (violation,) = toy.found()
    resource = max(history().trials[toy.best].reports)
    assert (
        violation.what
        == f"reports.metrics holds '[]' where a JSON object should be (resource {resource:g})"
    )


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ('{"x": "high"}', "'\"high\"' where a value of FloatDistribution should be, at x"),
        ('{"x": [0.5]}', "'[0.5]' where a value of FloatDistribution should be, at x"),
        ('{"x": true}', "'true' where a value of FloatDistribution should be, at x"),
    ],
)
def test_a_parameter_that_its_distribution_never_drew_is_told(
    toy: Toy, run: Run, params: str, what: str
) -> None:
    toy.damage("trials.params", params)
    assert [str(violation) for violation in toy.found()] == [f"{toy.place('trials.params')} {what}"]
    code, said = run(toy, "resume toy")
    assert code == 3
    assert f"{toy.place('trials.params')} {what}" in said


@pytest.mark.parametrize("params", ['{"x": 7}', '{"x": 0.5, "y": [1]}', "{}"])
def test_a_parameter_outside_its_bounds_or_without_distribution_or_value_is_no_damage(
    toy: Toy, params: str
) -> None:
    toy.damage("trials.params", params)
    assert toy.found() == []


def test_values_that_are_more_than_the_objectives_are_told(toy: Toy, run: Run) -> None:
    toy.damage("trials.objective_values", "[0.5, 0.25]")
    what = "'[0.5,0.25]' where a JSON array of 1 should be"
    assert [violation.what for violation in toy.found()] == [
        f"trials.objective_values holds {what}"
    ]
    for command in ("best toy", "show toy {best}", "resume toy"):
        code, said = run(toy, command)
        assert code == 3
        assert f"{toy.place('trials.objective_values')} {what}" in said


def test_a_state_that_there_is_not_is_told_with_its_place(toy: Toy, run: Run) -> None:
    toy.execute(f"UPDATE trials SET state = 'dancing' WHERE number = {toy.best}")
    code, said = run(toy, "trials toy")
    assert code == 3
    place = f"toy, trial {toy.best}: trials.state holds 'dancing' where one of"
    assert f"the database is damaged: {place}" in said


def test_a_study_file_that_is_no_yaml_is_told_and_found(toy: Toy, run: Run) -> None:
    toy.execute("UPDATE studies SET spec = '{'")
    assert [str(violation) for violation in toy.found()] == [
        "toy: studies.spec holds a study file that is not YAML"
    ]
    code, said = run(toy, "status toy")
    assert code == 3
    assert "the database is damaged: toy: studies.spec holds a study file that is not YAML" in said


# ------------------------------------------------------------------------------------- any column

NESTED = '{"a":' * 900 + "1" + "}" * 900
HARM = (
    *("'high'", "''", "NULL", "-5", "-1e300", "4611686018427387904", "'7'"),
    *("'{'", "'[1]'", "'null'", "'[[\"a\"]]'", "'{\"a\":[]}'", f"'{NESTED}'"),
    '\'{"loss":123456789012345678901234567890,"x":1e300}\'',
)
"""What somebody may write into a column, in SQL."""
UNREADABLE = ("x'ff00'", "CAST(x'ff' AS TEXT)", "CAST(x'7b2261223a22ff227d' AS TEXT)")
"""What is damage in any column of SQLite."""
INFINITE = ("9e999", "-9e999", "'infinity'", "'-infinity'", "'nan'")
HARM_OF = {"sqlite": (*UNREADABLE, *INFINITE[:2]), "postgresql": INFINITE[2:]}
EVERY = [column for table in metadata.sorted_tables for column in table.c]

Answer = tuple[str, list[str]]
"""What a reader shows, and what it says is damaged."""


class Readers:
    """All that shows a study to people and programs, opened once.

    Args:
        toy: The study.
    """

    def __init__(self, toy: Toy, opened: ExitStack) -> None:
        store = opened.enter_context(closing(Store.open(toy.url)))
        study = opened.enter_context(hpsearch.open(toy.url, "other"))
        pages = TestClient(site_of(store, allow_changes=False))
        agent = Reader(toy.url)
        self._all: dict[str, Callable[[], object]] = {
            "studies": agent.studies,
            "status": lambda: agent.status("toy"),
            "best": lambda: agent.best("toy", 3),
            "trials": lambda: agent.trials("toy", "x > -9", "value", 9),
            "compare": lambda: agent.compare("toy", [toy.best, 0]),
            "trial": lambda: agent.trial("toy", toy.best),
            "report": lambda: agent.report("toy"),
            "frames": lambda: (study.trials(), study.reports(), study.requests()),
            "load": lambda: len(store.load("toy").trials),
        }
        for page in ("", "studies/1", "studies/1/trials", f"studies/1/trials/{toy.best}"):
            self._all[f"/{page}"] = lambda page=page: pages.get(f"/{page}").text

    def answers(self) -> dict[str, Answer]:
        """By reader."""
        return {name: self._answer(read) for name, read in self._all.items()}

    def _answer(self, read: Callable[[], object]) -> Answer:
        shown = ""
        with hearing() as told:
            try:
                shown = str(read())
            except Damaged as error:
                told.append(error)
            except UserError:
                pass  # the study has another name now, or the trial another number
        said = [str(error) for error in told]
        if "he database is damaged" in shown:  # a page says so itself
            said.append(html.unescape(shown))
        return re.sub(r"\d\d:\d\d", "", shown), said


@pytest.fixture
def loose(toy: Toy) -> Toy:
    """A database with two studies and no constraints on columns."""
    with closing(Store.open(toy.url)) as store:
        store.create_study(StudyRecord(0, "other", ""))
        dialect = store.dialect
    beat = f"INSERT INTO heartbeats VALUES (1, {toy.best}, 1, 'ann@desk:3', 1, 2)"
    toy.execute(beat)
    if dialect == "sqlite":
        path = toy.url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("UPDATE sqlite_master SET sql = replace(sql, 'NOT NULL', '')")
        return toy
    for column in EVERY:
        if not column.primary_key and not column.nullable:
            toy.execute(f"ALTER TABLE {column.table.name} ALTER {column.name} DROP NOT NULL")
    return toy


def is_surely_damage(column: Column[Any], value: str) -> bool:
    """Whether a value can never be right, by rules that are not the product's."""
    if value in UNREADABLE:
        return True
    if value == "NULL":
        return not column.nullable
    if value == f"'{NESTED}'":
        return not isinstance(column.type, Words) or column.name == "spec"
    return value in INFINITE and column.name in TIMES


def is_key(column: Column[Any]) -> bool:
    return column.primary_key or column.name in ("study_id", "trial", "name")


TIMES = ("created", "started", "ended", "handled", "heard", "expires", "alive_at", "lease_since")
ASKED = ("'high'", "x'ff00'", "9e999", f"'{NESTED}'")
"""What every column of requests, which others write, is harmed with in a quick round: two each."""


@pytest.mark.thorough
@pytest.mark.parametrize("table", metadata.sorted_tables, ids=str)
def test_whatever_stands_in_any_column_is_named_and_the_rest_is_shown(
    loose: Toy, table: Table
) -> None:
    draw = random.Random(table.name)
    database = loose.url.partition(":")[0]
    harm = [*HARM, *HARM_OF[database]]
    # A quick round tries all that others write, and every other column of what drivers write.
    is_partial = thoroughness.quick and table is not requests
    with ExitStack() as opened:
        readers = Readers(loose, opened)
        unharmed = readers.answers()
        assert [said for _, said in unharmed.values() if said] == []
        for column in list(table.c)[:: 2 if is_partial else 1]:
            few = [draw.choice(harm), *(draw.sample(ASKED, 2) if table is requests else ())]
            for value in few if thoroughness.quick else harm:
                with loose.harmed(column, value) as is_harmed:
                    if is_harmed:
                        _check(column, value, loose, readers.answers(), unharmed)


def _check(
    column: Column[Any],
    value: str,
    toy: Toy,
    answers: dict[str, Answer],
    unharmed: dict[str, Answer],
) -> None:
    case = f"{column} = {value[:60]}"
    is_found = any(f"{column} holds" in str(each) for each in toy.found())
    assert is_found or not is_surely_damage(column, value), case
    for reader, (shown, said) in answers.items():
        if is_key(column):  # it belongs elsewhere now, which only `db check` looks for
            continue
        assert all(f"{column} holds" in each for each in said), (case, reader, said)
        assert is_found or not said, (case, reader, said)
        if is_found and shown != unharmed[reader][0]:
            assert said, (case, reader, shown)
    assert "other" in answers["studies"][0], case
    assert "other" in answers["/"][0], case
    if column.table is not studies:
        for reader in ("status", "best", "report", "trials", "frames", "/studies/1"):
            assert answers[reader][0], (case, reader)
