"""The times of a first trial, by its reports and those of others."""

import pytest

from hpsearch.domain import events as ev
from hpsearch.running.executors.first_report import Tried
from hpsearch.running.rehearsal import first_trial
from hpsearch.running.rehearsal.other_values import slowness_of

FIRST = ev.Reported(0, 1, 1.0, {"loss": 1.0}, elapsed=70.0)


def tried(reports: dict[float, float]) -> Tried:
    return Tried(FIRST, seconds=75.0, trained_s=reports)


def measured(reports: dict[float, float], others: tuple[float, ...] = ()) -> dict[str, float]:
    return first_trial.measured(FIRST, tried(reports), others)


def test_reports_at_irregular_steps_tell_the_start_from_the_pace():
    found = measured({1.0: 70.0, 2.0: 80.0, 5.0: 140.0})
    assert found["pace"] == pytest.approx(17.5)
    assert (found["least_pace"], found["most_pace"]) == (10.0, 20.0)
    assert found["start_up_seconds"] == pytest.approx(52.5)
    assert found["process_seconds"] == 5.0


def test_one_report_alone_is_taken_for_training():
    found = measured({1.0: 70.0})
    assert (found["pace"], found["start_up_seconds"]) == (70.0, 0.0)


def test_another_configuration_counts_as_much_as_the_first():
    found = measured({1.0: 70.0, 2.0: 80.0}, others=(3.0,))
    assert found["start_up_seconds"] == 60.0
    assert (found["own_pace"], found["pace"]) == (10.0, 20.0)
    assert (found["least_pace"], found["most_pace"]) == (10.0, 30.0)


def test_two_reports_tell_how_much_slower_another_configuration_is_whatever_its_start_takes():
    first = tried({1.0: 70.0, 2.0: 80.0})
    assert slowness_of(tried({1.0: 75.0, 2.0: 95.0, 3.0: 99.0}), first) == 2.0
    assert slowness_of(tried({1.0: 35.0}), first) == 0.5
