"""Clocks that are set, stalls, outages and drivers that end in every way: the ledger says what
truly ran, and no more.

What a study finds does not depend on any of it.
"""

import random
from collections.abc import Iterator
from typing import Any

import pytest

from hpsearch.brain.budget.ledger import NOTE_S
from hpsearch.domain.history import History
from hpsearch.domain.records import Attempt, Outcome
from hpsearch.running.driver.journal import RENEW_S
from hpsearch.running.driver.loop import POLL_S
from hpsearch.store.audit.invariants import violations
from hpsearch.study_file.models import Resources, StudySpec
from support.studies.disturbances import (
    ENDS,
    PATIENCE,
    Disturbed,
    DisturbedStore,
    Session,
    Troubles,
)
from support.studies.small import Bowl, spec_with
from support.thoroughness import examples

STUDIES = examples(60)
PARTS = 4
DEADLINE_S = 60.0
ONE_REPORT_S = 15.0
"""The longest time between two reports of these studies."""


def spec_of(**budget: Any) -> StudySpec:
    return spec_with(
        budget={"trials": 12, "per_trial": {"epochs": 9}, **budget},
        resources={"report_deadline": f"{DEADLINE_S:g}s"},
    )


@pytest.fixture
def stores() -> Iterator[list[DisturbedStore]]:
    opened: list[DisturbedStore] = []
    yield opened
    for store in opened:
        store.close()


def disturbed(
    spec: StudySpec, workers: int, stores: list[DisturbedStore], curves: Bowl | None = None
) -> Disturbed:
    store = DisturbedStore.open("sqlite://")
    assert isinstance(store, DisturbedStore)
    stores.append(store)
    return Disturbed(store, spec, curves or Bowl(), workers)


def results(history: History) -> list[tuple[Any, ...]]:
    return [
        (t.number, t.state, t.params, t.seed, t.value, t.resource, t.rung) for t in history.trials
    ]


def spent(history: History) -> float:
    return sum(attempt.gpu_seconds for trial in history.trials for attempt in trial.attempts)


def assert_on_the_books(history: History, sessions: list[Session]) -> None:
    """Every attempt is charged for the time it held its slot, as far as the database can know."""
    attempts = {(a.trial, a.number): a for trial in history.trials for a in trial.attempts}
    assert sorted(attempts) == sorted(key for session in sessions for key in session.own_attempts)
    for session in sessions:
        for key, (began, ended) in session.own_attempts.items():
            assert_charged(attempts[key], began, ended, session)
    for trial in history.trials:
        assert trial.gpu_seconds == pytest.approx(
            sum(attempt.gpu_seconds for attempt in trial.attempts)
        )


def assert_charged(attempt: Attempt, began: float, ended: float, session: Session) -> None:
    slack = (
        session.outages_s + 1e-3
    )  # decided, and ordered or heard of only when the database answered
    least = min(ended, session.last_word) if attempt.note == "its driver died" else ended
    charged = attempt.gpu_seconds
    assert charged >= 0.0
    assert max(0.0, least - began) - slack <= charged <= ended - began + slack, (
        f"{attempt} under {session}"
    )


def assert_time_runs_forward(history: History) -> None:
    for trial in history.trials:
        before = 0.0
        for attempt in trial.attempts:
            assert attempt.ended is not None
            assert before <= attempt.started <= attempt.ended
            before = attempt.ended


def assert_worked(history: History, sessions: list[Session]) -> None:
    """The time that drivers worked is counted, and no other."""
    longest = sum(session.ended - session.began for session in sessions)
    least = sum(max(0.0, s.last_word - s.began - s.outages_s - NOTE_S) for s in sessions)
    assert least - 1e-3 <= history.study.active_seconds <= longest + 1e-3


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(PARTS))
def test_no_disturbed_study_differs_from_one_left_alone_in_what_it_finds_and_charges(part, stores):
    spec = spec_of()
    alone = results(disturbed(spec, 1, stores).drive(Troubles()))
    for seed in range(part, STUDIES, PARTS):
        draw = random.Random(seed)
        workers = draw.choice([1, 1, 3])
        study = disturbed(spec, workers, stores)
        history = study.run(draw)
        told = f"seed {seed}: {[session.how for session in study.sessions]}"
        assert {a.outcome for t in history.trials for a in t.attempts}.isdisjoint(
            {Outcome.FAILED, Outcome.LOST}
        ), told
        assert history.study.reason == "all 12 trials have ended", told
        assert_on_the_books(history, study.sessions)
        assert_time_runs_forward(history)
        assert_worked(history, study.sessions)
        with stores[-1].reading() as connection:
            assert violations(connection) == [], told
        if workers == 1:
            assert results(history) == alone, told
        stores.pop().close()


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("wall_offset", [-7200.0, 0.0, 7200.0])
def test_fifteen_hours_without_a_driver_cost_nothing(how, wall_offset, stores):
    spec = spec_of(gpu_hours=0.25, wall_clock="30m")
    alone = disturbed(spec, 2, stores).drive(Troubles())
    study = disturbed(spec, 2, stores)
    study.drive(Troubles(end=(40, how)))
    assert study.sessions[0].how == how
    study.idle(15 * 3600.0)
    history = study.drive(Troubles(), wall_offset)
    assert history.study.reason == alone.study.reason == "all 12 trials have ended"
    lost_s = {"outage": 120.0 + 10.0, "abandon": 20.0}.get(how, 0.0) + RENEW_S + POLL_S
    # Two slots: trained again, not on record, and another order, in which another trial may go on.
    extra_s = 2 * (lost_s + 3 * ONE_REPORT_S)
    assert abs(spent(history) - spent(alone)) <= extra_s
    assert abs(history.study.active_seconds - alone.study.active_seconds) <= extra_s + NOTE_S


@pytest.mark.parametrize("outage", [40, 41])
def test_workers_have_their_time_to_save_whatever_keeps_the_driver(outage, stores):
    """The database goes away before they are told to stop, or after; trials take longer."""
    spec = spec_of().model_copy(update={"resources": Resources(report_deadline="1h")})
    study = disturbed(spec, 2, stores, Bowl(seconds_per_unit=300.0))
    outages = {outage: 5 * PATIENCE.stop_grace_s}
    history = study.drive(Troubles(end=(40, "interrupt"), outages=outages))
    attempts = [attempt for trial in history.trials for attempt in trial.attempts]
    interrupted = {(a.trial, a.number) for a in attempts if a.outcome is Outcome.INTERRUPTED}
    assert interrupted
    assert interrupted <= set(study.sessions[0].saved)


@pytest.mark.thorough
@pytest.mark.parametrize("seconds", [-3600.0, 3600.0, 20 * 3600.0])
def test_setting_the_clock_of_a_drivers_machine_changes_nothing(seconds, stores):
    spec = spec_of(gpu_hours=0.25, wall_clock="30m")
    alone = disturbed(spec, 2, stores).drive(Troubles())
    set_often = {poll: seconds * (-1) ** n for n, poll in enumerate(range(10, 200, 30))}
    history = disturbed(spec, 2, stores).drive(Troubles(clock_set=set_often))
    assert history.trials == alone.trials
    assert history.study.active_seconds == alone.study.active_seconds
