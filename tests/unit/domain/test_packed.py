"""Reports that are packed read as those that were given."""

import math
import sys

import pytest

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.packed import PackedReports, packed
from hpsearch.domain.records import ReportRecord, StudyRecord, Trial


def reports(*found: ReportRecord) -> dict[float, ReportRecord]:
    return {report.resource: report for report in found}


def test_packed_reports_read_as_before() -> None:
    given = reports(
        ReportRecord(3, 2.0, 0.5, {"b": 0.5, "a": 1.5}, 2, 2**53, 7.5, 1e9),
        ReportRecord(3, 1.0, None, {"b": -math.inf, "a": 2.0}),
    )
    found = packed(given)
    assert isinstance(found, PackedReports)
    assert list(found) == [1.0, 2.0], "by resource, as they are loaded"
    assert found == given
    assert list(found[2.0].metrics) == ["b", "a"]
    assert type(found[2.0].step) is int
    assert 1.5 not in found
    assert found.get(9.0) is None
    assert math.isnan(
        packed(reports(ReportRecord(0, 1.0, None, {"a": math.nan})))[1.0].metrics["a"]
    )


@pytest.mark.parametrize(
    "report",
    [
        ReportRecord(3, 2.0, 0.5, {"a": 1}),
        ReportRecord(3, 2.0, 0.5, {"other": 1.0}),
        ReportRecord(3, 2.0, 0.5, {"a": 1.0}, step=2**53 + 1),
    ],
)
def test_what_floats_cannot_hold_stays_as_it_is(report: ReportRecord) -> None:
    given = reports(ReportRecord(3, 1.0, 0.5, {"a": 1.0}), report)
    assert packed(given) is given
    assert packed({}) == {}


def test_reports_are_packed_when_their_trial_has_ended_and_a_later_one_is_added() -> None:
    history = History(StudyRecord(0, "s", ""))
    trial = history.add_trial(Trial(0, State.RUNNING, {}))
    history.add_report(ReportRecord(0, 1.0, 0.5, {"a": 1.0}))
    history.drain()
    assert isinstance(trial.reports, dict)
    trial.state = State.COMPLETE
    history.touch(trial)
    history.drain()
    assert isinstance(trial.reports, PackedReports)
    later = ReportRecord(0, 1.0, 0.5, {"a": 1.0, "late": 2.0})
    history.add_report(later)
    assert history.drain().reports == [later]
    assert trial.reports[1.0] == later


def test_a_further_report_takes_a_double_for_each_thing_that_it_says() -> None:
    many = {}
    for at in range(1, 1001):
        many[float(at)] = ReportRecord(0, float(at), 0.5, {"a": 1.0, "b": 2.0})
    found = packed(many)
    assert isinstance(found, PackedReports)
    assert sys.getsizeof(found._cells) < 1000 * 8 * 8 + 100
