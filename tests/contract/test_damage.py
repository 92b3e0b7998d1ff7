"""Values that the program never writes: a reader of one learns its column; `db check`, too."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from hpsearch.cli.main import main
from hpsearch.domain.facts import DecisionKind, RequestKind
from hpsearch.domain.history import Changes, History
from hpsearch.domain.records import Decision, Environment, Request
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support.studies.small import Bowl, Simulation, spec_with


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.thorough)])
def database_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty database: what is written to harm it is much the same in both."""
    url = request.getfixturevalue(f"{request.param}_url")
    assert isinstance(url, str)
    return url


HARM = {
    "trials.params": "[1]",
    "trials.state": "dancing",
    "trials.findings": '[{"name": "a", "evidence": null, "severity": "notice"}]',
    "reports.metrics": '{"loss": {"mean": 1}}',
    "attempts.outcome": "won",
}
"""By column, what somebody has written into it by hand."""


@cache
def history() -> History:
    spec = spec_with(budget={"trials": 5, "per_trial": {"epochs": 9}})
    return Simulation(spec, curves=Bowl()).run().history


class Toy:
    """A study in a database, for somebody to work on by hand."""

    def __init__(self, url: str) -> None:
        self.url = url
        done = history()
        trials = [replace(trial, checkpoint=None) for trial in done.trials]
        attempts = [attempt for trial in trials for attempt in trial.attempts]
        reports = [report for trial in trials for report in trial.reports.values()]
        valued = [trial for trial in trials if trial.value is not None]
        self.best = min(valued, key=lambda trial: trial.value or 0.0).number
        decisions = [Decision(self.best, DecisionKind.PRUNE, "it lags", against=[0])]
        environments = [Environment(0.0, None, {"torch": "2"}, "CPU")]
        with closing(Store.open(url)) as store:
            record = store.create_study(replace(done.study, name="toy", base="/"))
            changes = Changes(None, trials, attempts, reports, decisions, environments)
            store.commit(record.id, changes)
            store.add_request("toy", Request(0, RequestKind.STOP, {"trial": 0}, "ann@desk", 1.0))

    def damage(self, column: str, value: str) -> None:
        """Write a value into a column of the best trial's rows, or of the study's."""
        table, name = column.split(".")
        rows = {
            "trials": f"number = {self.best}",
            "reports": f"trial = {self.best} AND resource = 9",
            "attempts": f"trial = {self.best} AND number = 1",
        }.get(table, "1 = 1")
        with closing(Store.open(self.url)) as store, store.writing() as connection:
            connection.exec_driver_sql(f"UPDATE {table} SET {name} = '{value}' WHERE {rows}")


@pytest.fixture
def toy(database_url: str) -> Toy:
    return Toy(database_url)


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
    with closing(Store.open(toy.url)) as store, store.reading() as connection:
        assert violations(connection) == []


@pytest.mark.parametrize("column", HARM)
def test_the_check_of_a_database_names_a_damaged_column(toy: Toy, run: Run, column: str) -> None:
    toy.damage(column, HARM[column])
    code, said = run(toy, "db check")
    assert code == 2
    assert f"toy: {column} holds" in said


@pytest.mark.parametrize("column", ["trials.params", "trials.state", "reports.metrics"])
def test_the_reader_of_a_damaged_value_learns_its_column_and_the_remedy(
    toy: Toy, run: Run, column: str
) -> None:
    toy.damage(column, HARM[column])
    for command in (
        *("status toy", "best toy", "trials toy", "show toy {best}", "resume toy"),
        *("ls", "export toy --to {to}/trials.csv"),
    ):
        code, said = run(toy, command)
        if command in ("status toy", "ls", "best toy") and column != "trials.state":
            continue  # they may not need it
        assert code == 3, (command, said)
        assert f"the database is damaged: {column} holds" in said, command
        assert "restore a backup" in said
        assert "hpsearch db check" in said


def test_what_is_not_json_is_named(sqlite_url: str, run: Run) -> None:
    toy = Toy(sqlite_url)
    toy.damage("trials.params", "{")
    code, said = run(toy, "trials toy")
    assert code == 3
    assert "trials.params holds '{': it is not JSON" in said


def test_a_study_file_that_is_not_yaml_is_named(toy: Toy, run: Run) -> None:
    toy.damage("studies.spec", "{")
    code, said = run(toy, "status toy")
    assert code == 3
    assert "studies.spec holds a study file that is not YAML" in said
