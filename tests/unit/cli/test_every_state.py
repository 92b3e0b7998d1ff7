"""Every view draws every member of every enumeration that readers give.

One database has a study for each standing, with a trial for each state, role and kind of failure,
and all that can happen to them. What does not depend on how a study stands is drawn of one of them.
"""

import enum
import io
import itertools
import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

pytest.importorskip("plotly")
pytest.importorskip("starlette")

from rich.console import Console
from starlette.testclient import TestClient

import hpsearch
from hpsearch.cli.output import What
from hpsearch.domain.facts import DecisionKind, ErrorKind, RequestKind, Role
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Decision, Outcome, Request, StudyState, Trial
from hpsearch.store.reading.status import DrivenState
from hpsearch.store.store import Store
from hpsearch.views.live import StudyPanel
from hpsearch.views.pages.site import site_of
from support.studies.reported import BEGAN, PARAMS, SPACE, a_trial, save, spec_of
from trials.contract import Finding, Severity

MADE: dict[DrivenState, tuple[StudyState, str, bool]] = {
    DrivenState.RUNNING: (StudyState.RUNNING, "own_code:train", True),
    DrivenState.WAITING: (StudyState.RUNNING, "ask", False),
    DrivenState.ABANDONED: (StudyState.RUNNING, "own_code:train", False),
    DrivenState.INTERRUPTED: (StudyState.INTERRUPTED, "own_code:train", False),
    DrivenState.FINISHED: (StudyState.FINISHED, "own_code:train", False),
    DrivenState.FAILED: (StudyState.FAILED, "own_code:train", False),
}
"""The state on record that makes each, what its task is, and whether somebody has a lease on it."""


def trials() -> list[Trial]:
    """A trial for each state, role and kind of failure; the last one has an attempt of every
    outcome."""
    made: list[Trial] = []
    roles = itertools.cycle(role for role in Role if role.of_search or role is Role.CONFIRM)
    for state in State:
        for kind in ErrorKind if state is State.FAILED else [None]:
            number, role = len(made), next(roles)
            trial = a_trial(number, state, PARAMS[number], None if kind else 0.5, role=role)
            trial.error_kind, trial.repeats = kind, 1 if role is Role.CONFIRM else None
            made.append(trial)
    made.append(a_trial(len(made), State.COMPLETE, PARAMS[19], 0.7, role=Role.REVISION))
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


@pytest.fixture(scope="module")
def sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with a study that stands in each way."""
    url = f"sqlite:///{tmp_path_factory.mktemp('every')}/study.db"
    for standing, name in NAMES.items():
        save_one(url, standing, name)
    return url


def save_one(url: str, standing: DrivenState, name: str) -> None:
    """Write a study that stands so."""
    state, task, is_held = MADE[standing]
    spec = spec_of(name, SPACE, task={"kind": task})
    save(url, name, trials(), spec, state=state, reason=None)
    with closing(Store.open(url)) as store:
        study = store.find_study(name).id
        lease = store.acquire(study, "somebody", 1e6)
        for _, kind in itertools.product(ANSWERS, RequestKind):
            store.add_request(name, Request(0, kind, {"trial": 1}, "ann@desk", BEGAN))
        answered = store.waiting(study)
        for each, answer in zip(answered, itertools.cycle(ANSWERS), strict=False):
            each.handled, each.refused = answer
        decisions = [Decision(0, kind, "so it was decided", 1.0) for kind in DecisionKind]
        store.commit(study, Changes(decisions=decisions, requests=answered), lease)
        if not is_held:
            store.release(lease)


ANSWERS = ((BEGAN, None), (BEGAN, "no"), (None, None))
"""When a request was handled, and why it was refused."""


NAMES = {standing: f"toy-{number}" for number, standing in enumerate(DrivenState)}
NAME = NAMES[DrivenState.RUNNING]
"""The study of which everything is drawn that does not depend on how it stands."""

NUMBERS = range(len(trials()))


@pytest.fixture
def said(run: Callable[..., Any]) -> Callable[..., str]:
    """Gives what a command that succeeds has printed."""

    def say(*words: str) -> str:
        answer = run(*words)
        assert answer.code == 0, (words, answer.err)
        return str(answer.out)

    return say


def test_the_terminal_and_files_show_how_each_study_stands(said, tmp_path):
    for kind in ("table", "json", "yaml", "csv"):
        assert_named(said("ls", "--format", kind), DrivenState)
    for standing, name in NAMES.items():
        for kind in ("table", "json", "yaml"):
            told = said("status", name, "--format", kind)
            assert standing in told
            assert_named(told, ErrorKind)
        for kind in ("html", "md"):
            said("report", name, "--out", str(tmp_path / f"{name}.{kind}"))


def test_the_terminal_and_files_show_every_trial(said, tmp_path):
    first, *_, last = every = [str(n) for n in NUMBERS]
    for kind in ("table", "json", "yaml", "csv"):
        assert_named(said("trials", NAME, "--format", kind), State, ErrorKind)
        if kind != "yaml":  # as YAML it is the settings of trials
            said("best", NAME, "--format", kind)
        if kind != "csv":
            said("show", NAME, *every, "--format", kind)
            told = said("show", NAME, first, "--format", kind)
            told += said("show", NAME, last, "--format", kind)
            assert_named(told, Outcome, DecisionKind, Severity)
    for what in What:
        said("export", NAME, "--what", what, "--to", str(tmp_path / f"{what}.csv"))


def test_the_dashboard_shows_it(sqlite_url):
    with closing(Store.open(sqlite_url)) as store:
        reading = TestClient(site_of(store, allow_changes=True))

        def page(path: str) -> str:
            answer = reading.get(path)
            assert answer.status_code == 200, path
            return answer.text

        assert_named(page("/"), DrivenState)
        for standing, name in NAMES.items():
            one = f"/studies/{store.find_study(name).id}"
            assert standing in page(one)
            page(f"{one}/now")
            page(f"{one}/report")
        one = f"/studies/{store.find_study(NAME).id}"
        page(f"{one}/trials")
        page(f"{one}/compare?trial=0&trial=1")
        for number in (0, NUMBERS[-1]):
            page(f"{one}/trials/{number}")


def test_agents_are_told_it(sqlite_url):
    pytest.importorskip("mcp", reason="needs the extra mcp")
    from hpsearch.plugins.mcp.server import Reader

    reader = Reader(sqlite_url)
    standings = {study["study"]: study["state"] for study in reader.studies()}
    assert standings == {name: standing for standing, name in NAMES.items()}
    for standing, name in NAMES.items():
        assert reader.status(name)["state"] == standing
        assert name in reader.report(name)
    answers = [reader.status(NAME), reader.best(NAME, 50), reader.trials(NAME, None, None, 100)]
    answers += [reader.compare(NAME, [0, 1]), *(reader.trial(NAME, n) for n in NUMBERS)]
    assert_named(json.dumps(answers, allow_nan=False), State, Role, ErrorKind, Outcome)


@pytest.mark.thorough
def test_notebooks_are_told_it(sqlite_url):
    for name in NAMES.values():
        with hpsearch.open(sqlite_url, name) as notebook:
            assert name in notebook._repr_html_()
            for plot in (notebook.plot_curves, notebook.plot_best_so_far):
                plot()
    with hpsearch.open(sqlite_url, NAME) as notebook:
        assert_named(notebook.trials().to_csv(), State, Role, ErrorKind)


def test_the_panel_of_a_running_study_shows_it(sqlite_url):
    for standing, name in NAMES.items():
        console = Console(width=200, height=100, record=True, file=io.StringIO())
        with closing(Store.open(sqlite_url)) as store:
            assert StudyPanel(store, "not yet made")() == "starting ..."
            console.print(StudyPanel(store, name)())
        told = console.export_text()
        assert standing in told
        assert_named(told, State)


def assert_named(text: str, *kinds: type[enum.Enum]) -> None:
    """Every member of some enumerations is named in a text."""
    missing = [str(each.value) for kind in kinds for each in kind if str(each.value) not in text]
    assert missing == []
