"""Studies on slots of two types of GPU, of which one takes three times as long and costs less."""

from collections import defaultdict

import pytest

from hpsearch.brain.budget.ledger import MARGIN, Spending
from hpsearch.domain.records import Attempt, Outcome
from support.studies.drawn import assert_same_books
from support.studies.small import Simulation, search_by
from support.studies.two_kinds import FAST, SLOW, TIMES_SLOWER, on_two_kinds

FULL_S = 90.0
"""A full training on a fast slot."""
PRICES = {"a100": 2.0, "T4": 0.4}


def attempts(simulation: Simulation) -> list[Attempt]:
    return [attempt for trial in simulation.history.trials for attempt in trial.attempts]


def cost_of(seconds: dict[str, float]) -> float:
    return (seconds[FAST] * PRICES["a100"] + seconds[SLOW] * PRICES["T4"]) / 3600


def seconds_by_device(simulation: Simulation) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)
    for attempt in attempts(simulation):
        seconds[attempt.device or ""] += attempt.gpu_seconds
    return seconds


def test_the_pace_of_each_type_is_learnt_also_by_a_driver_that_takes_over():
    simulation = on_two_kinds({"trials": 12}, workers=4)
    while not simulation.study.finished:
        simulation.tick()
        assert_same_books(simulation.study, 1.0)
    for books in (
        simulation.study.spending,
        Spending(simulation.study.spec.budget, simulation.history),
    ):
        assert books.paces.mean(FAST) == pytest.approx(10.0)
        assert books.paces.mean(SLOW) == pytest.approx(10.0 * TIMES_SLOWER)
        for trial in simulation.history.trials:
            assert books.pace_of(trial, SLOW) == pytest.approx(10.0 * TIMES_SLOWER)


def test_a_stretch_reserves_what_it_takes_on_its_own_type_of_device():
    simulation = on_two_kinds({"gpu_hours": 1.0}, search=search_by())
    books = simulation.study.spending
    while books.paces.slowest() < 10.0 * TIMES_SLOWER:
        simulation.tick()
    fast, slow = (books.need(9.0, 1.0, 2, device=each) for each in (FAST, SLOW))
    assert fast == pytest.approx(MARGIN * FULL_S)
    assert slow == pytest.approx(MARGIN * FULL_S * TIMES_SLOWER)
    assert books.need(9.0, 1.0, 2, device="NVIDIA H100") == slow, "not seen yet: the slowest of all"


def test_near_the_end_of_the_time_a_slow_slot_begins_nothing_that_only_a_fast_one_ends():
    search = search_by()
    simulation = on_two_kinds({"wall_clock": 3.5 * FULL_S * TIMES_SLOWER}, search=search).run()
    cut_short = [each for each in attempts(simulation) if each.outcome is not Outcome.COMPLETE]
    assert not cut_short
    ended = dict.fromkeys((FAST, SLOW), 0.0)
    for each in attempts(simulation):
        ended[each.device or ""] = max(ended[each.device or ""], each.ended or 0.0)
    assert ended[SLOW] == pytest.approx(3 * FULL_S * TIMES_SLOWER), "a fourth one would be late"
    assert ended[FAST] == pytest.approx(10 * FULL_S), "the fast one goes on nearly to the end"


@pytest.mark.parametrize("pruner", ["none", "promotion"])
def test_a_limit_on_money_holds_and_each_trial_is_charged_by_its_devices(pruner):
    budget = {"cost": 0.5, "cost_per_gpu_hour": PRICES}
    search = search_by(pruner=pruner)
    simulation = on_two_kinds(budget, workers=4, search=search)
    ledger = simulation.study.spending.ledger
    while not simulation.study.finished:
        simulation.tick()
        assert ledger.paid + sum(ledger.to_pay.values()) <= 0.5 * (1 + 1e-9)
    paid = cost_of(seconds_by_device(simulation))
    assert 0.4 <= paid <= 0.5, "nearly all is used, and no more"
    assert ledger.paid == pytest.approx(paid)
    assert not ledger.to_pay
    for trial in simulation.history.trials:
        own = {FAST: 0.0, SLOW: 0.0}
        for attempt in trial.attempts:
            own[attempt.device or ""] += attempt.gpu_seconds
        assert trial.cost == pytest.approx(cost_of(own))


def test_a_device_without_a_price_costs_nothing_known_and_counts_as_the_dearest():
    budget = {"cost": 0.5, "cost_per_gpu_hour": {"A100": 2.0, "H100": 4.0}}
    simulation = on_two_kinds(budget, search=search_by()).run()
    seconds = seconds_by_device(simulation)
    counted = (seconds[FAST] * 2.0 + seconds[SLOW] * 4.0) / 3600
    assert simulation.study.spending.ledger.paid == pytest.approx(counted)
    assert 0.3 < counted <= 0.5
    for trial in simulation.history.trials:
        assert (trial.cost is None) == all(each.device == SLOW for each in trial.attempts)


def test_the_time_left_goes_by_the_slots_that_are_there():
    """A study whose fast slots are gone takes three times as long as they would have taken."""
    search = search_by()
    simulation = on_two_kinds({"trials": 40}, workers=8, search=search)
    while simulation.executor.now < 4 * FULL_S:
        simulation.tick()
    study, now = simulation.study, simulation.executor.now
    on_both = study.seconds_left(now)
    for name in [name for name, slot in study.slots.items() if slot.device == FAST]:
        del study._context.attempts.slots[name]
    on_slow = study.seconds_left(now)
    assert on_both is not None
    assert on_slow is not None
    assert on_slow / on_both == pytest.approx(4.0, rel=0.35), "a quarter of the speed is left"
