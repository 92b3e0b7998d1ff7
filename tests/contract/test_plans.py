"""No command reads a whole table of trials, attempts or reports: both databases say how they answer
its queries, from a store of many studies."""

import importlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

from hpsearch.store.reading.best import best_trials
from hpsearch.store.reading.queries import find_study, trial_detail, trial_rows
from hpsearch.store.reading.status import list_studies, study_status
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.views.result import study_result

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LARGE = ("trials", "attempts", "reports")
ALIASES = "|".join([*LARGE, "other", "repeat", "latest"])
FEW = "USING INDEX ix_trials_study_id_role"
"""The index of repeats and the like alone."""

Reading = Callable[[Connection], Any]

READINGS: dict[str, Reading] = {
    "ls": list_studies,
    "status": lambda c: (study_status(c, find_study(c, "study-0")), trusted(c)),
    "best": lambda c: study_result(c, find_study(c, "study-0"), 10),
    "best --where": lambda c: best_trials(c, find_study(c, "study-0"), 3, where="depth < 4"),
    "show": lambda c: trial_detail(c, find_study(c, "study-0"), 7),
    "trials": lambda c: trial_rows(c, find_study(c, "study-0"), limit=50, skip=100),
    "trials --where": lambda c: trial_rows(
        c,
        find_study(c, "study-0"),
        where="learning_rate < 1e-4 and loss < 0.5",
        sort="value desc",
        limit=50,
    ),
}


def trusted(connection: Connection) -> Any:
    return study_trust(connection, find_study(connection, "study-0"))


@pytest.fixture
def store(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    importlib.import_module("store").fill(database_url, studies=30, trials=200)
    with closing(Store.open(database_url)) as opened:
        yield opened


@contextmanager
def heard(asked: list[tuple[str, Any]]) -> Iterator[None]:
    """Keeps every query with its parameters."""

    def keep(_: Any, __: Any, statement: str, parameters: Any, *___: Any) -> None:
        if statement.startswith("SELECT"):
            asked.append((statement, parameters))

    event.listen(Engine, "before_cursor_execute", keep)
    try:
        yield
    finally:
        event.remove(Engine, "before_cursor_execute", keep)


def whole_tables(connection: Connection, statement: str, parameters: Any) -> list[str]:
    """The large tables that a query reads from end to end, as the database plans it."""
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters).all()
        scanned = [row[3] for row in rows if re.match(rf"SCAN ({ALIASES})\b", row[3])]
        return [plan for plan in scanned if FEW not in plan]
    plans = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", parameters).scalar()
    plan = json.loads(plans) if isinstance(plans, str | bytes) else plans
    return [
        f"{node['Node Type']} {node['Relation Name']}"
        for node in nodes_of(plan[0]["Plan"])
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in LARGE
    ]


def nodes_of(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes_of(part)


def test_no_command_but_ls_reads_a_whole_table(store):
    found = {}
    for name, reading in READINGS.items():
        asked: list[tuple[str, Any]] = []
        with store.reading() as connection:
            with heard(asked):
                reading(connection)
            for statement, parameters in asked:
                if scanned := whole_tables(connection, statement, parameters):
                    found[name] = (scanned, " ".join(statement.split()))
        assert len(asked) > 1, name
    assert found.keys() <= {"ls"}, found  # it counts the trials of all studies


def test_a_query_that_reads_a_whole_table_is_found(store):
    with store.reading() as connection:
        assert whole_tables(connection, "SELECT sum(value) FROM trials", ())
        assert whole_tables(connection, "SELECT count(metrics) FROM reports", ())


def test_as_many_queries_are_asked_of_many_studies_as_of_few(store):
    counts = []
    for studies in (30, 3):
        asked: list[tuple[str, Any]] = []
        with store.reading() as connection, heard(asked):
            assert len(list_studies(connection)) == studies
        counts.append(len(asked))
        if studies == 30:
            with store.writing() as connection:
                connection.exec_driver_sql("DELETE FROM studies WHERE id > 3")
    assert counts[0] == counts[1]
