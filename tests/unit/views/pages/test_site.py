"""The pages of the dashboard, on a real database: what they show, and what their forms ask for."""

import gc
import html
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support import thoroughness

pytest.importorskip("starlette")

from starlette.routing import Route
from starlette.testclient import TestClient

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Request, StudyRecord, StudyState, Trial
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.views.pages.site import site_of
from support.studies.reported import (
    HOSTILE,
    SPACE,
    a_trial,
    hostile,
    ordinary,
    ordinary_trials,
    save,
    spec_of,
)

FORM = "application/x-www-form-urlencoded"
NOW = (
    *("/", "/studies/1", "/studies/1/now", "/studies/1/report"),
    *("/studies/1/report?details", "/studies/1/trials"),
)
PAGES = (
    *NOW,
    "/studies/1/trials/3",
    "/studies/1/trials/3/now",
    "/studies/1/compare?trial=0&trial=3",
)


@pytest.fixture
def reading(sqlite_url: str) -> Iterator[TestClient]:
    """Asks a dashboard that only reads, on a database that a test fills."""
    Store.open(sqlite_url).close()
    with closing(Store.open(sqlite_url)) as store:
        yield TestClient(site_of(store, allow_changes=False))


@pytest.fixture
def running_url(sqlite_url: str, tmp_path: Path) -> str:
    """A database with the study flowers, which was interrupted."""
    trials = ordinary_trials(12)
    trials.append(a_trial(12, State.RUNNING, trials[0].params, 0.7))
    spec = spec_of("flowers", SPACE)
    state = StudyState.INTERRUPTED
    save(sqlite_url, "flowers", trials, spec, state=state, base=str(tmp_path))
    return sqlite_url


@pytest.fixture
def changing(running_url: str) -> Iterator[TestClient]:
    """Asks a dashboard that may change the study flowers."""
    with closing(Store.open(running_url)) as store:
        yield TestClient(site_of(store, allow_changes=True), follow_redirects=False)
    gc.collect()  # what is left open is known to be, while the test's own filter holds


def token_in(page: str) -> str:
    """What the forms of a page send."""
    found = re.search(r'name="form_token" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def asked_of(url: str) -> list[Request]:
    """What was asked of the study flowers."""
    with closing(Store.open(url)) as store:
        return store.waiting(store.find_study("flowers").id)


# ------------------------------------------------------------------------------------------ reading


def test_every_page_of_a_study_says_what_it_is_about(database_url):
    ordinary(database_url)
    with closing(Store.open(database_url)) as store:
        reading = TestClient(site_of(store, allow_changes=False))
        for path in PAGES:
            answer = reading.get(path)
            assert answer.status_code == 200, path
            assert '<form method="post"' not in answer.text, "it only reads"
        assert "flowers" in reading.get("/").text
        assert "mean of 3 trainings</h2>" in reading.get("/studies/1/report").text
        details = reading.get("/studies/1/report?details").text
        assert "trained with other seeds 3 times more" in details
        assert "learning_rate" in reading.get("/studies/1/trials/3").text


@pytest.mark.parametrize("path", PAGES)
def test_what_others_wrote_is_text(path, reading, sqlite_url):
    hostile(sqlite_url)
    answer = reading.get(path)
    assert answer.status_code == 200
    for each in HOSTILE:
        assert each not in answer.text
    assert "<script>" not in answer.text
    assert 'onerror="' not in answer.text


def test_scripts_are_files_trials_are_selected_and_the_revision_tells_that_a_study_has_changed(
    reading, sqlite_url
):
    ordinary(sqlite_url)
    page = reading.get("/studies/1").text
    found = re.findall(r'(?:src|href)="(/files/[^"]+)"', page)
    assert len(found) == 5
    for address in found:
        answer = reading.get(address)
        assert answer.status_code == 200
    inline = re.findall(r"<script(?![^>]*src=)[^>]*>", page)
    assert all('type="application/json"' in each for each in inline)
    page = reading.get("/studies/1/trials?where=number%20%3C%205&sort=number%20desc").text
    assert re.findall(r'aria-label="Compare trial (\d+)"', page) == ["4", "3", "2", "1", "0"]
    before = reading.get("/studies/1/revision").json()["revision"]
    report = reading.get("/studies/1/report").text
    assert reading.get("/studies/1/report").text == report, "made once"
    with closing(Store.open(sqlite_url)) as store:
        trial = a_trial(60, State.COMPLETE, ordinary_trials(1)[0].params, 0.99)
        store.commit(1, Changes(trials=[trial], reports=list(trial.reports.values())))
    assert reading.get("/studies/1/revision").json()["revision"] > before
    assert "0.99" in reading.get("/studies/1/report").text


def test_a_database_without_studies_says_how_to_make_one(reading):
    assert "There is no study in this database yet" in reading.get("/").text


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("/studies/9", 404, "no study"),
        ("/studies/9/revision", 404, "no study"),
        (f"/studies/{10**30}", 404, "no page"),
        (f"/studies/{'1' * 4999}", 404, "no page"),
        ("/studies/1/trials/99", 404, "has no trial 99"),
        (f"/studies/1/trials/{10**30}", 404, "no page"),
        ("/studies/1/compare?trial=1", 400, "Choose 2 to 6 trials"),
        ("/studies/1/compare?trial=1&trial=x", 400, "whole numbers"),
        ("/studies/1/compare?trial=1&trial=99", 404, "has no trial 99"),
        ("/studies/1/trials?where=nothing%20%3C%201", 400, "nothing"),
        ("/studies/1/trials?sort=nothing", 400, "nothing"),
        ("/studies/1/trials?page=x", 400, "whole numbers"),
        ("/nowhere", 404, "no page /nowhere"),
        ("/files/secret", 404, "no page"),
    ],
)
def test_what_is_not_there_is_said_on_a_page(path, code, said, reading, sqlite_url):
    ordinary(sqlite_url)
    answer = reading.get(path)
    assert answer.status_code == code
    assert said in answer.text
    assert '<a href="/">' in answer.text


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/studies/1/trials?filter=number+%3C+1", "takes no 'filter' in its address"),
        ("/studies/1/trials?wher=number+%3C+1", "did you mean where?"),
        ("/studies/1/trials?where=number+%3C+1&where=number+%3E+1", "has where twice"),
        ("/studies/1/compare?trial=0&trial=3&metric=loss", "takes no 'metric'"),
        ("/studies/1?detail", "takes no 'detail'"),
        ("/?study=1", "it takes none"),
    ],
)
def test_a_field_that_a_page_does_not_read_is_refused(path, said, reading, sqlite_url):
    ordinary(sqlite_url)
    answer = reading.get(path)
    assert (answer.status_code, html.unescape(answer.text).count(said)) == (400, 1)


def test_many_trials_come_in_pages(reading, sqlite_url):
    with closing(Store.open(sqlite_url)) as store:
        study = store.create_study(StudyRecord(0, "long", "", ("maximize",)))
        trials = [Trial(n, State.COMPLETE, {"x": n}, value=n / 250) for n in range(250)]
        store.commit(study.id, Changes(trials=trials))
    first, last = (reading.get(f"/studies/1/trials?page={n}").text for n in (0, 2))
    assert "Further in this order" in first
    assert "Further in this order" not in last
    assert re.findall(r'aria-label="Compare trial (\d+)"', last) == [
        str(n) for n in range(200, 250)
    ]


def test_a_trials_page_shows_the_end_of_its_log(reading, sqlite_url, tmp_path):
    save(
        sqlite_url,
        "flowers",
        ordinary_trials(3),
        spec_of("flowers", SPACE),
        checkpoints=str(tmp_path),
    )
    log = tmp_path / "logs" / "trial-00002-attempt-1.log"
    log.parent.mkdir()
    log.write_text("early\n" + "x" * 20_000 + "\n\x1b[31m<b>the end</b>\n")
    page = reading.get("/studies/1/trials/2").text
    assert "\\x1b[31m&lt;b&gt;the end&lt;/b&gt;" in page
    assert "early" not in page


# ----------------------------------------------------------------------------------------- changing


def test_a_form_becomes_a_request_that_says_where_it_comes_from(changing, running_url):
    token = token_in(changing.get("/studies/1").text)
    form = {"form_token": token, "parameter:learning_rate": "0.001", "parameter:optimizer": "lion"}
    answer = changing.post("/studies/1/propose", data={**form, "why": "<b>a hunch</b>"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/studies/1?asked=1")
    changing.post("/studies/1/trials/12/stop", data={"form_token": token})
    changing.post("/studies/1/budget", data={"form_token": token, "trials": "80"})
    tried, stopped, raised = asked_of(running_url)
    assert tried.kind is RequestKind.PROPOSE
    assert tried.content["params"] == {"learning_rate": 0.001, "optimizer": "lion"}
    assert (stopped.kind, stopped.content) == (RequestKind.STOP, {"trial": 12})
    assert (raised.kind, raised.content) == (RequestKind.BUDGET, {"trials": 80})
    assert {each.origin for each in (tried, stopped, raised)} == {"dashboard at testclient"}
    page = changing.get("/studies/1?asked=1").text
    assert "Nobody drives it now" in page
    assert "waits for the driver" in page
    assert "&lt;b&gt;a hunch" in page


def test_a_clone_begins_with_the_settings_of_its_trial(changing):
    page = changing.get("/studies/1/trials/3").text
    params = ordinary_trials(4)[3].params
    assert f'name="parameter:learning_rate" value="{params["learning_rate"]}"' in page
    chosen = re.search(r"selected>(\w+)</option>", page)
    assert chosen is not None
    assert chosen[1] == params["optimizer"]


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("propose", {}, "no parameter is given"),
        ("propose", {"parameter:learning_rate": "7"}, "learning_rate"),
        ("propose", {"parameter:learning_rate": "<i>"}, "must be a number"),
        ("propose", {"parameter:optimizer": "adamx"}, "optimizer"),
        ("propose", {"parameter:layer": "2"}, "no parameter is given"),
        ("budget", {}, "no limit is given"),
        ("budget", {"trial": "20"}, "no limit is given"),
        ("stop", {}, "nobody drives study flowers"),
    ],
)
def test_what_cannot_be_is_said_on_the_page_of_the_form(path, form, said, changing, running_url):
    token = token_in(changing.get("/studies/1").text)
    answer = changing.post(f"/studies/1/{path}", data={"form_token": token, **form})
    assert answer.status_code == 400
    assert "Nothing was asked of the study" in answer.text
    assert said in answer.text
    assert "<i>" not in answer.text
    assert not asked_of(running_url)


@pytest.mark.parametrize("token", ["", "guessed", "ü"])
def test_a_form_that_is_not_of_our_pages_is_refused(token, changing, running_url):
    answer = changing.post("/studies/1/trials/12/stop", data={"form_token": token})
    assert answer.status_code == 403
    assert not asked_of(running_url)


def test_a_form_that_is_too_large_is_refused(changing, running_url):
    token = token_in(changing.get("/studies/1").text)
    form = {"form_token": token, "why": "x" * 2_000_000, "parameter:layers": "2"}
    assert changing.post("/studies/1/propose", data=form).status_code == 413
    assert not asked_of(running_url)


def test_a_study_that_has_ended_has_no_forms(sqlite_url):
    ordinary(sqlite_url)
    with closing(Store.open(sqlite_url)) as store:
        page = TestClient(site_of(store, allow_changes=True)).get("/studies/1").text
    assert "The study has ended" in page
    assert 'method="post"' not in page


def test_a_study_that_is_driven_can_be_stopped(changing, running_url):
    with closing(Store.open(running_url)) as store:
        lease = store.acquire(1, "somewhere:1:x", 1e5)
        token = token_in(changing.get("/studies/1").text)
        answer = changing.post("/studies/1/stop", data={"form_token": token})
        assert answer.headers["location"] == "/studies/1?asked=stop"
        with store.reading() as connection:
            assert find_study(connection, "flowers").stop_requested
        store.release(lease)


def test_without_leave_there_is_nothing_to_send_a_form_to(reading, running_url):
    for path in ("stop", "budget", "propose", "trials/12/stop"):
        assert reading.post(f"/studies/1/{path}").status_code in (404, 405)


# --------------------------------------------------------------------------------------- odd values

ODD = st.one_of(
    st.sampled_from(
        [
            *("0", "12", "-1", "²", "\u0663", "1" * 4999, str(2**31), str(2**63), "1e400", "nan"),
            *("", "\0", "\udcff", "..", "<i>", "9" * 400 + "h", "x" * 5000, "(" * 2000, "0x10"),
        ]
    ),
    st.text(max_size=8),
)


def encoded(text: str) -> str:
    """As an address or a form has it, UTF-8 or not."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


@given(data=st.data())
@settings(max_examples=thoroughness.examples(300))
def test_no_request_is_answered_with_an_error_of_ours(data, changing):
    token = token_in(changing.get("/studies/1").text)
    routes = [each for each in changing.app.routes if isinstance(each, Route)]  # type: ignore[attr-defined]
    route = data.draw(st.sampled_from(routes))
    number = st.one_of(st.sampled_from(["1", "12"]), ODD)
    path = re.sub(r"\{[^}]*\}", lambda _: encoded(data.draw(number)), route.path)
    fields = st.sampled_from(
        [
            *("where", "sort", "page", "trial", "asked", "like", "why", "trials"),
            *("gpu_hours", "cost", "wall_clock", "parameter:learning_rate", "parameter:layers"),
            *("parameter:optimizer", "form_token"),
        ]
    )
    pairs = data.draw(st.lists(st.tuples(fields, ODD), max_size=4))
    text = "&".join(f"{encoded(name)}={encoded(value)}" for name, value in pairs)
    headers = [
        (name, data.draw(st.binary(max_size=20)))
        for name in data.draw(st.lists(st.sampled_from([b"cookie", b"origin", b"range"])))
    ]
    kind = data.draw(st.sampled_from([FORM, f"{FORM}; charset=x", "multipart/form-data", ""]))
    method = "POST" if route.methods is not None and "POST" in route.methods else "GET"
    body = f"form_token={token}&{text}" if method == "POST" else None
    changing.request(
        method, f"{path}?{text}", headers=[*headers, (b"content-type", kind.encode())], content=body
    )  # an error of ours is raised here
