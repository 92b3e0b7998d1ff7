"""Every view draws every member of every enumeration that readers give: a study for each standing,
with a trial for each state, role and kind of failure, and all that can happen to them."""

from __future__ import annotations

import enum
import io
import itertools
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("a2wsgi")
pytest.importorskip("plotly")
pytest.importorskip("starlette")

from rich.console import Console
from starlette.testclient import TestClient

import hpsearch
from hpsearch.cli.agents.reading import Reader
from hpsearch.cli.dashboard.site import site_of
from hpsearch.cli.output import What
from hpsearch.domain.facts import DecisionKind, ErrorKind, RequestKind, Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Decision, Outcome, Request, StudyState, Trial
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.standing import Standing, recent_decisions, study_status
from hpsearch.store.store import Store
from hpsearch.views.running.panel import panel
from hpsearch.views.status import picture
from reported_studies import BEGAN, PARAMS, SPACE, a_trial, save, spec_of
from trials.contract import Finding, Severity

NAME = "everything"
MADE: dict[Standing, tuple[StudyState, str, bool]] = {
    Standing.RUNNING: (StudyState.RUNNING, "own_code:train", True),
    Standing.WAITING: (StudyState.RUNNING, "ask", False),
    Standing.ABANDONED: (StudyState.RUNNING, "own_code:train", False),
    Standing.INTERRUPTED: (StudyState.INTERRUPTED, "own_code:train", False),
    Standing.FINISHED: (StudyState.FINISHED, "own_code:train", False),
    Standing.FAILED: (StudyState.FAILED, "own_code:train", False),
}
"""The state on record that makes each, what its task is, and whether somebody has a lease on it."""


def trials() -> list[Trial]:
    """A trial for each state, role and kind of failure; the last one has an attempt of every
    outcome."""
    made: list[Trial] = []
    roles = itertools.cycle(Role)
    for state in State:
        for kind in ErrorKind if state is State.FAILED else [None]:
            number, role = len(made), next(roles)
            trial = a_trial(number, state, PARAMS[number], None if kind else 0.5, role=role)
            trial.error_kind, trial.repeats = kind, 1 if role is Role.CONFIRM else None
            made.append(trial)
    made.append(a_trial(len(made), State.COMPLETE, PARAMS[20], 0.7))
    made[0].findings = [Finding(each, "seen", each) for each in Severity]
    first, last = made[-1], made[-1].attempts.pop()
    for n, outcome in enumerate(Outcome):
        earlier = Attempt(
            first.number, n + 1, "w0", BEGAN + n, ended=BEGAN + n + 1.0, outcome=outcome
        )
        first.attempts.append(earlier)
    last.number = len(first.attempts) + 1
    first.attempts.append(last)
    return made


@pytest.fixture(params=list(Standing))
def standing(request: pytest.FixtureRequest, sqlite_url: str) -> Standing:
    """A database with a study that stands in each way in turn."""
    found: Standing = request.param
    state, task, is_held = MADE[found]
    spec = spec_of(NAME, SPACE, task={"kind": task})
    save(sqlite_url, NAME, trials(), spec, state=state, reason=None)
    with closing(Store.open(sqlite_url)) as store:
        study = store.find_study(NAME).id
        lease = store.acquire(study, "somebody", 1e6)
        for _, kind in itertools.product(ANSWERS, RequestKind):
            store.ask(NAME, Request(0, kind, {"trial": 1}, "ann@desk", BEGAN))
        answered = store.waiting(study)
        for each, answer in zip(answered, itertools.cycle(ANSWERS), strict=False):
            each.handled, each.refused = answer
        decisions = [Decision(0, kind, "so it was decided", 1.0) for kind in DecisionKind]
        store.commit(study, Changes(decisions=decisions, requests=answered), lease)
        if not is_held:
            store.release(lease)
    return found


ANSWERS = ((BEGAN, None), (BEGAN, "no"), (None, None))
"""When a request was handled, and why it was refused."""


def test_the_terminal_and_files_show_it(
    standing: Standing, run: Callable[..., Any], tmp_path: Path
) -> None:
    def said(*words: str) -> str:
        answer = run(*words)
        assert answer.code == 0, (words, answer.err)
        return str(answer.out)

    every = [str(n) for n in range(len(trials()))]
    for kind in ("table", "json", "yaml", "csv"):
        assert standing in said("ls", "--format", kind)
        if kind != "csv":
            told = said("status", NAME, "--format", kind)
            assert standing in told
            assert_named(told, ErrorKind)
        if standing is not Standing.RUNNING:
            continue  # the rest is the same for all of them
        told = said("trials", NAME, "--format", kind)
        assert_named(told, State, ErrorKind)
        if kind != "yaml":  # as YAML it is the settings of trials
            said("best", NAME, "--format", kind)
        if kind != "csv":
            said("compare", NAME, *every, "--format", kind)
            told = said("show", NAME, every[0], "--format", kind)
            told += said("show", NAME, every[-1], "--format", kind)
            assert_named(told, Outcome, DecisionKind, Severity)
    if standing is Standing.RUNNING:
        for what in What:
            said("export", NAME, "--what", what, "--to", str(tmp_path / f"{what}.csv"))
    for kind in ("html", "md"):
        said("report", NAME, "--out", str(tmp_path / f"report.{kind}"))


def test_the_dashboard_shows_it(standing: Standing, sqlite_url: str) -> None:
    one = "/studies/1"
    pages = ["/", one, f"{one}/now", f"{one}/report", f"{one}/trials"]
    pages += [f"{one}/trials/{number}" for number in (0, len(trials()) - 1)]
    pages.append(f"{one}/compare?trial=0&trial=1")
    with closing(Store.open(sqlite_url)) as store:
        reading = TestClient(site_of(store, allow_changes=True))
        said = {page: reading.get(page) for page in pages}
    assert {page: each.status_code for page, each in said.items()} == dict.fromkeys(pages, 200)
    assert standing in said[one].text


def test_agents_and_notebooks_are_told_it(standing: Standing, sqlite_url: str) -> None:
    numbers = range(len(trials()))
    reader = Reader(sqlite_url)
    (study,) = reader.studies()
    status = reader.status(NAME)
    answers = [study, status, reader.best(NAME, 50), reader.trials(NAME, None, None, 100)]
    answers += [reader.compare(NAME, [0, 1]), *(reader.trial(NAME, n) for n in numbers)]
    assert_named(json.dumps(answers, allow_nan=False), State, Role, ErrorKind, Outcome)
    assert study["state"] == status["state"] == standing
    assert NAME in reader.report(NAME)
    with hpsearch.open(sqlite_url, NAME) as notebook:
        assert NAME in notebook._repr_html_()
        for plot in (notebook.plot_curves, notebook.plot_budget, notebook.plot_timeline):
            plot()
        for number in numbers:
            trial = notebook.trial(number)
            assert trial.state in trial._repr_html_()
        assert_named(notebook.trials().to_csv(), State, Role, ErrorKind)
        assert len(notebook.requests()) == len(ANSWERS) * len(RequestKind)


def test_the_panel_of_a_running_study_shows_it(standing: Standing, sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store, store.reading() as connection:
        study = find_study(connection, NAME)
        status = study_status(connection, study)
        decided = recent_decisions(connection, study, list(DecisionKind), 100)
    budget = study.budget
    assert budget is not None
    console = Console(width=200, height=100, record=True, file=io.StringIO())
    console.print(panel(picture(status, budget, decided, BEGAN + 100.0), 100))
    told = console.export_text()
    assert standing in told
    assert_named(told, State)


def assert_named(text: str, *kinds: type[enum.Enum]) -> None:
    """Every member of some enumerations is named in a text."""
    missing = [str(each.value) for kind in kinds for each in kind if str(each.value) not in text]
    assert missing == []
