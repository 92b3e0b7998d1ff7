"""What was asked of a study as a whole, wherever people and programs look for it."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Request, StudyState, Trial
from hpsearch.store.store import Store

SPEC = """
study: flowers
task: {kind: "flowers:train"}
space: {x: {type: float, low: 0, high: 1}}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 3}}
"""
HOSTILE = "<img src=x onerror=alert(1)>|`\x1b[31m"


@pytest.fixture
def flowers(save, sqlite_url):
    """A study that somebody with a hostile name has asked for more trials, and then to stop."""
    save("flowers", [Trial(0, State.COMPLETE, {"x": 0.5}, value=0.9, resource=3.0)], SPEC)
    with closing(Store.open(sqlite_url)) as store:
        study = store.find_study("flowers")
        study.state = StudyState.INTERRUPTED
        store.add_request("flowers", Request(0, RequestKind.BUDGET, {"trials": 9}, HOSTILE, 100.0))
        store.add_request(
            "flowers", Request(0, RequestKind.PROPOSE, {"params": {"x": 7}}, HOSTILE, 101.0)
        )
        more, refused = store.waiting(study.id)
        more.handled, refused.handled, refused.refused = 102.0, 103.0, f"x: {HOSTILE}"
        store.commit(study.id, Changes(study=study, requests=[more, refused]))
        store.request_stop("flowers", "ann@desk")
    return "flowers"


def test_status_shows_who_asked_for_what_and_what_came_of_it(run, flowers):
    said = run("status", flowers).out
    assert "asked while it ran" in said
    assert "raise trials to 9" in said
    assert "stop the study" in said
    assert "\x1b[31m" not in said
    found = json.loads(run("status", flowers, "--format", "json").out)["requests"]
    assert [each["asked"] for each in found] == ["raise trials to 9", "try x=7", "stop the study"]
    assert [each["handled"] for each in found] == [102.0, 103.0, None]
    assert found[0]["origin"] == HOSTILE
    assert found[1]["refused"] == f"x: {HOSTILE}"
    assert found[2]["kind"] == "interrupt"


def test_the_report_shows_it_as_text(run, flowers, tmp_path):
    for name, told in (("report.md", "## What was asked"), ("report.html", ">What was asked")):
        page = tmp_path / name
        assert run("report", flowers, "-o", str(page)).code == 0
        said = page.read_text()
        assert told in said
        assert "raise trials to 9" in said
        assert "\x1b" not in said
        if name.endswith("html"):
            assert "<img" not in said


def test_a_study_that_nothing_was_asked_of_shows_nothing(run, save):
    save(
        "trees", [Trial(0, State.COMPLETE, {"x": 0.5}, value=0.9)], SPEC.replace("flowers", "trees")
    )
    assert "asked while" not in run("status", "trees").out
    assert "What was asked" not in run("report", "trees").out
