"""The recipes of docs/database.md: each runs on both databases, and tells the same on both."""

import json
import math
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from hpsearch.domain.facts import Role
from hpsearch.domain.history import Changes, History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support.files import pages
from support.studies.driven import drive
from support.studies.small import spec_with
from trials.contract import Diverged

NOTEBOOK = json.loads((pages.ROOT / "examples" / "database.ipynb").read_text(encoding="utf-8"))
RECIPES = pages.texts("database", "sql")
VIEWS = [recipe for recipe in RECIPES if recipe.startswith("CREATE VIEW")]
QUESTIONS = [recipe for recipe in RECIPES if not recipe.startswith("CREATE VIEW")]

Ask = Callable[[str], list[tuple[Any, ...]]]


class Digits:
    """Curves that rise, the highest at a learning rate of 0.01; from 0.03 on, trials diverge."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        rate = params["learning_rate"]
        if rate > 0.03:
            raise Diverged(f"the loss is not finite at {resource:g}")
        away = abs(math.log10(rate) + 2)
        accuracy = 0.9 - 0.1 * away - 1 / (2 + resource) + params["width"] / 10_000
        return {"accuracy": accuracy + seed % 7 / 1000, "loss": 1 - accuracy}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource * params["width"]


def fill(url: str) -> dict[str, History]:
    """Drive two studies in a database; they are the same in any."""
    rate = {"type": "float", "low": 1e-4, "high": 1e-1, "log": True}
    width = {"type": "int", "low": 16, "high": 256, "log": True}
    for name, seed in (("digits", 1), ("digits-2", 2)):
        spec = spec_with(
            study=name,
            seed=seed,
            space={"learning_rate": rate, "width": width},
            objective={"metric": "accuracy", "direction": "maximize"},
            budget={"trials": 18, "per_trial": {"epochs": 9}},
            search={"sampler": "random", "confirm": {"top": 2, "seeds": 2}},
            enqueue=[{"learning_rate": 0.09, "width": 64}],
        )
        drive(url, spec, Digits(), workers=2)
    found = {}
    with closing(Store.open(url)) as store:
        for name in ("digits", "digits-2"):
            history = store.load(name)
            packages = {"torch": "2.9", "python": "3.11"}
            session = Environment(1.0, "abc", packages, "CPU", "f" * 64)
            store.commit(history.study.id, Changes(environments=[session]))
            found[name] = history
    return found


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of an SQLite database without studies yet."""
    return f"sqlite:///{tmp_path_factory.mktemp('recipes')}/hpsearch.db"


@pytest.fixture(scope="module")
def sqlite(url: str) -> Iterator[tuple[Ask, dict[str, History]]]:
    path = str(make_url(url).database)
    histories = fill(url)
    with closing(sqlite3.connect(path)) as connection:
        for view in VIEWS:
            connection.execute(view)
        yield lambda sql: connection.execute(sql).fetchall(), histories


@pytest.fixture(scope="module")
def postgresql(new_postgresql_url: Callable[[], str]) -> Iterator[Ask]:
    url = new_postgresql_url()
    fill(url)
    plain = make_url(url).render_as_string(hide_password=False)
    with psycopg.connect(plain, autocommit=True) as connection:
        for view in VIEWS:
            connection.execute(view.encode())
        yield lambda sql: connection.execute(sql.encode()).fetchall()


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows without what the two drivers of the databases return in different types."""
    return [
        tuple(
            round(float(cell), 9) if isinstance(cell, float) or hasattr(cell, "as_tuple") else cell
            for cell in row
        )
        for row in rows
    ]


def named(question: str) -> str:
    return " ".join(question.split())[:60]


@pytest.mark.parametrize("question", QUESTIONS, ids=named)
def test_a_recipe_finds_the_same_in_both_databases(question, sqlite, postgresql):
    ask, _ = sqlite
    found = comparable(ask(question))
    assert found, "the studies of this test have an answer to each"
    said = comparable(postgresql(question))
    if "d.against" in question:  # JSON, which one driver reads and the other does not
        found, said = [row[:-1] for row in found], [row[:-1] for row in said]
    assert found == said


def answer(ask: Ask, begin: str) -> list[tuple[Any, ...]]:
    """What the only recipe says that begins like this."""
    (question,) = [each for each in QUESTIONS if named(each).startswith(begin)]
    return ask(question)


def test_the_answers_are_those_of_the_records(sqlite):
    ask, histories = sqlite
    trials = histories["digits"].trials
    failed = [trial for trial in trials if trial.state is State.FAILED]
    searched = [trial for trial in trials if trial.role is not Role.CONFIRM]

    best = answer(ask, "SELECT number, state, value, expected")
    standing = {
        trial.number: trial.value if trial.expected is None else trial.expected
        for trial in searched
        if trial.value is not None and trial not in failed
    }
    first = max(standing, key=lambda number: (standing[number], -number))
    assert (best[0][0], len(best)) == (first, 5)
    assert best[0][5] == trials[first].params["learning_rate"]

    repeats = {row[0]: row[1] for row in answer(ask, "SELECT repeats AS trial")}
    confirmations = [trial for trial in trials if trial.role is Role.CONFIRM]
    assert sum(repeats.values()) == len(confirmations) > 0

    spent = answer(ask, "SELECT state, role, count(*) AS trials")
    assert sum(row[2] for row in spent) == len(trials)
    assert sum(row[3] for row in spent) * 3600 == pytest.approx(
        sum(trial.gpu_seconds for trial in trials)
    )
    assert sum(row[4] for row in spent) == pytest.approx(100)

    causes = answer(ask, "SELECT error_kind")
    assert sum(row[2] for row in causes) == len(failed) > 0
    assert {row[0] for row in causes} == {"diverged"}
    curves = answer(ask, "SELECT trial, resource, value, loss")
    assert len(curves) == sum(len(trial.reports) for trial in trials)
    quarters = answer(ask, "SELECT quarter")
    assert [row[0] for row in quarters] == [1, 2, 3, 4]
    assert sum(row[3] for row in quarters) == sum(trial.value is not None for trial in trials)
    so_far = [row[2] for row in answer(ask, "SELECT study, place") if row[0] == "digits"]
    assert so_far == sorted(so_far)
    assert so_far[-1] == max(trial.value for trial in trials if trial.value is not None)


def test_views_of_a_persons_own_disturb_no_check(sqlite, url):
    with closing(Store.open(url)) as store, store.reading() as connection:
        assert violations(connection) == []


def test_the_notebook_runs_and_has_no_outputs(sqlite, url, monkeypatch):
    monkeypatch.setenv("HPSEARCH_STORAGE", url)
    cells = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for cell in cells:
        assert cell["outputs"] == []
        source = "".join(cell["source"])
        exec(compile(source, "database.ipynb", "exec"), names)
    _, histories = sqlite
    trials = histories["digits"].trials
    assert len(names["trials"]) == len(trials)
    assert len(names["lines"].data) == sum(bool(trial.reports) for trial in trials)
    assert names["hours"].sum() * 3600 == pytest.approx(sum(t.gpu_seconds for t in trials))
    assert names["decisions"]["decisions"].sum() > 0


def test_the_page_shows_python_that_runs(sqlite, url):
    (shown,) = (block for block in pages.blocks("database") if block.language == "python")
    shell = pages.Shell(Path(str(make_url(url).database)).parent)
    shell.run(shown)
    names = shell.names
    assert set(names["trials"]["state"]) <= {"complete", "pruned"}
    assert names["reports"]["accuracy"].notna().all()
