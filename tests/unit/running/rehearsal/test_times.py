"""The times of a first trial, by its reports and the first reports of others."""

import pytest

from hpsearch.domain import events as ev
from hpsearch.running.executors.first_report import Tried
from hpsearch.running.rehearsal.first_trial import _measured

FIRST = ev.Reported(0, 1, 1.0, {"loss": 1.0}, elapsed=70.0)


def measured(reports: dict[float, float], others: tuple[float, ...] = ()) -> dict[str, float]:
    return _measured(FIRST, Tried(FIRST, seconds=75.0, trained_s=reports), others)


def test_reports_at_irregular_steps_tell_the_start_from_the_pace():
    found = measured({1.0: 70.0, 2.0: 80.0, 5.0: 140.0})
    assert found["pace"] == pytest.approx(17.5)
    assert (found["least_pace"], found["most_pace"]) == (10.0, 20.0)
    assert found["start_up_seconds"] == pytest.approx(52.5)
    assert found["process_seconds"] == 5.0


def test_one_report_alone_is_taken_for_training():
    found = measured({1.0: 70.0})
    assert (found["pace"], found["start_up_seconds"]) == (70.0, 0.0)


def test_other_configurations_that_take_longer_count_and_chance_does_not():
    found = measured({1.0: 70.0, 2.0: 80.0}, others=(71.0, 110.0))
    assert found["start_up_seconds"] == 60.0
    assert (found["own_pace"], found["pace"], found["most_pace"]) == (10.0, 30.0, 50.0)
