"""The loop: what is decided is on record before it is ordered, and a driver that lost its study writes nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hpsearch import events as ev
from hpsearch import wiring
from hpsearch.driver import Driver, Patience
from hpsearch.errors import LeaseLost, StoreUnreachable
from hpsearch.executors.simulated import SimulatedExecutor
from hpsearch.levels import trial_budget
from hpsearch.lifecycle import State
from hpsearch.records import Changes, History, StudyState
from hpsearch.spec import StudySpec
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from studies import Bowl, spec_with

START = 1_000_000.0


class Witness(SimulatedExecutor):
    """A simulated executor that looks into the database whenever it is ordered to do something."""

    def __init__(self, spec: StudySpec, path: Path, workers: int = 2) -> None:
        super().__init__(Bowl(), trial_budget(spec), workers)
        self.now = START
        self._connection = sqlite3.connect(path)
        self.seen = 0

    def _on_record(self, query: str, *values: Any) -> None:
        self.seen += 1
        assert self._connection.execute(query, values).fetchone(), f"not on record: {query} {values}"

    def launch(self, order: ev.Launch) -> None:
        live = "SELECT 1 FROM attempts WHERE trial = ? AND number = ? AND ended IS NULL"
        self._on_record(live, order.trial, order.attempt)
        self._on_record("SELECT 1 FROM trials WHERE number = ? AND state = 'running'", order.trial)
        self._on_record("SELECT 1 FROM decisions WHERE trial = ?", order.trial)
        super().launch(order)

    def advance(self, order: ev.Advance) -> None:
        self._on_record("SELECT 1 FROM reports WHERE trial = ? AND resource < ?", order.trial, order.until)
        super().advance(order)

    def stop(self, order: ev.Stop) -> None:
        self._on_record("SELECT 1 FROM trials WHERE number = ? AND state != 'running'", order.trial)
        super().stop(order)


@pytest.fixture
def spec() -> StudySpec:
    return spec_with(budget={"trials": 12, "per_trial": {"epochs": 9}})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path}/study.db")) as opened:
        yield opened


@pytest.fixture
def executor(spec: StudySpec, tmp_path: Path, store: Store) -> Iterator[Witness]:
    witness = Witness(spec, tmp_path / "study.db")
    yield witness
    witness._connection.close()


def driver_of(store: Store, spec: StudySpec, history: History, executor: Witness, **more: Any) -> Driver:
    lease = store.acquire(history.study.id, "first", executor.now, 1e9)
    return Driver(wiring.build_study(store, history, spec), executor, store, lease, clock=executor.clock, **more)


def test_everything_is_on_record_before_it_is_ordered(
    store: Store, spec: StudySpec, executor: Witness, tmp_path: Path
) -> None:
    history = wiring.create_study(store, spec, tmp_path)
    driver_of(store, spec, history, executor).run()
    assert executor.seen > 3 * 12
    loaded = store.load(spec.study)
    assert loaded.study.state is StudyState.FINISHED
    assert loaded.trials == history.trials


def test_a_watcher_sees_every_change_once(store: Store, spec: StudySpec, executor: Witness, tmp_path: Path) -> None:
    seen: list[Changes] = []
    history = wiring.create_study(store, spec, tmp_path)
    driver_of(store, spec, history, executor, watch=lambda study, changes, now: seen.append(changes)).run()
    reports = [(r.trial, r.resource) for changes in seen for r in changes.reports]
    assert len(reports) == len(set(reports)) == sum(len(t.reports) for t in history.trials)


def after_ticks(count: int, then: Callable[[], object]) -> Callable[..., None]:
    """A watcher that does something once, after so many ticks."""
    ticks = iter(range(10**6))

    def watch(study: object, changes: object, now: float) -> None:
        if next(ticks) == count:
            then()

    return watch


def test_a_driver_whose_study_was_taken_over_writes_nothing_more(
    store: Store, spec: StudySpec, executor: Witness, tmp_path: Path
) -> None:
    history = wiring.create_study(store, spec, tmp_path)
    taken: list[Lease] = []

    def take_over() -> None:
        with closing(Store.open(store.url)) as other:
            taken.append(other.acquire(history.study.id, "second", executor.now + 2e9, 1e9))

    driver = driver_of(store, spec, history, executor, watch=after_ticks(40, take_over))
    with pytest.raises(LeaseLost):
        driver.run()
    holder = store.holder(spec.study)
    assert holder is not None
    assert holder.owner == "second"
    on_record = store.load(spec.study)
    assert sum(len(t.reports) for t in on_record.trials) < sum(len(t.reports) for t in history.trials), (
        "what it saw after is lost"
    )


def test_a_database_that_does_not_answer_for_a_while_is_waited_for(
    store: Store, spec: StudySpec, executor: Witness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpsearch.driver.time.sleep", lambda seconds: None)
    history = wiring.create_study(store, spec, tmp_path)
    driver = driver_of(store, spec, history, executor)
    commit, calls = store.commit, iter(range(10**6))

    def trouble(*arguments: Any) -> bool:
        if next(calls) % 3:
            raise StoreUnreachable("the server is starting up")
        return commit(*arguments)

    monkeypatch.setattr(store, "commit", trouble)
    driver.run()
    monkeypatch.undo()
    assert store.load(spec.study).trials == history.trials


def test_a_stop_that_is_asked_for_ends_the_study_resumably(
    store: Store, spec: StudySpec, executor: Witness, tmp_path: Path
) -> None:
    history = wiring.create_study(store, spec, tmp_path)
    executor.stop = super(Witness, executor).stop  # type: ignore[method-assign]  # stopped while still running
    driver = driver_of(store, spec, history, executor, watch=after_ticks(6, lambda: store.request_stop(spec.study)))
    driver.run()
    assert store.load(spec.study).study.state is StudyState.INTERRUPTED


@pytest.mark.parametrize("grace_s", [5.0, 500.0])
def test_an_interrupted_study_waits_for_workers_that_save_as_long_as_its_file_says(
    store: Store, spec: StudySpec, executor: Witness, tmp_path: Path, grace_s: float
) -> None:
    history = wiring.create_study(store, spec, tmp_path)
    executor.stop = lambda order: None  # type: ignore[method-assign]  # nobody saves
    patience = Patience(workers_s=grace_s)
    driver = driver_of(store, spec, history, executor, patience=patience)
    executor._curves = Bowl(seconds_per_unit=1e6)
    driver.request_stop()
    driver.run()
    loaded = store.load(spec.study)
    assert loaded.study.state is StudyState.INTERRUPTED
    assert loaded.study.ended is not None
    assert grace_s < loaded.study.ended - START <= grace_s + 5
    assert {trial.state for trial in loaded.trials} == {State.QUEUED}
