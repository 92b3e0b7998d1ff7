"""The dashboard in a real browser: what others wrote stays text, the link lets in, and foreign
pages learn nothing."""

from contextlib import closing

import pytest

pytest.importorskip("starlette")

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hpsearch.domain.records import StudyRecord
from hpsearch.store.store import Store
from hpsearch.views.pages.gate import Gate
from hpsearch.views.pages.site import site_of
from support.running.dashboards import served, serving

EVIL = "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\">"
TOKEN = "correct-horse-battery"


def page_of(html: str) -> ASGIApp:
    """An application whose pages are this one, but for `/own`."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        text = "one's own" if scope["path"] == "/own" else html
        await HTMLResponse(text)(scope, receive, send)

    return app


# ------------------------------------------------------------------------------------------- texts
# stay texts


def test_such_a_text_would_run_on_a_page_that_takes_it_for_html(visit):
    with serving(page_of(EVIL)) as port:
        assert visit(f"http://127.0.0.1:{port}/").title == "taken"


def test_behind_the_gate_it_would_not_run_even_there(visit):
    app = page_of(f"<title>own</title>{EVIL}")
    with serving(Gate(app, None, allow_changes=False)) as port:
        page = visit(f"http://127.0.0.1:{port}/")
    assert page.title == "own"
    assert "Content Security Policy" in page.console, "the browser says what it did not run"


# ---------------------------------------------------------------------------------------------- the
# way in


@pytest.fixture
def flowers_url(sqlite_url: str) -> str:
    """A database with an empty study, flowers."""
    with closing(Store.open(sqlite_url)) as store:
        store.create_study(StudyRecord(0, "flowers", "", ("maximize",)))
    return sqlite_url


def test_the_link_opens_the_dashboard_and_its_cookie_all_that_the_page_asks_for(
    flowers_url, visit, monkeypatch
):
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
const change = {method: "POST", body: new URLSearchParams({trials: "99"}), mode: "no-cors"};
await load(new Image(), dashboard + "/?token=TOKEN");
document.body.append(Object.assign(document.createElement("iframe"), \
{src: dashboard + "/studies/1"}));
await attempt("own", () => read("/own"));
await attempt("read", () => read(dashboard + "/studies/1"));
await attempt("opaque", () => read(dashboard + "/studies/1", {mode: "no-cors"}));
await attempt("script", () => load(document.createElement("script"), \
dashboard + "/files/report.js"));
await attempt("picture", () => load(new Image(), dashboard + "/studies/1"));
await attempt("form", () => read(dashboard + "/studies/1/budget", change));
await attempt("json", () => read(dashboard + "/studies/1/budget",
    {method: "POST", body: "{}", headers: {"Content-Type": "application/json"}}));
await attempt("remove", () => read(dashboard + "/studies/1", {method: "DELETE"}));
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
    token, host, cookie, status, flowers_url, visit
):
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
        assert store.waiting(1) == []

    assert page.title == "tried", page.console
    found = dict(line.split(": ", 1) for line in page.text.splitlines() if ": " in line)
    assert found.pop("own") == "one's own", "the attempts work where they may"
    assert set(found) == {"read", "opaque", "script", "picture", "form", "json", "remove"}
    assert set(found.values()) == {"TypeError", "failed"}
    assert "frame-ancestors 'none'" in page.console, (
        "nor can it show the dashboard as a part of its own"
    )
    assert ("POST", "/studies/1/budget", cookie, status) in asked
    assert not [each for each in asked if each[0] not in ("GET", "OPTIONS", "POST")]
