"""Studies on simulated GPUs that trials share, of which the curve of throughput and memory is
known."""

import random
import statistics
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpsearch.brain.budget.ledger import Spending
from hpsearch.domain import events as ev
from hpsearch.domain.facts import SHARING
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome
from hpsearch.domain.sharing import Sharing
from support.studies.shared_cards import MOST, Curve, on_shared_cards
from support.studies.small import Simulation, search_by
from support.thoroughness import examples


def saturating(half: float) -> Curve:
    """The speed of trials on a card that `half` of them fill to a half."""
    return lambda trials: 1000 * trials / (1 + trials / half)


def worse_past(most: int) -> Curve:
    return lambda trials: 1000.0 * (trials if trials <= most else most * most / trials)


def full_at(most: int) -> Curve:
    return lambda trials: 1000.0 * trials if trials <= most else None


OF_60 = {"trials": 60, "per_trial": {"epochs": 9}}
CURVES = [saturating(1), saturating(3), saturating(30)]
CURVES += [worse_past(most) for most in (1, 2, 3, 6, 7, 12)]
CURVES += [full_at(most) for most in (1, 2, 3, 5, 11, 16)]


def found(simulation: Simulation) -> dict[str, object]:
    known = simulation.history.study.system_attrs.get(SHARING, {})
    return dict(known.get("GPU", {"trials": 1, "is_final": False}))


def trials_at_once(simulation: Simulation) -> int:
    return int(found(simulation)["trials"])  # type: ignore[call-overload]


def best_of(curve: Curve) -> float:
    return max(curve(trials) or 0.0 for trials in range(1, MOST + 1))


def comes_close(curve: Curve, pruner: str, trials: int) -> bool:
    budget = {"trials": trials, "per_trial": {"epochs": 9}}
    simulation = on_shared_cards(curve, search=search_by(pruner=pruner), budget=budget).run()
    assert not [trial for trial in simulation.history.trials if trial.state is State.FAILED]
    return (curve(trials_at_once(simulation)) or 0.0) >= 0.9 * best_of(curve)


@pytest.mark.parametrize("curve", [saturating(3), worse_past(3), full_at(5)])
def test_the_driver_comes_within_a_tenth_of_the_best_of_the_card(curve: Curve) -> None:
    assert comes_close(curve, "none", 60)


@pytest.mark.thorough
@pytest.mark.parametrize("curve", CURVES)
def test_it_does_so_where_trials_pause_at_every_rung(curve: Curve) -> None:
    assert comes_close(curve, "promotion", 200)


@pytest.mark.parametrize("curve", CURVES)
def test_speeds_lead_within_a_tenth_of_the_best(curve: Curve) -> None:
    assert (curve(settled(curve, 10, random.Random(1), noise=0.0)) or 0.0) >= 0.9 * best_of(curve)


@pytest.mark.parametrize("reports", [10, 1])
@pytest.mark.parametrize("curve", [saturating(3), worse_past(6), full_at(5)])
def test_noisy_speeds_do_too_but_for_a_few(curve: Curve, reports: int) -> None:
    """Of trials that report ten times, and of short ones that report once."""
    ends = [curve(settled(curve, reports, random.Random(seed))) or 0.0 for seed in range(5)]
    assert statistics.median(ends) >= 0.9 * best_of(curve)
    assert min(ends) >= 0.75 * best_of(curve)


def settled(curve: Curve, reports: int, rng: random.Random, noise: float = 0.05) -> int:
    """The number of trials at once that is found on one card, where configurations differ in speed,
    and each speed has noise."""
    sharing, trial = Sharing(MOST), 0
    running: list[tuple[int, float, int]] = []  # trial, its own speed, reports that are left
    while not sharing.known["is_final"]:
        slots = sharing.trials
        together = curve(slots)
        if together is None:
            sharing.ran_short(slots, trial)
            continue
        running = running[:slots]
        while len(running) < slots:
            trial += 1
            running.append((trial, rng.lognormvariate(0, 0.3), reports))
        for number, own, _ in running:
            sharing.learn(slots, number, together / slots * own * rng.lognormvariate(0, noise))
        running = [(number, own, left - 1) for number, own, left in running if left > 1]
    return sharing.best


def test_slots_double_while_that_pays_and_then_numbers_between_are_tried() -> None:
    simulation = on_shared_cards(worse_past(3))
    steps: list[int] = []
    while not found(simulation)["is_final"]:
        simulation.tick()
        slots = len(simulation.study.slots)
        if slots not in steps[-1:]:
            steps.append(slots)
    assert steps[:4] == [1, 2, 4, 8]
    assert steps[-1] == 3


def test_an_attempt_is_charged_by_its_share_as_slots_come_also_after_a_crash() -> None:
    simulation = on_shared_cards(saturating(3))
    while len(simulation.study.slots) < 4 or not simulation.study.running:
        simulation.tick()
    history, now = simulation.history, simulation.executor.now
    charges = {
        each.attempt.trial: each.rate.charge(now) for each in simulation.study.running.values()
    }
    live = [each.attempt for each in simulation.study.running.values()]
    assert {each.rate.gpus for each in simulation.study.running.values()} == {0.25}
    assert any(0.3 < (each.gpus or 0.0) < 1.0 for each in live), "it was charged more before"
    again = on_shared_cards(saturating(3), history=history)
    again.study.begin(now + 10.0, now)
    for each in live:
        assert each.gpu_seconds == pytest.approx(charges[each.trial], rel=0.2)
    assert Spending(again.study.spec.budget, history).ledger.spent == pytest.approx(
        sum(each.gpu_seconds for trial in history.trials for each in trial.attempts)
    )


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(40))
def test_a_card_is_charged_for_its_time_whatever_happens(seed: int) -> None:
    """At least for the time in which all its slots were busy, at most for that in which any was;
    the budget is kept, and no trial fails that has memory somewhere."""
    draw = random.Random(seed)
    hours = draw.choice([0.1, 0.2, 0.4])
    budget: dict[str, object] = {"gpu_hours": hours, "per_trial": {"epochs": 9}}
    if draw.random() < 0.3:
        budget["wall_clock"] = "5m"
    curve = draw.choice([*CURVES, lambda trials: 1000 * trials**0.7])
    losses = tuple(sorted(draw.uniform(0, 900) for _ in range(draw.choice([0, 0, 5]))))
    pruner = draw.choice(["none", "promotion"])
    simulation = on_shared_cards(
        curve, draw.choice([1, 1, 2]), search=search_by(pruner=pruner), budget=budget, losses=losses
    )
    never = draw.choice([1.0, 0.95, 0.7])
    simulation.executor.room = lambda params: 0 if params["x"] > never else MOST  # type: ignore[attr-defined]
    study, ledger = simulation.study, simulation.study.spending.ledger
    full, any_busy, before = Counter[str](), Counter[str](), 0.0
    while not study.finished:
        slots = Counter(slot.gpu_id for slot in study.slots.values())
        busy = Counter(each.slot.gpu_id for each in study.running.values())
        simulation.tick()
        passed, before = simulation.executor.now - before, simulation.executor.now
        for card in busy:
            any_busy[card] += passed  # type: ignore[assignment]
            full[card] += passed if busy[card] == slots[card] else 0  # type: ignore[assignment]
        assert ledger.spent + sum(ledger.reserved.values()) <= hours * 3600 * (1 + 1e-9)
    charged = Counter[str]()
    for trial in simulation.history.trials:
        for each in trial.attempts:
            charged[each.worker.split("-")[0]] += each.gpu_seconds  # type: ignore[assignment]
        if trial.state is State.FAILED:
            assert trial.params["x"] > never
            assert len(trial.attempts) <= 1 + simulation.study.spec.resources.retries + len(losses)
    for card, seconds in charged.items():
        assert full[card] - 1e-6 <= seconds <= any_busy[card] + 1e-6


def test_trials_that_never_have_memory_leave_the_number_to_others() -> None:
    simulation = on_shared_cards(worse_past(6), search=search_by(), budget=OF_60)
    simulation.executor.room = lambda params: 0 if params["x"] > 0.8 else MOST  # type: ignore[attr-defined]
    simulation.run()
    failed = [trial for trial in simulation.history.trials if trial.state is State.FAILED]
    assert len(failed) > 5
    assert all(len(trial.attempts) <= 3 for trial in failed)
    assert (worse_past(6)(trials_at_once(simulation)) or 0.0) >= 0.75 * 6000


def test_the_budget_is_kept_while_slots_come_and_go() -> None:
    budget = {"gpu_hours": 0.6, "per_trial": {"epochs": 9}}
    simulation = on_shared_cards(worse_past(3), budget=budget)
    ledger = simulation.study.spending.ledger
    while not simulation.study.finished:
        simulation.tick()
        assert ledger.spent + sum(ledger.reserved.values()) <= 2160.0 * (1 + 1e-9)
    assert ledger.spent > 1500.0


def test_a_later_driver_begins_with_the_number_that_was_found() -> None:
    simulation = on_shared_cards(worse_past(3))
    while not found(simulation)["is_final"]:
        simulation.tick()
    simulation.study.abandon(simulation.executor.now)
    again = on_shared_cards(worse_past(3), history=simulation.history)
    again.executor.now = simulation.executor.now
    again.study.begin(again.executor.now)
    seen = set()
    for _ in range(40):
        again.tick()
        seen.add(len(again.study.slots))
    assert max(seen) == 3


def test_memory_that_is_short_costs_an_attempt_and_a_slot_and_the_trial_goes_on() -> None:
    budget = {"trials": 40, "per_trial": {"epochs": 9}}
    simulation = on_shared_cards(full_at(2), search=search_by(), budget=budget).run()
    short = [
        each
        for trial in simulation.history.trials
        for each in trial.attempts
        if each.outcome is Outcome.LOST
    ]
    assert short
    assert all("it shared its GPU: at most" in str(each.note) for each in short)
    assert trials_at_once(simulation) == 2
    assert all(trial.state is State.COMPLETE for trial in simulation.history.trials)


class OwnClock:
    """Adds up what attempts on shared cards hold by the clock of their workers, apart from the
    ledger, and compares it with a limit in GPU-seconds whenever one starts."""

    def __init__(self, simulation: Simulation, limit_s: float) -> None:
        self._executor, self._trials = simulation.executor, simulation.history.trials
        self._limit_s, self.starts = limit_s, 0
        self._held = Counter[tuple[int, int]]()
        self._poll, self._launch = self._executor.poll, self._executor.launch
        self._executor.poll, self._executor.launch = self.poll, self.launch  # type: ignore[method-assign]

    def poll(self, timeout_s: float) -> list[ev.Event]:
        before, running = self._executor.now, dict(self._executor._runs)
        on_cards = Counter(slot.split("-")[0] for slot in self._executor.slots)  # type: ignore[attr-defined]
        events = self._poll(timeout_s)
        for key, run in running.items():
            share = 1 / (on_cards[run.slot.split("-")[0]] or 1)
            self._held[key] += (self._executor.now - before) * share  # type: ignore[assignment]
        return events

    def launch(self, order: ev.Launch) -> None:
        attempts = {(each.trial, each.number): each for t in self._trials for each in t.attempts}
        new = attempts[order.trial, order.attempt]
        assert new.first_reserved_gpu_seconds == new.reserved_gpu_seconds
        promised = sum(each.reserved_gpu_seconds for each in attempts.values() if not each.ended)
        ended = sum(self._held[key] for key, each in attempts.items() if each.ended)
        assert ended + promised <= self._limit_s * (1 + 1e-6), (order, ended, promised)
        self.starts += 1
        self._launch(order)


@given(
    curve=st.sampled_from([saturating(1), saturating(3), worse_past(3), full_at(5)]),
    cards=st.integers(1, 3),
    limit_s=st.floats(100.0, 600.0),
    confirm=st.sampled_from([None, {"top": 2, "seeds": 2}]),
    pruner=st.sampled_from(["none", "promotion"]),
)
@settings(max_examples=examples(20), derandomize=True, deadline=None)
def test_no_attempt_on_a_shared_card_starts_beyond_the_limit(
    curve, cards, limit_s, confirm, pruner
):
    budget = {"gpu_hours": limit_s / 3600, "per_trial": {"epochs": 9}}
    search = search_by(pruner=pruner, **({"confirm": confirm} if confirm else {}))
    simulation = on_shared_cards(curve, cards, budget=budget, search=search)
    clock = OwnClock(simulation, limit_s)
    simulation.run()
    assert clock.starts
