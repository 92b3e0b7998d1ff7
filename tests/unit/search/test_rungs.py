"""Who continues, who pauses, and who comes back."""

import math
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from hpsearch.domain.facts import EarlierRung, EarlierStudy
from hpsearch.search.rungs import ASSUMED, POOR, Rung, Rungs, Verdict
from support.studies.small import Bowl, Simulation, brain, spec_with


def promoted(rungs: Rungs, *can_finish: Callable[[int], bool]) -> int | None:
    found = rungs.promotion(*can_finish)
    return None if found is None else found[0]


def wait(rung: Rung, numbers: Iterable[int]) -> None:
    for number in numbers:
        rung.record(number, float(number))
        rung.waiting.add(number)


def test_the_first_trials_at_a_rung_pause_until_there_is_a_best_third_which_is_then_promoted():
    rungs = Rungs([1, 3], total=9, eta=3)
    assert rungs.arrive(0, 0, 0.5).verdict is Verdict.PAUSE
    assert rungs.arrive(0, 1, 0.4).verdict is Verdict.PAUSE
    assert rungs.arrive(0, 2, 0.3).verdict is Verdict.CONTINUE
    rungs = Rungs([1, 3], total=9, eta=3)
    rungs.arrive(0, 0, 0.1)
    assert rungs.promotion() is None
    rungs.arrive(0, 1, 0.4)
    rungs.arrive(0, 2, 0.5)
    assert promoted(rungs) == 0
    rungs.promote(0)
    assert rungs.promotion() is None


def test_the_highest_rung_is_served_first():
    rungs = Rungs([1, 3], total=9, eta=2)
    for index, numbers in enumerate([range(4), range(4, 6)]):
        for number in numbers:
            rungs.rungs[index].record(number, 0.1 * number)
            rungs.rungs[index].waiting.add(number)
    assert promoted(rungs) == 4


def test_the_one_goes_on_of_which_most_is_expected_or_that_is_ahead_where_nothing_is():
    expected = {0: 0.9, 1: 0.1, 2: 0.5}
    rungs = Rungs([1], total=9, order=lambda numbers: sorted(numbers, key=expected.__getitem__))
    wait(rungs.rungs[0], expected)
    found = rungs.promotion()
    assert found is not None
    number, judgement = found
    assert (number, judgement.against) == (1, [2, 0])
    rungs = Rungs([1], total=9, order=lambda numbers: None)
    verdicts = [rungs.arrive(0, number, -float(number)).verdict for number in range(3)]
    assert verdicts == [Verdict.PAUSE, Verdict.PAUSE, Verdict.CONTINUE]


def test_trials_are_ahead_where_they_can_be_compared_however_far_they_are():
    rungs = Rungs([1, 3], total=9)
    for number, score in enumerate([0.9, 0.1, 0.4]):
        rungs.rungs[0].record(number, score)
    rungs.rungs[1].record(0, 0.8)
    assert rungs.ahead([0, 1, 2]) == (1, 1)
    assert rungs.ahead([0, 2]) == (2, 1)
    rungs.rungs[1].record(3, 0.7)
    assert rungs.ahead([1, 3]) == (1, 1), "the third passed over the first rung"


def test_those_that_cannot_be_trained_in_full_any_more_are_passed_over():
    rungs = Rungs([1], total=9)
    wait(rungs.rungs[0], range(3))
    assert promoted(rungs, lambda number: number > 0) == 1
    assert rungs.promotion(lambda number: False) is None


def test_trials_that_go_on_whatever_happens_take_nobodys_place():
    rungs = Rungs([1], total=9, eta=3)
    for number in range(10, 20):
        rungs.rungs[0].record(number, 0.0)
        rungs.rungs[0].exempt(number)
        rungs.rungs[0].record(number, 0.01 * number)  # reported again by a further attempt
    verdicts = [rungs.arrive(0, number, 1.0 - 0.1 * number).verdict for number in range(3)]
    assert verdicts == [Verdict.PAUSE, Verdict.PAUSE, Verdict.CONTINUE]
    assert (rungs.rungs[0].judged, rungs.rungs[0].gone_on) == (3, 1)


def test_a_trial_that_ended_where_it_waited_has_not_gone_on():
    rungs = Rungs([1], total=9, eta=3)
    wait(rungs.rungs[0], range(3))
    rungs.stop(0)
    assert promoted(rungs) == 1
    rungs.promote(1)
    rungs.stop(1)
    assert rungs.rungs[0].gone_on == 1, "one that has gone on has done so whatever follows"


@pytest.mark.parametrize("many_others", [0, 50])
def test_a_value_that_is_not_a_number_is_never_promoted(many_others):
    rungs = Rungs([1], total=9, eta=2)
    for number in range(4):
        assert rungs.arrive(0, number, math.inf).verdict is Verdict.PAUSE
    for number in range(10, 10 + many_others):
        rungs.arrive(0, number, float(number))
    while (number := promoted(rungs)) is not None:
        assert number >= 10
        rungs.promote(number)
    assert set(range(4)) <= rungs.rungs[0].waiting
    assert not set(range(4)) & set(rungs.waiting())


def test_where_half_show_the_very_same_value_nothing_is_decided():
    rungs = Rungs([1], total=9, eta=3)
    for number in range(4):
        rungs.arrive(0, number, 0.4722)
    assert rungs.fraction(0) == 1.0
    judgement = rungs.arrive(0, 4, 0.5)
    assert "decides nothing" in judgement.why
    while (number := promoted(rungs)) is not None:
        rungs.promote(number)
    assert not rungs.rungs[0].waiting
    for number in range(5, 20):
        rungs.arrive(0, number, 0.4 - 0.01 * number)
    assert rungs.fraction(0) < 1.0, "they are few among the others"


def test_where_half_show_the_very_same_value_as_many_go_on_as_are_better_and_half_of_the_others():
    rungs = Rungs([1], total=9, eta=3)
    for number in range(10):
        rungs.arrive(0, number, 0.4722)
    assert rungs.fraction(0) == 1.0
    for number in range(10, 18):
        rungs.arrive(0, number, 0.4 - 0.01 * number)
    assert rungs.rungs[0].is_tied
    assert rungs.fraction(0) == pytest.approx((8 + 10 / 2) / 18)


def test_diverged_trials_do_not_look_like_a_model_that_has_learnt_nothing():
    rungs = Rungs([1], total=9, eta=3)
    for number in range(10):
        rungs.arrive(0, number, math.inf)
        rungs.arrive(0, 10 + number, 0.1 * number)
    assert not rungs.rungs[0].is_tied
    assert rungs.fraction(0) == pytest.approx(1 / 3)


def test_a_report_made_again_replaces_the_first_one():
    rungs = Rungs([1], total=9, eta=2)
    rungs.arrive(0, 0, 0.9)
    rungs.arrive(0, 1, 0.5)
    rungs.arrive(0, 0, 0.1)
    assert len(rungs.rungs[0]) == 2
    assert rungs.rungs[0].rank(0) == 0


def test_a_report_counts_at_the_highest_rung_at_or_below_it_and_only_a_trials_first_one_there():
    rungs = Rungs([1, 3], total=9)
    assert rungs.enter(0, 0.5) is None
    assert [rungs.enter(1, resource) for resource in (1, 2, 3, 4, 9)] == [0, None, 1, None, None]
    assert [rungs.enter(2, resource) for resource in (4, 8)] == [1, None]
    assert [rungs.enter(2, resource) for resource in (3.5, 4, 8)] == [1, None, None], (
        "an attempt that redoes it"
    )
    assert rungs.enter(3, 9) is None


def test_a_third_of_many_trials_goes_on_and_the_best_ones_are_among_them():
    rungs, draw = Rungs([1], total=9, eta=3), random.Random(0)
    scores = [draw.random() for _ in range(300)]
    gone_on = set()
    for number, score in enumerate(scores):
        if rungs.arrive(0, number, score).verdict is Verdict.CONTINUE:
            gone_on.add(number)
        if (chosen := promoted(rungs)) is not None:
            rungs.promote(chosen)
            gone_on.add(chosen)
        assert len(gone_on) == rungs.rungs[0].gone_on == (number + 1) // 3
    best = set(sorted(range(300), key=scores.__getitem__)[:30])
    assert best <= gone_on


def test_a_judgement_names_those_it_compared_with():
    rungs = Rungs([1], total=9, eta=3)
    for number in range(9):
        paused = rungs.arrive(0, number, float(number))
    assert paused.why.startswith("3 of 9 go on from 1, rank correlation ")
    assert paused.why.endswith("; others look better")
    assert paused.against == [0, 1, 2, 3, 4]
    found = rungs.promotion()
    assert found is not None
    _, judgement = found
    assert judgement.why.startswith("it looks best; 3 of 9 go on from 1")
    assert judgement.against == [1, 2, 3, 4, 5]


def told(noise: float, trials: int, draw: np.random.Generator, eta: int = 3) -> tuple[Rungs, float]:
    """A rung whose values foretell the next ones but for noise, and what it truly tells.

    The trials go on as the rung decides. The truth is the rank correlation over all of them.
    """
    rungs = Rungs([1], total=9, eta=eta)
    here = draw.normal(size=trials)
    there = here + noise * draw.normal(size=trials)
    for number in range(trials):
        if rungs.arrive(0, number, float(here[number])).verdict is Verdict.CONTINUE:
            rungs.finish(number, float(there[number]))
        if (chosen := promoted(rungs)) is not None:
            rungs.promote(chosen)
            rungs.finish(chosen, float(there[chosen]))
    return rungs, float(spearmanr(here, there).statistic)


def test_a_rung_that_tells_everything_lets_one_in_eta_through_and_another_nearly_all():
    for eta in (2, 3, 4):
        rungs, _ = told(0.0, 60, np.random.default_rng(0), eta)
        assert rungs.fraction(0) == pytest.approx(1 / eta)
        assert rungs.rungs[0].gone_on == 60 // eta
    rungs, truth = told(1e6, 120, np.random.default_rng(1))
    assert abs(truth) < 0.2
    assert rungs.fraction(0) > 0.8
    assert rungs.rungs[0].gone_on > 80


def test_the_less_a_rung_tells_the_more_go_on():
    noises = (0.1, 3.0, 30.0)
    shares = [selected(noise, np.random.default_rng(2))[0].fraction(0) for noise in noises]
    assert shares[0] == pytest.approx(1 / 3)
    assert shares[0] < shares[1] < shares[2]


def selected(noise: float, draw: np.random.Generator) -> tuple[Rungs, float, float]:
    """A rung of which the best third went on, what it truly tells, and what those alone show."""
    rungs = Rungs([1], total=9)
    here = draw.normal(size=450)
    there = here + noise * draw.normal(size=450)
    for number in range(450):
        rungs.rungs[0].record(number, float(here[number]))
    best = np.argsort(here)[:150]
    for number in best:
        rungs.finish(int(number), float(there[number]))
    truth = float(spearmanr(here, there).statistic)
    return rungs, truth, float(spearmanr(here[best], there[best]).statistic)


@pytest.mark.parametrize("noise", [0.3, 0.8, 1.5, 3.0])
def test_what_a_rung_tells_is_found_though_only_the_best_went_on(noise):
    draw = np.random.default_rng(3)
    drawn = [selected(noise, draw) for _ in range(40)]
    truth = np.mean([each for _, each, _ in drawn])
    found = np.mean([rungs.correlation(0) for rungs, _, _ in drawn])
    uncorrected = np.mean([each for _, _, each in drawn])
    assert abs(found - truth) < 0.5 * abs(uncorrected - truth)
    assert abs(found - truth) < 0.05


@dataclass
class Troubled(Bowl):
    """Curves of which some have no finite value at times, and some all show the same at first."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        loss = super().measure(params, seed, resource)["loss"]
        if params["x"] > 0.85 and seed % 3 != int(resource) % 3:
            loss = math.nan
        if 0.5 < params["x"] < 0.6 and resource < 2:
            loss = 0.7
        return {"loss": loss}


@settings(max_examples=10)
@given(
    seed=st.integers(0, 10_000),
    workers=st.integers(1, 4),
    losses=st.lists(st.floats(10.0, 800.0), max_size=3),
    ticks=st.integers(1, 80),
)
def test_standings_that_are_read_from_the_records_are_those_that_were_kept(
    seed, workers, losses, ticks
):
    search = {"sampler": "random"}
    budget = {"trials": 12, "per_trial": {"epochs": 9}}
    spec = spec_with(seed=seed, search=search, budget=budget)
    curves = Troubled(diverges=0.97)
    simulation = Simulation(
        spec, curves=curves, workers=workers, losses=tuple(losses), defaults={"x": 0.2}
    )
    for _ in range(ticks):
        if not simulation.study.finished:
            simulation.tick()
    kept = simulation.study._context.searcher._rungs
    read = brain(spec, simulation.history)._context.searcher._rungs
    assert kept is not None
    assert read is not None
    for index, (one, other) in enumerate(zip(kept.rungs, read.rungs, strict=True)):
        assert one.scores == other.scores
        assert one.waiting == other.waiting
        assert (one.judged, one.gone_on) == (other.judged, other.gone_on)
        assert kept.fraction(index) == read.fraction(index)


def earlier_with(*rungs: EarlierRung) -> EarlierStudy:
    return EarlierStudy("before", [], list(rungs))


def test_what_is_assumed_of_a_rung_is_what_many_trials_of_earlier_studies_told_near_it():
    before = earlier_with(EarlierRung(1 / 9, 0.1, 60), EarlierRung(1 / 3, 0.9, 60))
    low, high = (Rungs([1, 3], 9, earlier=[before]).correlation(index) for index in (0, 1))
    assert low < POOR, "so that all trials go on at first"
    assert high > ASSUMED
    assert Rungs([1, 3], 9).correlation(0) == ASSUMED
    before = earlier_with(EarlierRung(0.9, 0.1, 60))
    assert Rungs([1, 3], 9, earlier=[before, earlier_with()]).correlation(0) == pytest.approx(
        ASSUMED
    )
    rungs = Rungs([1, 3], 9, earlier=[earlier_with(EarlierRung(1 / 9, 0.1, 1))])
    assert 0.6 < rungs.correlation(0) < ASSUMED
