"""The live state of a study: what was touched, for the store and for readers."""

from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Attempt, Decision, ReportRecord, StudyRecord, Trial


def history_of(trials: int) -> History:
    return History(
        StudyRecord(1, "a-study", ""), [Trial(n, State.RUNNING, {}) for n in range(trials)]
    )


def test_a_drain_hands_over_what_was_touched_once():
    history = history_of(2)
    assert not history.drain()
    history.touch(history.trials[1])
    history.touch(history.trials[1])
    history.add_attempt(Attempt(0, 1, "w", 0.0))
    history.add_report(ReportRecord(0, 1.0, None, {}))
    history.add_decision(Decision(0, DecisionKind.START, "its turn"))
    changes = history.drain()
    assert [trial.number for trial in changes.trials] == [1]
    assert (len(changes.attempts), len(changes.reports), len(changes.decisions)) == (1, 1, 1)
    assert changes.study is None
    assert not history.drain()


def test_readers_learn_of_each_changed_trial_once_and_of_all_at_first():
    history = history_of(3)
    clock, changed = history.changed_since(0)
    assert sorted(changed) == [0, 1, 2]
    history.touch(history.trials[2])
    history.add_report(ReportRecord(0, 1.0, None, {}))
    history.touch(history.trials[2])
    later, changed = history.changed_since(clock)
    assert sorted(changed) == [0, 2]
    assert history.changed_since(later) == (later, [])
    assert sorted(history.changed_since(clock)[1]) == [0, 2], "another reader has its own clock"


def test_a_replaced_trial_is_news_to_readers_and_nothing_to_write():
    history = history_of(1)
    clock, _ = history.changed_since(0)
    history.replace(Trial(0, State.COMPLETE, {}))
    history.replace(Trial(1, State.RUNNING, {}))
    assert sorted(history.changed_since(clock)[1]) == [0, 1]
    assert [trial.state for trial in history.trials] == [State.COMPLETE, State.RUNNING]
    assert not history.drain()
