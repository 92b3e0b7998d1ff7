"""`hpsearch dashboard` as a person starts it: its pages answer to those who may ask."""

import re
import socket
import sqlite3
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from hpsearch.cli.main import main
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, StudyState, Trial
from hpsearch.running.study_run.requests import send
from hpsearch.store.store import Store
from support.files import pages
from support.patience import PATIENCE_S
from support.running.dashboards import served, serving, site_behind_gate

pytest.importorskip("starlette")


FORM = "application/x-www-form-urlencoded"


def form_in(page: str) -> str:
    """The form of a page, with its token alone."""
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found is not None
    return f"form_token={quote(found[1])}"


@pytest.fixture
def study_id(sqlite_url: str) -> int:
    """The id of the study flowers, with three trials."""
    with closing(Store.open(sqlite_url)) as store:
        record = store.create_study(StudyRecord(0, "flowers", "", ("maximize",)))
        trials = [Trial(n, State.PAUSED, {}, value=n / 10, resource=1.0) for n in range(3)]
        store.commit(record.id, Changes(trials=trials))
    return record.id


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HPSEARCH_DASHBOARD_TOKEN", raising=False)


# --------------------------------------------------------------------------------------------------
# loopback


def test_the_dashboard_shows_a_study_until_it_is_interrupted_and_changes_nothing(
    sqlite_url, study_id
):
    with served(sqlite_url, "flowers") as dashboard:
        assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/studies/{study_id}", dashboard.link)
        with urllib.request.urlopen(dashboard.link) as page:
            assert "<title>flowers – hpsearch</title>" in page.read().decode()
        assert dashboard.ask("/", Host="evil.example").status == 403
        own = {"Content_Type": FORM, "Origin": dashboard.link.partition("/studies")[0]}
        refused = dashboard.ask(f"/studies/{study_id}/stop", "POST", "", **own)
        assert refused.status == 403
        assert b"--allow-changes" in refused.read()
        assert dashboard.interrupt() == ""


def test_the_commands_of_its_page_start_it(sqlite_url):
    with closing(Store.open(sqlite_url)) as store:
        store.create_study(StudyRecord(0, "reviews", "", ("maximize",)))
    shown = re.findall(r"^hpsearch dashboard (.+)$", pages.read("dashboard"), re.MULTILINE)
    assert len(shown) == 2
    for options, status in zip(shown, (200, 401), strict=True):
        with served(sqlite_url, *options.split()) as dashboard:
            assert dashboard.ask("/").status == status


def test_changes_need_the_token_and_come_from_the_dashboards_own_pages(sqlite_url, study_id):
    path = f"/studies/{study_id}/trials/1/stop"
    with served(sqlite_url, "--allow-changes") as dashboard:
        site, _, token = dashboard.link.partition("/?token=")
        known = {"Authorization": f"Bearer {token}", "Content_Type": FORM}
        page = dashboard.ask(f"/studies/{study_id}/trials/1", **known).read().decode()
        form = form_in(page)
        assert dashboard.ask(path, "POST", form, Content_Type=FORM, Origin=site).status == 401
        for origin in ("http://evil.example", "null"):
            assert dashboard.ask(path, "POST", form, **known, Origin=origin).status == 403
        assert dashboard.ask(path, "POST", form, **known, Origin=site).status == 303
    with closing(Store.open(sqlite_url)) as store:
        (request,) = store.waiting(study_id)
    assert request.content == {"trial": 1}


@pytest.mark.thorough
def test_who_connects_and_says_nothing_keeps_nobody_waiting(sqlite_url, study_id):
    with (
        served(sqlite_url) as dashboard,
        socket.create_connection(("127.0.0.1", urlsplit(dashboard.link).port or 0)),
    ):
        assert dashboard.ask("/").status == 200
        assert dashboard.interrupt() == ""


@pytest.mark.thorough
def test_a_token_that_is_given_is_asked_for_on_loopback_too(sqlite_url, study_id, monkeypatch):
    token = "of one's own; ünïque & 100% odd"
    monkeypatch.setenv("HPSEARCH_DASHBOARD_TOKEN", token)
    with served(sqlite_url) as dashboard:
        assert dashboard.link.endswith(f"/?token={quote(token, safe='')}")
        assert dashboard.ask("/").status == 401
        bearer = "Bearer " + token.encode().decode("latin-1")
        assert dashboard.ask("/", Authorization=bearer).status == 200


# ----------------------------------------------------------------------------------------------
# others

READ = ("/", "/studies/1", "/studies/1/report", "/studies/1/trials")
NEVER_S = 1e6


@contextmanager
def locked(url: str) -> Iterator[None]:
    """Hold the lock that whoever changes the study needs, as another program would."""
    if url.startswith("sqlite"):
        with closing(
            sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        ) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
        return
    with psycopg.connect(url) as server:
        server.execute("SELECT * FROM studies FOR UPDATE")
        yield


def asked(port: int, path: str, body: str | None = None, kind: str = "") -> tuple[int, str]:
    """The status and text of an answer."""
    with closing(HTTPConnection("127.0.0.1", port)) as connection:
        method = "GET" if body is None else "POST"
        connection.request(method, path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def form_of(port: int) -> str:
    """A form that stops trial 1."""
    _, page = asked(port, "/studies/1/trials/1")
    return form_in(page)


@pytest.fixture
def interrupted(database_url: str) -> Iterator[Store]:
    """A database, with the interrupted study flowers and its three trials."""
    with closing(Store.open(database_url)) as store:
        state = StudyState.INTERRUPTED
        record = store.create_study(StudyRecord(0, "flowers", "", ("maximize",), state))
        trials = [Trial(n, State.PAUSED, {}, value=n / 10, resource=1.0) for n in range(3)]
        store.commit(record.id, Changes(trials=trials))
        yield store


def test_readers_wait_for_no_change_that_waits_for_the_database(
    interrupted, database_url, monkeypatch
):
    placing = threading.Event()

    def place_told(*arguments: Any) -> Any:
        placing.set()
        return send(*arguments)

    monkeypatch.setattr("hpsearch.views.pages.changes.send", place_told)
    site = site_behind_gate(interrupted, allow_changes=True, patience_s=NEVER_S)
    with serving(site) as port, ThreadPoolExecutor() as pool:
        form = form_of(port)
        with locked(database_url):
            stopping = pool.submit(asked, port, "/studies/1/trials/1/stop", form, FORM)
            assert placing.wait(PATIENCE_S)
            for path in READ:
                assert asked(port, path)[0] == 200, path
            assert not stopping.done()
        assert stopping.result()[0] == 303


def test_a_change_is_refused_in_words_where_the_database_stays_locked(interrupted, database_url):
    site = site_behind_gate(interrupted, allow_changes=True, patience_s=0.1)
    with serving(site) as port:
        form = form_of(port)
        with locked(database_url):
            status, text = asked(port, "/studies/1/trials/1/stop", form, FORM)
            assert status == 503
            assert "The database is busy" in text
            assert "try again" in text
        assert interrupted.waiting(1) == []
        assert asked(port, "/studies/1/trials/1/stop", form, FORM)[0] == 303


# ----------------------------------------------------------------------------------------------
# beyond loopback


def test_beyond_loopback_only_the_token_lets_in(sqlite_url, study_id):
    with served(sqlite_url, "flowers", "--host", "0.0.0.0") as dashboard:
        link = urlsplit(dashboard.link)
        assert link.hostname == socket.gethostname().lower()
        token = link.query.removeprefix("token=")
        assert len(token) >= 43, "256 bits"
        for path in ("/", "/studies/1", "/files/report.js", "/?token=guessed-0123456789"):
            refused = dashboard.ask(path)
            assert refused.status == 401, path
            assert b"the link that `hpsearch dashboard` printed" in refused.read()
        assert dashboard.ask("/", Authorization="Bearer guessed-0123456789").status == 401

        entered = dashboard.ask(f"{link.path}?{link.query}")
        assert (entered.status, entered.headers["Location"]) == (303, f"/studies/{study_id}")
        cookie = entered.headers["Set-Cookie"].partition(";")[0]
        assert dashboard.ask(entered.headers["Location"], Cookie=cookie).status == 200
        assert dashboard.ask("/", Authorization=f"Bearer {token}").status == 200

        more = dashboard.interrupt()
        assert re.fullmatch(r"plain HTTP: .* ssh -L .*\n", more), "one line, and no token in it"
        assert token not in more


@pytest.mark.thorough
def test_an_ipv6_address_is_served_too(sqlite_url, study_id):
    if not _has_ipv6_loopback():
        pytest.skip("this machine has no IPv6")
    with served(sqlite_url, "--host", "::1") as dashboard:
        assert dashboard.link.startswith("http://[::1]:")
        with urllib.request.urlopen(dashboard.link) as answer:
            assert answer.status == 200


# --------------------------------------------------------------------------------------------------
# mistakes


Run = Callable[..., str]


@pytest.fixture
def refused(sqlite_url: str, study_id: int, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a dashboard that does not start, and gives what it says."""

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["dashboard", "--storage", sqlite_url, *arguments])
        assert ended.value.code == 2
        return capsys.readouterr().err

    return call


@pytest.mark.parametrize("host", ["192.0.2.1", "2001:db8::1"])
def test_an_address_of_another_machine_is_refused(host, refused):
    said = refused("--host", host, "--port", "0")
    assert f"cannot listen on {host}, port 0" in said


@pytest.mark.parametrize(
    "host", ["no.such.host.invalid", "", "a..b", "[::1]", "x" * 70, "127.0.0.1:80"]
)
def test_a_name_without_an_address_is_refused(host, refused):
    said = refused("--host", host)
    assert f"cannot listen on {host}, port 8080" in said
    assert "0.0.0.0" in said


def test_a_port_that_is_taken_is_refused(refused):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("--port", str(taken.getsockname()[1]))
    assert "choose another --port" in said


@pytest.mark.parametrize("token", ["", "short", "fifteen-charact"])
def test_a_token_that_could_be_tried_out_is_refused(token, refused, monkeypatch):
    monkeypatch.setenv("HPSEARCH_DASHBOARD_TOKEN", token)
    said = refused("--host", "0.0.0.0")
    assert f"HPSEARCH_DASHBOARD_TOKEN has {len(token)} characters" in said
    assert not token or token not in said


def _has_ipv6_loopback() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False
