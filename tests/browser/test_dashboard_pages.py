"""The dashboard in a real browser: what others wrote stays text, the link lets in, and foreign
pages learn nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

pytest.importorskip("optuna_dashboard")
pytest.importorskip("starlette")

import optuna
from optuna.distributions import CategoricalDistribution, FloatDistribution
from optuna_dashboard import save_note
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hpsearch.bridges.optuna.storage import StudyStorage
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyRecord, Trial
from hpsearch.pages.gate import Gate
from hpsearch.pages.site import site_of
from hpsearch.store.store import Store
from support.running.browsers import Visit
from support.running.dashboards import Served, served, serving

EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
QUOTED = EVIL.replace('"', "&quot;")
NOTE = f"{EVIL}\n\n[a link](javascript:document.title='taken') <iframe srcdoc=\"{QUOTED}\">"
TOKEN = "correct-horse-battery"


def page_of(html: str) -> ASGIApp:
    """An application whose pages are this one, but for `/own`."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        text = "one's own" if scope["path"] == "/own" else html
        await HTMLResponse(text)(scope, receive, send)

    return app


@pytest.fixture(scope="module")
def evil_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A database with one study, all of whose texts would like to be programs."""
    url = f"sqlite:///{tmp_path_factory.mktemp('evil')}/study.db"
    distributions = {
        EVIL: CategoricalDistribution((EVIL, "other")),
        "x": FloatDistribution(0.0, 1.0),
    }
    trials = []
    for number in range(6):
        state = State.FAILED if number == 5 else State.COMPLETE
        value = None if state is State.FAILED else number / 10
        trial = Trial(
            number, state, {EVIL: "other" if number % 2 else EVIL, "x": number / 10}, value=value
        )
        trial.distributions, trial.user_attrs, trial.system_attrs = (
            dict(distributions),
            {EVIL: EVIL},
            {EVIL: EVIL},
        )
        trial.error_kind, trial.error_text = (
            ("error", EVIL) if state is State.FAILED else (None, None)
        )
        trials.append(trial)
    reports = [ReportRecord(number, 1.0, number / 10, {EVIL: number / 10}) for number in range(5)]
    with closing(Store.open(url)) as store:
        study = StudyRecord(0, EVIL, "", ("maximize",))
        study.user_attrs = {EVIL: EVIL, "link": "javascript:document.title='taken'"}
        record = store.create_study(study)
        store.commit(record.id, Changes(trials=trials, reports=reports))
        save_note(optuna.load_study(study_name=EVIL, storage=StudyStorage(store)), NOTE)
    return url


@pytest.fixture(scope="module")
def evil_dashboard(evil_url: str) -> Iterator[Served]:
    with served(evil_url) as dashboard:
        yield dashboard


# ------------------------------------------------------------------------------------------- texts
# stay texts


def test_such_a_text_would_run_on_a_page_that_takes_it_for_html(visit: Visit) -> None:
    with serving(page_of(EVIL)) as port:
        assert visit(f"http://127.0.0.1:{port}/").title == "taken"


def test_behind_the_gate_it_would_not_run_even_there(visit: Visit) -> None:
    app = page_of(f"<title>own</title>{EVIL}")
    with serving(Gate(app, None, allow_changes=False)) as port:
        page = visit(f"http://127.0.0.1:{port}/")
    assert page.title == "own"
    assert "Content Security Policy" in page.console, "the browser says what it did not run"


@pytest.mark.parametrize(
    ("path", "times"),
    [
        ("dashboard", 1),  # the list of studies
        pytest.param("dashboard/studies/1", 2, marks=pytest.mark.thorough),
        ("dashboard/studies/1/analytics", 3),
        pytest.param("dashboard/studies/1/trials?numbers=2", 3, marks=pytest.mark.thorough),
        ("dashboard/studies/1/trials?numbers=5", 3),  # the one that failed
        ("dashboard/studies/1/note", 2),
        pytest.param("dashboard/compare-studies?ids=1", 1, marks=pytest.mark.thorough),
    ],
)
def test_what_others_wrote_is_shown_as_text(
    path: str, times: int, evil_dashboard: Served, visit: Visit
) -> None:
    page = visit(evil_dashboard.link + path)
    assert page.title == "Optuna Dashboard"
    assert page.text.count(EVIL) >= times, page.text
    assert "<script>document" not in page.html
    assert 'src="x"' not in page.html
    assert 'href="javascript:' not in page.html
    assert "Content Security Policy" not in page.console, (
        "nothing of the page itself needs what is forbidden"
    )


# ---------------------------------------------------------------------------------------------- the
# way in


@pytest.fixture
def flowers_url(sqlite_url: str) -> str:
    """A database with an empty study, flowers."""
    with closing(Store.open(sqlite_url)) as store:
        store.create_study(StudyRecord(0, "flowers", "", ("maximize",)))
    return sqlite_url


def test_the_link_opens_the_dashboard_and_its_cookie_all_that_the_page_asks_for(
    flowers_url: str, visit: Visit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HPSEARCH_DASHBOARD_TOKEN", raising=False)
    with served(flowers_url, "--host", "0.0.0.0") as dashboard:
        without = visit(dashboard.link.partition("?")[0])
        assert "This dashboard needs a token." in without.text
        assert "flowers" not in without.html
        page = visit(dashboard.link)
    assert page.title == "Studies – hpsearch"
    assert "flowers" in page.text


# -------------------------------------------------------------------------------------------
# foreign pages


FOREIGN = """
<title>trying</title><body><pre id="found"></pre><script type="module">
const found = document.getElementById("found"), dashboard = "DASHBOARD";
async function attempt(what, act) {
    try { found.append(`${what}: ${await act()}\\n`) } \
catch (error) { found.append(`${what}: ${error.name}\\n`) }
}
function load(element, address) {
    return new Promise((ended) => {
        Object.assign(element, {src: address, onload: () => ended("loaded"), \
onerror: () => ended("failed")});
        document.body.append(element);
    });
}
async function read(address, options) { \
return (await fetch(address, {credentials: "include", ...options})).text() }
const planted = JSON.stringify({study_name: "planted", directions: ["minimize"]});
const change = {method: "POST", body: planted, mode: "no-cors"};
await load(new Image(), dashboard + "/dashboard?token=TOKEN");
document.body.append(Object.assign(document.createElement("iframe"), \
{src: dashboard + "/dashboard"}));
await attempt("own", () => read("/own"));
await attempt("read", () => read(dashboard + "/api/studies"));
await attempt("opaque", () => read(dashboard + "/api/studies", {mode: "no-cors"}));
await attempt("script", () => load(document.createElement("script"), dashboard + "/api/studies"));
await attempt("picture", () => load(new Image(), dashboard + "/favicon.ico"));
await attempt("plain", () => read(dashboard + "/api/studies", change));
await attempt("json", () => read(dashboard + "/api/studies",
    {method: "POST", body: planted, headers: {"Content-Type": "application/json"}}));
await attempt("remove", () => read(dashboard + "/api/studies/1", {method: "DELETE"}));
document.title = "tried";
</script>
"""


@pytest.mark.parametrize(
    ("token", "host", "cookie", "status"),
    [
        (None, "127.0.0.1", False, 403),
        (None, "evil.example", False, 403),
        (
            TOKEN,
            "127.0.0.1",
            True,
            403,
        ),  # another port is the same site: the browser sends the cookie along
        (TOKEN, "evil.example", False, 401),
    ],
)
def test_a_page_of_another_origin_learns_and_changes_nothing(
    token: str | None, host: str, cookie: bool, status: int, flowers_url: str, visit: Visit
) -> None:
    asked = []
    with closing(Store.open(flowers_url)) as store:
        gate = Gate(site_of(store, allow_changes=True), token, allow_changes=True)

        async def recorded(scope: Scope, receive: Receive, send: Send) -> None:
            async def note(message: Message) -> None:
                if message["type"] == "http.response.start":
                    has_cookie = "cookie" in Headers(scope=scope)
                    asked.append((scope["method"], scope["path"], has_cookie, message["status"]))
                await send(message)

            await gate(scope, receive, note)

        with serving(recorded) as port:
            foreign = FOREIGN.replace("DASHBOARD", f"http://127.0.0.1:{port}").replace(
                "TOKEN", TOKEN
            )
            with serving(page_of(foreign)) as other:
                page = visit(f"http://{host}:{other}/")
        assert [study.name for study in store.studies()] == ["flowers"]

    assert page.title == "tried", page.console
    found = dict(line.split(": ", 1) for line in page.text.splitlines() if ": " in line)
    assert found.pop("own") == "one's own", "the attempts work where they may"
    assert set(found) == {"read", "opaque", "script", "picture", "plain", "json", "remove"}
    assert set(found.values()) == {"TypeError", "failed"}
    assert "frame-ancestors 'none'" in page.console, (
        "nor can it show the dashboard as a part of its own"
    )
    assert ("POST", "/api/studies", cookie, status) in asked
    assert not [each for each in asked if each[0] not in ("GET", "OPTIONS", "POST")]


@pytest.mark.thorough
def test_a_name_that_was_lent_to_this_machine_shows_nothing(flowers_url: str, visit: Visit) -> None:
    with served(flowers_url) as dashboard:
        page = visit(dashboard.link.replace("127.0.0.1", "evil.example"))
    assert "This dashboard only answers to the names 127.0.0.1" in page.text
    assert "flowers" not in page.html
