"""`hpsearch dashboard` as a person starts it: its pages and Optuna's dashboard answer from our
database, to those who may ask."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPResponse
from urllib.parse import quote, urlsplit

import pytest

import pages
from dashboards import served
from hpsearch.cli.main import main
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial
from hpsearch.store.store import Store

pytest.importorskip("optuna_dashboard")


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
    assert f"--host {host}: no address is known for that name" in said
    assert "0.0.0.0" in said


def test_a_port_that_is_taken_is_refused(refused: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = refused("--port", str(taken.getsockname()[1]))
    assert "choose another with --port" in said


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
