"""Who continues, who pauses, and who comes back."""

import math
import random

import optuna
import pytest

from hpsearch.search.rungs import PromotionPruner, Rungs, Verdict


def test_the_first_trials_at_a_rung_pause_until_there_is_a_best_third() -> None:
    rungs = Rungs([1, 3], total=9, eta=3)
    assert rungs.arrive(0, 0, 0.5).verdict is Verdict.PAUSE
    assert rungs.arrive(0, 1, 0.4).verdict is Verdict.PAUSE
    assert rungs.arrive(0, 2, 0.3).verdict is Verdict.CONTINUE


def test_a_paused_trial_is_promoted_once_enough_others_turn_out_worse() -> None:
    rungs = Rungs([1, 3], total=9, eta=3)
    rungs.arrive(0, 0, 0.1)
    assert rungs.promotion() is None
    rungs.arrive(0, 1, 0.4)
    rungs.arrive(0, 2, 0.5)
    promoted = rungs.promotion()
    assert promoted is not None
    assert promoted[0] == 0
    rungs.promote(0)
    assert rungs.promotion() is None


def test_the_highest_rung_is_served_first() -> None:
    rungs = Rungs([1, 3], total=9, eta=2)
    for number, score in enumerate([0.1, 0.2, 0.3, 0.4]):
        rungs.rungs[0].record(number, score)
        rungs.rungs[0].wait(number)
    for number, score in [(4, 0.5), (5, 0.6)]:
        rungs.rungs[1].record(number, score)
        rungs.rungs[1].wait(number)
    promoted = rungs.promotion()
    assert promoted is not None
    assert promoted[0] == 4


def test_the_last_call_rounds_the_share_up_so_that_one_trial_always_ends_in_full() -> None:
    rungs = Rungs([1, 3], total=9, eta=3)
    rungs.arrive(0, 0, 0.1)
    assert rungs.promotion() is None
    promoted = rungs.promotion(last_call=True)
    assert promoted is not None
    assert promoted[0] == 0


def test_a_value_that_is_not_a_number_is_never_promoted() -> None:
    rungs = Rungs([1], total=9, eta=2)
    for number in range(4):
        assert rungs.arrive(0, number, math.inf).verdict is Verdict.PAUSE
    assert rungs.promotion(last_call=True) is None


def test_a_report_made_again_replaces_the_first_one() -> None:
    rungs = Rungs([1], total=9, eta=2)
    rungs.arrive(0, 0, 0.9)
    rungs.arrive(0, 1, 0.5)
    rungs.arrive(0, 0, 0.1)
    assert len(rungs.rungs[0]) == 2
    assert rungs.rungs[0].rank(0) == 0


def test_a_report_counts_at_the_highest_rung_at_or_below_it_and_only_a_trials_first_one_there() -> (
    None
):
    rungs = Rungs([1, 3], total=9)
    assert rungs.enter(0, 0.5) is None
    assert [rungs.enter(1, resource) for resource in (1, 2, 3, 4, 9)] == [0, None, 1, None, None]
    assert [rungs.enter(2, resource) for resource in (4, 8)] == [1, None]
    assert [rungs.enter(2, resource) for resource in (3.5, 4, 8)] == [1, None, None], (
        "an attempt that redoes it"
    )
    assert rungs.enter(3, 9) is None


def test_about_a_third_of_many_trials_goes_on_and_they_are_the_best_ones() -> None:
    rungs, draw = Rungs([1], total=9, eta=3), random.Random(0)
    scores = [draw.random() for _ in range(300)]
    gone_on = {
        n for n, score in enumerate(scores) if rungs.arrive(0, n, score).verdict is Verdict.CONTINUE
    }
    while (promoted := rungs.promotion()) is not None:
        rungs.promote(promoted[0])
        gone_on.add(promoted[0])
    best_third = set(sorted(range(300), key=lambda n: scores[n])[:100])
    assert best_third <= gone_on
    assert len(gone_on) < 150


def test_a_judgement_names_those_it_compared_with() -> None:
    rungs = Rungs([1], total=9, eta=3)
    for number in range(8):
        judgement = rungs.arrive(0, number, float(number))
    assert judgement.why == "place 8 of 8 at 1; the best 2 continue"
    assert judgement.against == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_as_an_optuna_pruner_it_stops_what_would_pause(direction: str) -> None:
    sign = 1 if direction == "minimize" else -1

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for step in range(1, 10):
            trial.report(sign * x, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * x

    study = optuna.create_study(
        direction=direction,
        sampler=optuna.samplers.RandomSampler(seed=0),
        pruner=PromotionPruner([1, 3], eta=3),
    )
    study.optimize(objective, n_trials=60)
    complete = study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))
    assert 0 < len(complete) < 20
    assert {t.last_step for t in study.trials if t.state == optuna.trial.TrialState.PRUNED} == {
        1,
        3,
    }
    assert max(abs(t.value or 0) for t in complete) < 0.6


def test_as_an_optuna_pruner_it_judges_reports_that_pass_over_its_levels() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        for step in range(10, 40, 10):
            trial.report(x, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return x

    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=sampler, pruner=PromotionPruner([3, 9], eta=3))
    study.optimize(objective, n_trials=30)
    pruned = study.get_trials(states=(optuna.trial.TrialState.PRUNED,))
    assert 15 < len(pruned) < 30
    assert {trial.last_step for trial in pruned} == {10}


def test_an_eta_that_would_leave_no_trial_behind_is_refused() -> None:
    with pytest.raises(ValueError, match="use 2 or more"):
        PromotionPruner([1], eta=1)
