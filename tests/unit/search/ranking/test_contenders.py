"""Which trials have learnt something, and which of the complete ones may be the best."""

import pytest

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, Trial
from hpsearch.search.ranking.contenders import Contenders


def complete(number: int, first: float, value: float) -> Trial:
    """A complete trial with its first value and its best one."""
    trial = Trial(number, State.COMPLETE, {}, value=value, resource=9.0)
    for resource, at in ((1.0, first), (9.0, value)):
        trial.reports[resource] = ReportRecord(number, resource, at, {"accuracy": at})
    return trial


def repeat(number: int, of: int, value: float) -> Trial:
    return Trial(
        number, State.COMPLETE, {}, value=value, resource=9.0, role=Role.CONFIRM, repeats=of
    )


def numbers(trials: list[Trial]) -> list[int]:
    return [trial.number for trial in trials]


def test_a_trial_that_never_leaves_the_majority_guess_is_no_leader():
    values = [0.5278, 0.5278, 0.5278, 0.74, 0.7]
    trials = [complete(number, 0.5278, value) for number, value in enumerate(values)]
    contenders = Contenders(trials, "maximize")
    assert [contenders.has_learnt(trial) for trial in trials] == [False, False, False, True, True]
    assert numbers(contenders.leaders(5)) == [3, 4]


def test_where_nobody_learns_there_is_no_leader():
    trials = [complete(number, 0.6931, 0.693) for number in range(4)]
    contenders = Contenders(trials, "minimize")
    assert contenders.best is None
    assert contenders.leaders(2) == []


@pytest.mark.parametrize(
    "firsts",
    [(0.90, 0.91, 0.92, 0.93, 0.94), (0.95, 0.95, 0.95, 0.60, 0.70), (0.95, 0.95)],
    ids=["all differ", "many begin worse", "too few"],
)
def test_a_value_that_was_learnt_is_not_taken_for_a_guess(firsts):
    trials = [complete(number, first, first) for number, first in enumerate(firsts)]
    contenders = Contenders(trials, "maximize")
    assert all(contenders.has_learnt(trial) for trial in trials)
    assert len(contenders.leaders(2)) == 2


def test_before_any_repeat_a_trial_nearer_to_the_guess_than_to_the_best_is_far_behind():
    values = [0.5, 0.5, 0.5, 0.8, 0.7, 0.6]
    trials = [complete(number, 0.5, value) for number, value in enumerate(values)]
    assert numbers(Contenders(trials, "maximize").leaders(6)) == [3, 4]


def test_the_spread_of_repeats_says_which_trial_is_far_behind():
    trials = [complete(0, 0.5, 0.8), complete(1, 0.55, 0.79), complete(2, 0.6, 0.7)]
    for number, value in enumerate((0.79, 0.80, 0.81), start=3):
        trials.append(repeat(number, of=0, value=value))
    assert numbers(Contenders(trials, "maximize").leaders(3)) == [0, 1]
    trials[-1].value = 0.6
    assert numbers(Contenders(trials, "maximize").leaders(3)) == [0, 1, 2]


def test_a_paused_trial_is_no_leader_yet_but_may_lead():
    ahead = Trial(0, State.PAUSED, {}, value=0.9, resource=3.0)
    behind = Trial(1, State.PAUSED, {}, value=0.7, resource=3.0)
    contenders = Contenders([ahead, behind, complete(2, 0.5, 0.8)], "maximize")
    assert numbers(contenders.leaders(3)) == [2]
    assert contenders.leads(ahead)
    assert not contenders.leads(behind)
