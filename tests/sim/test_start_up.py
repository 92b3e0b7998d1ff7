"""What an attempt takes before it trains is known beside its pace: short studies use their budget,
and no study spends more."""

import pytest

from hpsearch.brain.budget.ledger import MARGIN, Spending
from hpsearch.domain import events as ev
from hpsearch.domain.history import History
from hpsearch.domain.records import Attempt
from support.studies.small import Bowl, Simulation, brain, budget_of, search_by, spec_with

COLD_S = 20.0
TRAINS_S = 2.0
"""What one unit of the trial budget takes, on average."""


def attempts_of(history: History) -> list[Attempt]:
    found = [attempt for trial in history.trials for attempt in trial.attempts]
    return sorted(found, key=lambda attempt: attempt.started)


def spent(history: History) -> float:
    return sum(attempt.gpu_seconds for attempt in attempts_of(history))


def short_study(budget_s: float, workers: int, warm_s: float = 0.2) -> Simulation:
    """Trials of 3 epochs that train 2 s an epoch, on workers that need 20 s for their first one."""
    spec = spec_with(budget={"gpu_hours": budget_s / 3600, "per_trial": {"epochs": 3}})
    curves = Bowl(seconds_per_unit=TRAINS_S)
    return Simulation(spec, curves=curves, workers=workers, cold_s=COLD_S, warm_s=warm_s)


def test_a_cold_start_is_not_taken_for_the_pace_of_training():
    done = short_study(55.9, workers=1).run()
    first, *others = attempts_of(done.history)
    assert first.start_up_seconds == COLD_S
    assert first.slowest_pace is not None
    assert first.slowest_pace <= TRAINS_S * 1.5
    assert all(attempt.start_up_seconds == pytest.approx(0.2) for attempt in others)
    assert all((trial.speed or 0.0) >= 1 / (TRAINS_S * 1.5) for trial in done.history.trials)


@pytest.mark.parametrize(
    ("budget_s", "workers", "least"), [(55.9, 1, 0.85), (120.0, 2, 0.85), (200.0, 4, 0.85)]
)
def test_a_short_study_uses_its_budget_though_its_workers_started_cold(budget_s, workers, least):
    done = short_study(budget_s, workers).run()
    assert least * budget_s <= spent(done.history) <= budget_s
    assert max(trial.resource for trial in done.history.trials) == 3


def test_a_worker_that_is_replaced_starts_cold_and_that_is_reserved():
    search = search_by(pruner={"kind": "promotion", "pause": True})
    spec = spec_with(budget={"gpu_hours": 1.0, "per_trial": {"epochs": 3}}, search=search)
    study = brain(spec)
    study.begin(0.0)
    study.on_event(ev.SlotUp("w0", "node", "cpu", 1.0), 0.0)
    (launch,) = study.on_tick(0.0)
    assert isinstance(launch, ev.Launch)
    study.on_event(ev.Began(0, 1, {}, start_up_s=COLD_S), COLD_S + 1)
    report = ev.Reported(0, 1, launch.until, {"loss": 1.0}, checkpoint="kept")
    (stop,) = study.on_event(report, COLD_S + 1)
    assert isinstance(stop, ev.Stop)
    pace = 1 / launch.until
    study.on_tick(COLD_S + 1)
    warm = study.history.trials[1].attempts[0]
    unknown = COLD_S + MARGIN * launch.until * pace
    assert warm.reserved_gpu_seconds == pytest.approx(unknown), "it may take what a cold one does"
    study.on_event(ev.SlotDown("w0", "gone"), COLD_S + 2)
    study.on_event(ev.SlotUp("w1", "node", "cpu", 1.0), COLD_S + 2)
    study.on_tick(COLD_S + 2)
    cold = study.history.trials[1].attempts[1]
    assert cold.reserved_gpu_seconds == pytest.approx(MARGIN * (COLD_S + launch.until * pace))


def test_a_trial_that_trains_on_reserves_no_second_start():
    spec = spec_with(budget=budget_of(gpu_hours=1.0), search={"pruner": "median"})
    study = brain(spec)
    study.begin(0.0)
    study.on_event(ev.SlotUp("w0", "node", "cpu", 1.0), 0.0)
    study.on_tick(0.0)
    attempt = study.history.trials[0].attempts[0]
    study.on_event(ev.Began(0, 1, {}, start_up_s=COLD_S), COLD_S + 2)
    study.on_event(ev.Reported(0, 1, 1.0, {"loss": 1.0}), COLD_S + 2)
    used = COLD_S + 2
    assert attempt.reserved_gpu_seconds == pytest.approx(used + MARGIN * 2.0), "its own pace now"


def test_what_is_expected_and_what_is_reserved_follow_the_latest_starts():
    spec = spec_with(budget={"gpu_hours": 1.0, "per_trial": {"epochs": 3}})
    spending = Spending(spec.budget, brain(spec).history)
    assert spending.start_ups.next(is_warm=False).worst_s == 0.0
    spending.start_ups.add(COLD_S, is_warm=False)
    unseen = spending.start_ups.next(is_warm=True)
    assert (unseen.expected_s, unseen.worst_s) == (0.0, COLD_S)
    spending.start_ups.add(9.0, is_warm=True)
    for _ in range(10):
        spending.start_ups.add(1.0, is_warm=True)
    warm = spending.start_ups.next(is_warm=True)
    assert (warm.expected_s, warm.worst_s) == (1.0, MARGIN)
    cold = spending.start_ups.next(is_warm=False)
    assert (cold.expected_s, cold.worst_s) == (COLD_S, MARGIN * COLD_S)


def test_a_driver_that_takes_a_study_up_knows_how_long_workers_take_to_start():
    before = short_study(120.0, workers=1)
    for _ in range(12):
        before.tick()
    books = before.study.spending
    again = Spending(before.study.spec.budget, before.history)
    for is_warm in (False, True):
        assert again.start_ups.next(is_warm=is_warm) == books.start_ups.next(is_warm=is_warm)
    assert again.start_ups.next(is_warm=False).expected_s == COLD_S


def test_a_report_gives_back_what_the_rest_does_not_need_at_its_pace():
    budget = budget_of(gpu_hours=1.0)
    spec = spec_with(budget=budget, search={"pruner": "none"})
    study = brain(spec)
    study.begin(0.0)
    for name in ("w0", "w1"):
        study.on_event(ev.SlotUp(name, "node", "cpu", 1.0), 0.0)
    study.on_tick(0.0)
    first = study.history.trials[0].attempts[0]
    assert first.reserved_gpu_seconds > 1000.0, "nothing is known: a fair share"
    study.on_event(ev.Reported(0, 1, 1.0, {"loss": 1.0}), 10.0)
    assert first.reserved_gpu_seconds == pytest.approx(10.0 + MARGIN * 8 * 10.0)
    assert study.spending.ledger.reserved[(0, 1)] == first.reserved_gpu_seconds


def test_an_attempt_that_outgrows_its_reservation_takes_what_is_left_up_to_a_quarter():
    spec = spec_with(budget={"gpu_hours": 110 / 3600, "per_trial": {"epochs": 3}})
    spending = Spending(spec.budget, brain(spec).history)
    attempt = Attempt(0, 1, "w0", started=0.0)
    assert spending.reserve(attempt, 80.0)
    assert spending.extend(attempt)
    assert attempt.reserved_gpu_seconds == 100.0
    assert spending.extend(attempt)
    assert attempt.reserved_gpu_seconds == pytest.approx(110.0)
    assert not spending.extend(attempt), "the limit holds"
