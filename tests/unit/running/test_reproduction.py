"""A trial's record beside another training of it."""

import math
from dataclasses import replace

from hpsearch.domain.records import Environment
from hpsearch.running.reproduction import Comparison
from hpsearch.store.reading.attempts import changes
from trials.contract import Report

RECORDED = {1.0: {"a": 1.0}, 2.0: {"a": math.nan}}


def compared(*reports: Report, ended: bool = True) -> Comparison:
    """The comparison of a training that has made these reports and ended."""
    comparison = Comparison(RECORDED, ended=ended)
    for report in reports:
        comparison.add(report)
    comparison.end()
    return comparison


FIRST, SECOND = Report(1.0, {"a": 1.0, "eval_runtime": 3.0}), Report(2.0, {"a": math.nan})


def test_equal_reports_are_the_same_whatever_time_they_took():
    found = compared(FIRST, SECOND)
    assert (found.difference, found.same) == (None, 2)


def test_the_first_difference_is_told_with_its_metric_and_both_values():
    found = compared(Report(1.0, {"a": 1.0000000000000002}), Report(2.0, {"a": 5.0}))
    assert found.difference == "at 1: a 1.0000000000000002, on record 1.0"
    assert compared(FIRST, Report(2.0, {})).difference == "at 2: a missing, on record nan"
    more = Report(1.0, {"a": 1.0, "b": 2.0})
    assert compared(more, SECOND).difference == "at 1: b 2.0, on record missing"


def test_a_training_that_ends_earlier_or_later_is_different():
    assert compared(FIRST).difference == "at 2: it was not reported this time"
    third = Report(3.0, {"a": 3.0})
    assert compared(FIRST, SECOND, third).difference == "at 3: the trial had ended before"
    between = Report(1.5, {"a": 1.0})
    assert compared(FIRST, between, SECOND).difference == "at 1.5: the trial has no report there"


def test_a_training_goes_on_where_its_trial_was_stopped():
    found = compared(FIRST, SECOND, Report(3.0, {"a": 3.0}), ended=False)
    assert (found.difference, found.same) == (None, 2)


def test_a_training_that_was_continued_is_compared_from_there():
    found = compared(SECOND)
    assert (found.difference, found.same) == (None, 1)


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
    before = Environment(1.0, None, {}, "CPU", "f" * 64, {"train.py": "a", "x.csv": "b"})
    now = Environment(1.0, None, {}, "CPU", "e" * 64, {"train.py": "c", "more.py": "d"})
    assert changes(before, now) == ["more.py, train.py, x.csv have changed"]
    assert changes(before, replace(before, files={"x.csv": "b"})) == ["train.py has changed"]
