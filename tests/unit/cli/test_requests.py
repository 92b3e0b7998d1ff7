"""Requests to a study while it runs: how they are made, and where people and programs see them."""

import json
from contextlib import closing

import pytest

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Request, StudyState, Trial
from hpsearch.running.study_run import requests
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


SPACE = """
space:
  kind: {type: categorical, choices: [plain, deep]}
  depth: {type: int, low: 1, high: 9, when: {kind: deep}}
"""
PLAIN = """
study: flowers
task: {kind: "flowers:train"}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 3}}
"""


@pytest.fixture
def waiting(save, sqlite_url):
    """A study that was interrupted, with one trial; gives what is asked of it."""
    save("flowers", [Trial(0, State.PAUSED, {"kind": "deep", "depth": 3})], PLAIN + SPACE)
    with closing(Store.open(sqlite_url)) as store:
        study = store.find_study("flowers")
        study.state = StudyState.INTERRUPTED
        store.commit(study.id, Changes(study=study))
        yield lambda: store.waiting(study.id)


def test_what_is_like_another_trial_is_checked_with_its_parameters(run, waiting):
    said = run("enqueue", "flowers", "depth=7", "--like", "0", "--why", "deeper")
    assert said.code == 0, said.err
    assert "the next one sees to it" in said.err
    (asked,) = waiting()
    assert asked.content == {"params": {"kind": "deep", "depth": 7}, "why": "deeper"}


def test_mistakes_are_told_before_anything_is_asked(run, waiting):
    for words, what in (
        (("depth=77", "--like", "0"), "depth: must be from 1 to 9, not 77"),
        (("depth",), "'depth' is not NAME=VALUE"),
        (("kind=deep, kind=plain",), "kind appears twice"),
        ((), "there is nothing to try"),
        (("kind=deep", "--like", "9"), "has no trial 9"),
        (("--patch", ""), "no change is named"),
        (("--revision", ""), "no change is named"),
        (("--patch", "", "--revision", "HEAD"), "give --patch or --revision alone"),
    ):
        said = run("enqueue", "flowers", *words)
        assert said.code == 2, words
        assert what in said.err
        assert "--enqueue" not in said.err
    assert waiting() == []


def test_a_study_that_runs_is_asked_for_more_budget_and_nothing_else_changes(
    run, waiting, sqlite_url, monkeypatch
):
    monkeypatch.setattr(requests, "WAIT_S", 0.0)
    with closing(Store.open(sqlite_url)) as store:
        store.acquire(store.find_study("flowers").id, "somebody", 1e6)
        said = run("resume", "flowers", "--trials", "9", "--gpu-hours", "2")
        assert said.code == 0, said.err
        assert "has not answered yet" in said.err
        (asked,) = waiting()
        assert asked.content == {"trials": 9, "gpu_hours": 2.0}
        said = run("resume", "flowers", "--trials", "9", "--workers", "2")
        assert "is driven by somebody" in said.err
        assert said.code == 4
        assert len(waiting()) == 1
