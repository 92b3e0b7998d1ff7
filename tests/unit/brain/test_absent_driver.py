"""Deadlines and charges of trials whose driver was away, or died."""

from typing import Any

import pytest

from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome
from support.studies.small import brain, spec_with


def begun(**changes: Any) -> Study:
    """One slot, which works on trial 0 since time 0."""
    study = brain(spec_with(**changes))
    study.begin(0.0)
    study.on_event(ev.SlotUp("w0", "node", "cpu", 1.0), 0.0)
    assert len(study.on_tick(0.0)) == 1
    return study


def test_a_trial_that_nobody_listened_to_is_not_taken_for_hung():
    study = begun(resources={"report_deadline": "60s"})
    study.driver_was_away(5000.0)
    assert study.on_tick(5059.0) == []
    assert study.on_tick(5061.0) == [ev.Stop(0, 1)]
    assert study.history.trials[0].error_text == "no report for 61 s (report_deadline is 60 s)"


def test_a_trial_that_nobody_listened_to_is_not_taken_for_late():
    study = begun(budget={"trials": 9, "per_trial": {"epochs": 9, "time_limit": "50s"}})
    study.driver_was_away(1000.0)
    assert study.on_tick(1050.0 + 29.0) == []
    assert study.on_tick(1050.0 + 31.0) == [ev.Stop(0, 1)]
    assert study.history.trials[0].error_text == "still running 31 s past its time limit of 50 s"


def test_an_attempt_is_charged_for_its_slot_also_while_nobody_listened():
    study = begun()
    study.driver_was_away(1000.0)
    study.on_event(ev.Finished(0, 1), 1010.0)
    assert study.history.trials[0].attempts[0].gpu_seconds == 1010.0


def test_how_fast_a_trial_trains_is_not_learnt_from_time_in_which_nobody_listened():
    study = begun()
    study.driver_was_away(1000.0)
    study.on_event(ev.Reported(0, 1, 0.5, {"loss": 1.0}), 1010.0)
    trial = study.history.trials[0]
    assert trial.speed is None, "it may have trained for 10 s, or for 1010 s"
    study.on_event(ev.Reported(0, 1, 0.75, {"loss": 1.0}), 3000.0)
    assert trial.speed == pytest.approx(0.75 / 2000.0)
    assert study.spending.paces.mean() == pytest.approx(2000.0 / 0.75)


def test_what_a_driver_with_another_clock_left_is_charged_by_that_clock():
    """Also where it was ahead of its successor's."""
    study = begun()
    again = brain(study.spec, study.history)
    again.begin(-3600.0, last_seen=25.0)
    attempt = study.history.trials[0].attempts[0]
    assert (attempt.outcome, attempt.ended) == (Outcome.INTERRUPTED, 25.0)
    assert attempt.gpu_seconds == 25.0


def test_what_a_silent_driver_left_is_charged_until_the_last_time_on_record():
    study = begun()
    study.on_event(ev.Reported(0, 1, 0.5, {"loss": 1.0}), 12.0)
    again = brain(study.spec, study.history)
    again.begin(54_000.0)
    trial = study.history.trials[0]
    assert (trial.state, trial.gpu_seconds) == (State.QUEUED, 12.0)


def test_an_attempt_that_began_after_its_driver_was_last_seen_costs_nothing():
    study = begun()
    again = brain(study.spec, study.history)
    again.begin(100.0, last_seen=-5.0)
    attempt = study.history.trials[0].attempts[0]
    assert (attempt.started, attempt.ended, attempt.gpu_seconds) == (0.0, 0.0, 0.0)


# --------------------------------------------------------------- what comes slowly, or at the end


def heard_until(study: Study, now: float) -> None:
    """The slot says that there is nothing to say."""
    study.on_event(ev.Answered("w0"), now)


def test_reports_that_come_slowly_after_a_nap_cost_no_trial():
    study = begun(resources={"report_deadline": "12s"})
    heard_until(study, 6.0)
    study.driver_was_away(20.0)
    assert study.on_tick(26.0) == []
    assert study.on_tick(90.0) == [], "its reports are on their way, for all that is known"
    study.on_event(ev.Reported(0, 1, 0.5, {"loss": 1.0}), 90.0)
    heard_until(study, 101.0)
    assert study.on_tick(101.0) == []
    heard_until(study, 103.0)
    assert study.on_tick(103.0) == [ev.Stop(0, 1)]
    assert study.history.trials[0].error_text == "no report for 13 s (report_deadline is 12 s)"


def test_an_attempt_that_ended_while_nobody_listened_is_charged_until_its_end():
    study = begun()
    study.on_event(ev.Reported(0, 1, 9.0, {"loss": 1.0}), 5.0)
    study.driver_was_away(1000.0)
    study.on_event(ev.Finished(0, 1, held_s=6.5), 1010.0)
    trial = study.history.trials[0]
    assert (trial.gpu_seconds, trial.ended) == (6.5, 6.5)
    assert study.spending.ledger.spent == 6.5


@pytest.mark.parametrize(
    "ending", [ev.Failed(0, 1, ErrorKind.DIVERGED, "nan", held_s=7.0), ev.Stopped(0, 1, held_s=7.0)]
)
def test_so_is_one_that_failed_or_stopped(ending):
    study = begun()
    study.on_event(ending, 1010.0)
    assert study.history.trials[0].gpu_seconds == 7.0


def test_no_attempt_ends_after_its_end_was_heard():
    study = begun()
    study.on_event(ev.Stopped(0, 1, held_s=7.0), 3.0)
    assert study.history.trials[0].gpu_seconds == 3.0
