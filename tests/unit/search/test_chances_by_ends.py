"""The chances of paused trials, by what their rung has told of ends."""

import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.ends import MOST_ENDED, ChancesByEnds
from hpsearch.search.rungs import Rungs
from support.studies.small import history_for, spec_with

TOTAL = 9.0


class Shown:
    """Trials that have shown an error and a loss at 3 of 9 epochs, some of which have ended."""

    def __init__(self) -> None:
        self.history = history_for(spec_with())
        self.rungs = Rungs([3.0], TOTAL)
        self.chances = ChancesByEnds(self.rungs, self.history, TOTAL, ["loss"])

    def trial(self, error: float, loss: float | None = None, end: float | None = None) -> int:
        number = len(self.history.trials)
        self.history.add_trial(Trial(number, State.PAUSED, {"x": 0.5}))
        metrics = {"error": error} if loss is None else {"error": error, "loss": loss}
        self.history.add_report(ReportRecord(number, 3.0, error, metrics))
        self.rungs.enter(number, 3.0)
        self.rungs.rungs[0].record(number, error)
        self.rungs.rungs[0].waiting.add(number)
        if end is not None:
            self.rungs.promote(number)
            self.rungs.finish(number, end)
        return number

    def chance(self, number: int, given: float = 0.0) -> float:
        return self.chances.raised({number: given})[number]


def test_as_long_as_none_has_ended_nothing_is_added():
    shown = Shown()
    number = shown.trial(0.3)
    assert shown.chance(number, 0.02) == 0.02


def test_a_rung_that_all_complete_trials_have_passed_over_tells_nothing():
    shown = Shown()
    number = shown.trial(0.3)
    shown.rungs.finish(99, 0.1)
    assert shown.chance(number, 0.02) == 0.02


def test_the_greater_chance_counts():
    shown = Shown()
    shown.trial(0.1, end=0.1)
    paused = shown.trial(0.2)
    by_ends = shown.chance(paused)
    assert 0.0 < by_ends < 0.9
    assert shown.chance(paused, by_ends / 2) == by_ends
    assert shown.chance(paused, 0.9) == 0.9


def test_who_is_ahead_by_the_loss_alone_may_win_where_the_loss_has_told_of_ends():
    with_loss, without = Shown(), Shown()
    for error, loss, end in [(0.1, 4.0, 0.6), (0.2, 3.9, 0.5), (0.3, 3.5, 0.4), (0.4, 3.2, 0.3)]:
        with_loss.trial(error, loss, end)
        without.trial(error, end=end)
    ahead, behind = with_loss.trial(0.5, 2.5), with_loss.trial(0.5, 4.5)
    assert with_loss.chance(ahead) > 3 * with_loss.chance(behind)
    paused = without.trial(0.5), without.trial(0.5)
    assert without.chance(paused[0]) == pytest.approx(without.chance(paused[1]))


def test_a_trial_that_ends_or_arrives_changes_the_chances_of_the_others():
    shown = Shown()
    shown.trial(0.3, end=0.3)
    paused = shown.trial(0.2)
    before = shown.chance(paused)
    shown.trial(0.1, end=0.1)
    assert shown.chance(paused) < before


def test_a_loss_that_some_have_not_reported_does_not_count():
    shown = Shown()
    shown.trial(0.1, 1.0, end=0.1)
    shown.trial(0.3, end=0.3)
    ahead, behind = shown.trial(0.2, 0.5), shown.trial(0.2, 9.0)
    assert shown.chance(ahead) == pytest.approx(shown.chance(behind))


def test_of_many_that_have_ended_the_best_one_is_among_those_that_count():
    shown = Shown()
    for place in range(3 * MOST_ENDED):
        shown.trial(0.1 + 0.001 * place, end=0.1 + 0.001 * place)
    assert shown.chance(shown.trial(0.099)) > 0.2
    assert shown.chance(shown.trial(0.9)) < 0.01
