"""`hpsearch dashboard` as a person starts it: its pages and Optuna's dashboard answer from our
database, to those who may ask."""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import threading
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPResponse
from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from hpsearch.cli.main import main
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, StudyState, Trial
from hpsearch.store.store import Store
from hpsearch.study_run.requests import place
from support.files import pages
from support.running.dashboards import served, serving, site_behind_gate

pytest.importorskip("optuna_dashboard")

from hpsearch.pages import taking


@pytest.fixture
def study_id(sqlite_url: str) -> int:
    """The id of the study flowers, with three trials."""
    with closing(Store.open(sqlite_url)) as store:
        record = store.create_study(StudyRecord(0, "flowers", "", ("maximize",)))
        trials = [Trial(n, State.COMPLETE, {}, value=n / 10, resource=1.0) for n in range(3)]
        store.commit(record.id, Changes(trials=trials))
    return record.id


@pytest.fixture(autouse=True)
def _no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HPSEARCH_DASHBOARD_TOKEN", raising=False)


def names(answer: HTTPResponse) -> list[str]:
    """The studies in an answer."""
    assert answer.status == 200, answer.read()
    return [study["study_name"] for study in json.load(answer)["study_summaries"]]


# --------------------------------------------------------------------------------------------------
# loopback


def test_the_dashboard_shows_a_study_until_it_is_interrupted(
    sqlite_url: str, study_id: int
) -> None:
    with served(sqlite_url, "flowers") as dashboard:
        assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/studies/{study_id}", dashboard.link)
        with urllib.request.urlopen(dashboard.link) as page:
            assert "<title>flowers – hpsearch</title>" in page.read().decode()
        assert b"<title>Optuna Dashboard</title>" in dashboard.ask("/dashboard").read()
        assert names(dashboard.ask("/api/studies")) == ["flowers"]
        detail = json.load(dashboard.ask(f"/api/studies/{study_id}?after=0"))
        assert [trial["values"] for trial in detail["trials"]] == [[0.0], [0.1], [0.2]]
        assert dashboard.interrupt() == ""


def test_the_commands_of_its_page_start_it(sqlite_url: str) -> None:
    with closing(Store.open(sqlite_url)) as store:
        store.create_study(StudyRecord(0, "reviews", "", ("maximize",)))
    shown = re.findall(r"^hpsearch dashboard (.+)$", pages.read("dashboard"), re.MULTILINE)
    assert len(shown) == 2
    for options, status in zip(shown, (200, 401), strict=True):
        with served(sqlite_url, *options.split()) as dashboard:
            assert dashboard.ask("/").status == status


def test_on_loopback_other_names_are_refused(sqlite_url: str, study_id: int) -> None:
    with served(sqlite_url) as dashboard:
        assert dashboard.ask("/api/studies", Host="evil.example").status == 403
        assert names(dashboard.ask("/api/studies")) == ["flowers"]


def test_changes_need_the_token_and_come_from_the_dashboards_own_pages(
    sqlite_url: str, study_id: int
) -> None:
    new = json.dumps({"study_name": "planted", "directions": ["minimize"]})
    with served(sqlite_url, "--allow-changes") as dashboard:
        site, _, token = dashboard.link.partition("/?token=")
        known = {"Authorization": f"Bearer {token}"}
        own = {"Content_Type": "application/json", "Origin": site}
        foreign = {"Content_Type": "application/json", "Origin": "http://evil.example"}
        assert dashboard.ask("/api/studies", "POST", new, **own).status == 401
        assert dashboard.ask("/api/studies", "POST", new, **known, **foreign).status == 403
        address = f"/api/studies/{study_id}"
        assert dashboard.ask(address, "DELETE", Origin="null", **known).status == 403
        assert names(dashboard.ask("/api/studies", **known)) == ["flowers"]
        assert dashboard.ask("/api/studies", "POST", new, **known, **own).status == 201
        assert sorted(names(dashboard.ask("/api/studies", **known))) == ["flowers", "planted"]


def test_without_leave_optunas_pages_change_nothing_either(sqlite_url: str, study_id: int) -> None:
    new = json.dumps({"study_name": "planted", "directions": ["minimize"]})
    with served(sqlite_url) as dashboard:
        own = {"Content_Type": "application/json", "Origin": dashboard.link.removesuffix("/")}
        refused = dashboard.ask("/api/studies", "POST", new, **own)
        assert refused.status == 403
        assert b"--allow-changes" in refused.read()
        assert names(dashboard.ask("/api/studies")) == ["flowers"]


@pytest.mark.thorough
def test_who_connects_and_says_nothing_keeps_nobody_waiting(sqlite_url: str, study_id: int) -> None:
    with (
        served(sqlite_url) as dashboard,
        socket.create_connection(("127.0.0.1", urlsplit(dashboard.link).port or 0)),
    ):
        assert names(dashboard.ask("/api/studies")) == ["flowers"]
        assert dashboard.interrupt() == ""


@pytest.mark.thorough
def test_a_token_that_is_given_is_asked_for_on_loopback_too(
    sqlite_url: str, study_id: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = "of one's own; ünïque & 100% odd"
    monkeypatch.setenv("HPSEARCH_DASHBOARD_TOKEN", token)
    with served(sqlite_url) as dashboard:
        assert dashboard.link.endswith(f"/?token={quote(token, safe='')}")
        assert dashboard.ask("/api/studies").status == 401
        bearer = "Bearer " + token.encode().decode("latin-1")
        assert names(dashboard.ask("/api/studies", Authorization=bearer)) == ["flowers"]


# ----------------------------------------------------------------------------------------------
# others

READ = ("/", "/studies/1", "/studies/1/report", "/studies/1/trials", "/api/studies")
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


FORM = "application/x-www-form-urlencoded"


def form_of(port: int) -> str:
    """A form that stops trial 1."""
    _, page = asked(port, "/studies/1/trials/1")
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found is not None
    return f"form_token={quote(found[1])}"


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
    interrupted: Store, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    placing = threading.Event()

    def place_told(*arguments: Any) -> Any:
        placing.set()
        return place(*arguments)

    monkeypatch.setattr("hpsearch.pages.changes.place", place_told)
    site = site_behind_gate(interrupted, allow_changes=True, patience_s=NEVER_S)
    new = json.dumps({"study_name": "planted", "directions": ["minimize"]})
    with serving(site) as port, ThreadPoolExecutor() as pool:
        form = form_of(port)
        with locked(database_url):
            stopping = pool.submit(asked, port, "/studies/1/trials/1/stop", form, FORM)
            assert placing.wait(timeout=60)
            planting = pool.submit(asked, port, "/api/studies", new, "application/json")
            for path in READ:
                assert asked(port, path)[0] == 200, path
            assert not stopping.done()
            assert not planting.done()
        assert stopping.result()[0] == 303
        assert planting.result()[0] == 201


def test_a_change_is_refused_in_words_where_the_database_stays_locked(
    interrupted: Store, database_url: str
) -> None:
    site = site_behind_gate(interrupted, allow_changes=True, patience_s=0.1)
    note = json.dumps({"body": "a note", "version": 1})
    with serving(site) as port:
        form = form_of(port)
        with locked(database_url):
            status, text = asked(port, "/studies/1/trials/1/stop", form, FORM)
            assert status == 503
            assert "The database is busy" in text
            assert "try again" in text
            with closing(HTTPConnection("127.0.0.1", port)) as connection:
                kind = {"Content-Type": "application/json"}
                connection.request("PUT", "/api/studies/1/note", note, kind)
                answer = connection.getresponse()
                assert answer.status == 503
                assert "lock" in json.load(answer)["reason"]
        assert interrupted.waiting(1) == []
        assert asked(port, "/studies/1/trials/1/stop", form, FORM)[0] == 303


def unfinished(port: int, path: str, length: int = 100) -> socket.socket:
    """A request whose body does not end."""
    sending = socket.create_connection(("127.0.0.1", port))
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: {FORM}\r\n"
    sending.sendall(f"{head}Content-Length: {length}\r\n\r\n{{".encode())
    return sending


def status_of(sending: socket.socket) -> bytes:
    """The status line of the answer to a request, once there is one."""
    with sending.makefile("rb") as answer:
        return answer.readline()


def test_uploads_that_do_not_end_cost_nobody_else_anything(interrupted: Store) -> None:
    site = site_behind_gate(interrupted, allow_changes=True)
    paths = ["/api/studies", "/studies/1/trials/1/stop"] * taking.MOST_BODIES
    with serving(site) as port, ExitStack() as stack:
        first, *rest = [stack.enter_context(unfinished(port, path)) for path in paths]
        for path in READ:
            assert asked(port, path)[0] == 200, path
        assert asked(port, "/studies/1/trials/1/stop", form_of(port), FORM)[0] == 303
        assert b" 408 " in status_of(first), "the oldest of too many"
        rest[-1].sendall(b"x" * 99)
        assert b" 403 " in status_of(rest[-1]), "it has come, and has no token"
        big = stack.enter_context(unfinished(port, "/api/studies", 2 * taking.MOST_BYTES))
        with suppress(BrokenPipeError, ConnectionResetError):
            big.sendall(b"x" * 2 * taking.MOST_BYTES)
        assert b" 413 " in status_of(big)


def test_an_upload_may_take_only_so_long(interrupted: Store) -> None:
    site = site_behind_gate(interrupted, allow_changes=True)
    with (
        serving(taking.Bodies(site, most_s=0.1)) as port,
        unfinished(port, "/api/studies") as sending,
    ):
        assert b" 408 " in status_of(sending)


# ----------------------------------------------------------------------------------------------
# beyond loopback


def test_beyond_loopback_only_the_token_lets_in(sqlite_url: str, study_id: int) -> None:
    with served(sqlite_url, "flowers", "--host", "0.0.0.0") as dashboard:
        link = urlsplit(dashboard.link)
        assert link.hostname == socket.gethostname().lower()
        token = link.query.removeprefix("token=")
        assert len(token) >= 43, "256 bits"
        for path in (
            "/",
            "/dashboard",
            "/api/studies",
            "/static/bundle.js",
            "/api/studies?token=guessed-0123456789",
        ):
            refused = dashboard.ask(path)
            assert refused.status == 401, path
            assert b"the link that `hpsearch dashboard` printed" in refused.read()
        assert (
            dashboard.ask("/api/studies", Authorization="Bearer guessed-0123456789").status == 401
        )

        entered = dashboard.ask(f"{link.path}?{link.query}")
        assert (entered.status, entered.headers["Location"]) == (303, f"/studies/{study_id}")
        cookie = entered.headers["Set-Cookie"].partition(";")[0]
        assert dashboard.ask(entered.headers["Location"], Cookie=cookie).status == 200
        assert names(dashboard.ask("/api/studies", Cookie=cookie)) == ["flowers"]
        assert names(dashboard.ask("/api/studies", Authorization=f"Bearer {token}")) == ["flowers"]

        more = dashboard.interrupt()
        assert re.fullmatch(r"plain HTTP: .* ssh -L .*\n", more), "one line, and no token in it"
        assert token not in more


@pytest.mark.thorough
def test_an_ipv6_address_is_served_too(sqlite_url: str, study_id: int) -> None:
    if not _has_ipv6_loopback():
        pytest.skip("this machine has no IPv6")
    with served(sqlite_url, "--host", "::1") as dashboard:
        assert dashboard.link.startswith("http://[::1]:")
        with urllib.request.urlopen(f"{dashboard.link}api/studies") as answer:
            assert names(answer) == ["flowers"]


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
def test_an_address_of_another_machine_is_refused(host: str, refused: Run) -> None:
    said = refused("--host", host, "--port", "0")
    assert f"cannot listen on {host}, port 0" in said


@pytest.mark.parametrize(
    "host", ["no.such.host.invalid", "", "a..b", "[::1]", "x" * 70, "127.0.0.1:80"]
)
def test_a_name_without_an_address_is_refused(host: str, refused: Run) -> None:
    said = refused("--host", host)
    assert f"cannot listen on {host}, port 8080" in said
    assert "0.0.0.0" in said


def test_a_port_that_is_taken_is_refused(refused: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("--port", str(taken.getsockname()[1]))
    assert "choose another --port" in said


@pytest.mark.parametrize("token", ["", "short", "fifteen-charact"])
def test_a_token_that_could_be_tried_out_is_refused(
    token: str, refused: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
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
