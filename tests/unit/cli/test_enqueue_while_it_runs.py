"""`hpsearch enqueue` and `hpsearch resume --trials`: requests to a study that runs elsewhere."""

from __future__ import annotations

from contextlib import closing

import pytest

from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState, Trial
from hpsearch.running.study_run import requests
from hpsearch.store.store import Store

SPACE = """
space:
  kind: {type: categorical, choices: [plain, deep]}
  depth: {type: int, low: 1, high: 9, when: {kind: deep}}
"""
SPEC = """
study: flowers
task: {kind: "flowers:train"}
objective: {metric: accuracy, direction: maximize}
budget: {trials: 5, per_trial: {epochs: 3}}
"""


@pytest.fixture
def waiting(save, sqlite_url):
    """A study that was interrupted, with one trial; gives what is asked of it."""
    save("flowers", [Trial(0, State.PAUSED, {"kind": "deep", "depth": 3})], SPEC + SPACE)
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
