"""A trial's record beside its repetition."""

from typing import Any

import pytest

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment
from hpsearch.running.reproduction import (
    Comparison,
    RecordedTraining,
    Repeated,
    recorded_training,
)
from hpsearch.store.reading.attempts import changes
from hpsearch.store.reading.queries import TrialDetail, TrialRow
from trials.contract import Report


def attempt(start: float, trained: bool = True) -> dict[str, Any]:
    return {"start_resource": start, "arithmetic": {"threads": 1} if trained else None}


def detail_of(state: State, starts: list[dict[str, Any]], **more: Any) -> TrialDetail:
    reports = [{"resource": at, "metrics": {"loss": at}} for at in (1.0, 2.0, 3.0)]
    return TrialDetail(TrialRow(0, state, {}, **more), reports, starts, [], [])


@pytest.mark.parametrize(
    ("starts", "parts"),
    [
        ([attempt(0.0), attempt(1.0), attempt(2.0)], (0.0, 1.0, 2.0)),
        ([attempt(0.0), attempt(2.0), attempt(1.0)], (0.0, 1.0)),
        ([attempt(0.0), attempt(1.0), attempt(0.0)], (0.0,)),
        ([attempt(0.0, trained=False), attempt(0.0), attempt(2.0, trained=False)], (0.0,)),
    ],
)
def test_what_was_trained_in_vain_is_not_repeated(starts, parts):
    assert recorded_training(detail_of(State.COMPLETE, starts)).parts == parts


def test_a_failure_of_the_machine_is_not_asked_for():
    lost = detail_of(State.FAILED, [attempt(0.0)], error_kind=ErrorKind.LOST, error_text="gone")
    course = recorded_training(lost)
    assert (course.error, course.must_end, course.end) == (None, False, 3.0)


def test_a_trial_that_ends_earlier_or_later_is_different():
    reports = {1.0: {"a": 1.0}, 2.0: {"a": float("nan")}}
    recorded = RecordedTraining((0.0,), 2.0, reports, True, None)
    same = Comparison(recorded)
    same.add(Report(1.0, {"a": 1.0, "eval_runtime": 3.0}))
    same.add(Report(2.0, {"a": float("nan")}))
    same.end(Repeated(finished="stopped early"))
    assert same.difference is None
    longer = Comparison(recorded)
    for resource, value in ((1.0, 1.0), (2.0, float("nan"))):
        longer.add(Report(resource, {"a": value}))
    longer.end(Repeated())
    ending = "in its end: the trial ended here by itself, and this did not"
    assert longer.difference == ending
    shorter = Comparison(recorded)
    shorter.add(Report(1.0, {"a": 1.0}))
    shorter.end(Repeated(finished="stopped early"))
    assert shorter.difference == "at 2: it was not reported this time"


def test_a_thinned_trial_is_compared_at_the_reports_that_stayed():
    reports = {1.0: {"a": 1.0}, 3.0: {"a": 3.0}}
    recorded = RecordedTraining((0.0,), 3.0, reports, True, None, thinned=True)
    found = Comparison(recorded)
    for resource in (1.0, 2.0, 3.0):
        found.add(Report(resource, {"a": resource}))
    found.end(Repeated(finished="stopped early"))
    assert (found.difference, found.reports) == (None, 2)
    found.add(Report(4.0, {"a": 4.0}))
    assert found.difference == "at 4: the trial had ended before"


def test_the_first_difference_names_its_metric():
    recorded = RecordedTraining((0.0,), 1.0, {1.0: dict.fromkeys("abcde", 1.0)}, True, None)
    found = Comparison(recorded)
    found.add(Report(1.0, dict.fromkeys("abcd", 2.0)))
    assert found.difference == "at 1: a 2.0 instead of 1.0"


def test_what_is_not_as_it_was_is_named():
    packages = {"hpsearch": "0.1", "python": "3.11.1", "torch": "2.0"}
    before = Environment(1.0, "abc", packages, "CPU", "f" * 64)
    now = Environment(2.0, "abd", {**packages, "python": "3.12.1"}, "CPU", "e" * 64)
    assert changes(before, now) == [
        "the files that the task names, or what these import, have changed",
        "the code is of git revision abd instead of abc",
        "python 3.12.1 instead of 3.11.1",
    ]
    assert changes(before, before) == []
