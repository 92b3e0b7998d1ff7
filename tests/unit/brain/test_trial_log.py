"""What the brain writes down about a trial, and what it does not write again."""

import math

import pytest

from hpsearch.brain.trial_log import TrialLog
from hpsearch.domain.events import Noted
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyRecord, Trial


def expecting(trial: Trial, value: float | None, deviation: float | None) -> bool:
    """Note an expectation, and tell whether the trial is written for it."""
    history = History(StudyRecord(1, "s", ""), [trial])
    TrialLog(history).note_expected(trial, value, deviation)
    touched = bool(history.drain().trials)
    changed = history.changed_since(1)[1] == [trial.number]
    assert changed is touched, "readers and the store see the same"
    return touched


def paused(expected: float | None = None, deviation: float | None = None) -> Trial:
    return Trial(0, State.PAUSED, {}, value=0.5, expected=expected, expected_deviation=deviation)


def test_an_expectation_is_written_where_it_is_new_and_may_have_no_known_deviation():
    trial = paused()
    assert expecting(trial, 0.4, 0.1)
    assert (trial.expected, trial.expected_deviation) == (0.4, 0.1)
    assert expecting(trial, 0.4, math.inf)
    assert (trial.expected, trial.expected_deviation) == (0.4, None)


@pytest.mark.parametrize(
    ("value", "deviation", "is_written"),
    [
        (0.4, 0.1, False),
        (0.4 * (1 + 5e-7), 0.1 * (1 - 5e-7), False),
        (0.4 * (1 + 2e-6), 0.1, True),
        (0.4, 0.1 * (1 - 2e-6), True),
        (-0.4, 0.1, True),
        (0.4, 0.0, True),
        (0.4, None, True),
        (None, None, True),
    ],
)
def test_only_a_change_of_more_than_a_millionth_is_written(value, deviation, is_written):
    trial = paused(0.4, 0.1)
    assert expecting(trial, value, deviation) is is_written
    stands = (value, deviation) if is_written else (0.4, 0.1)
    assert (trial.expected, trial.expected_deviation) == stands


def test_small_changes_do_not_add_up_unseen():
    trial, value = paused(1.0, 0.1), 1.0
    written = 0
    for _ in range(100):
        value *= 1 + 1e-7
        written += expecting(trial, value, 0.1)
    assert 5 <= written <= 10
    assert trial.expected == pytest.approx(value, rel=1.1e-6)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_not_expected(value):
    trial = paused(0.4, 0.1)
    assert expecting(trial, value, 0.1)
    assert (trial.expected, trial.expected_deviation) == (None, None)
    assert not expecting(trial, value, 0.1)


def test_what_a_trial_notes_is_its_own():
    first, second = Trial(0, State.RUNNING, {}), Trial(1, State.RUNNING, {})
    log = TrialLog(History(StudyRecord(1, "s", ""), [first, second]))
    log.note(first, Noted(0, 1, {"team": "vision"}, {"size": 2.0}, {}))
    assert (first.user_attrs, first.violation) == ({"team": "vision"}, 2.0)
    assert (second.user_attrs, second.system_attrs) == ({}, {}), "trials share what is empty"
    assert Trial(2, State.QUEUED, {}).user_attrs == {}
