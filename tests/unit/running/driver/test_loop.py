"""The loop: what is decided is on record before it is ordered, and a driver that lost its study
writes nothing."""

import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.domain import events as ev
from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import Changes, History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import Outcome, Request, StudyState
from hpsearch.errors import Damaged, LeaseLost, StoreUnreachable
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.journal import Journal
from hpsearch.running.driver.loop import Driver, SteadyClock
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import Resources, StudySpec
from support.running.leases import let_pass
from support.studies.small import Bowl, budget_of, spec_with

START = 1_000_000.0


class Witness(SimulatedExecutor):
    """A simulated executor that looks into the database whenever it is told something."""

    def __init__(self, spec: StudySpec, path: Path, workers: int = 2) -> None:
        super().__init__(Bowl(), trial_budget(spec), workers)
        self.now = START
        self._connection = sqlite3.connect(path)
        self.seen = 0
        self.sent: list[ev.Command] = []
        self.words: list[tuple[int, int, float]] = []

    def _on_record(self, query: str, *values: Any) -> None:
        self.seen += 1
        assert self._connection.execute(query, values).fetchone(), (
            f"not on record: {query} {values}"
        )

    def launch(self, order: ev.Launch) -> None:
        live = "SELECT 1 FROM attempts WHERE trial = ? AND number = ? AND ended IS NULL"
        self._on_record(live, order.trial, order.attempt)
        self._on_record("SELECT 1 FROM trials WHERE number = ? AND state = 'running'", order.trial)
        self._on_record("SELECT 1 FROM decisions WHERE trial = ?", order.trial)
        self.sent.append(order)
        super().launch(order)

    def advance(self, order: ev.Advance) -> None:
        self._on_record(
            "SELECT 1 FROM reports WHERE trial = ? AND resource < ?", order.trial, order.until
        )
        self.sent.append(order)
        super().advance(order)

    def stop(self, order: ev.Stop) -> None:
        self.sent.append(order)
        if not order.save:
            query = "SELECT 1 FROM trials WHERE number = ? AND state != 'running'"
            self._on_record(query, order.trial)
        super().stop(order)

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        query = "SELECT 1 FROM reports WHERE trial = ? AND attempt = ? AND resource = ?"
        self._on_record(query, trial, attempt, resource)
        self.words.append((trial, attempt, resource))
        super().recorded(trial, attempt, resource)


@pytest.fixture
def spec() -> StudySpec:
    return spec_with(budget=budget_of(12))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store.open(f"sqlite:///{tmp_path}/study.db")) as opened:
        yield opened


@pytest.fixture
def executor(spec: StudySpec, tmp_path: Path, store: Store) -> Iterator[Witness]:
    witness = Witness(spec, tmp_path / "study.db")
    yield witness
    witness._connection.close()


def driver_of(
    store: Store, spec: StudySpec, history: History, executor: Witness, **more: Any
) -> Driver:
    lease = store.acquire(history.study.id, "first", 1e9)
    return Driver(build_study(history, spec), executor, store, lease, clock=executor.clock, **more)


def test_everything_is_on_record_before_it_is_ordered(store, spec, executor, tmp_path):
    history = create_study(store, spec, tmp_path)
    driver_of(store, spec, history, executor).run()
    assert executor.seen > 3 * 12
    loaded = store.load(spec.study)
    on_record = [
        (report.trial, report.attempt, report.resource)
        for trial in loaded.trials
        for report in trial.reports.values()
    ]
    assert sorted(executor.words) == sorted(on_record), "each report is acknowledged once"
    assert loaded.study.state is StudyState.FINISHED
    assert loaded.trials == history.trials


def test_a_tick_is_committed_once_and_so_is_the_end(store, spec, executor, tmp_path, monkeypatch):
    history = create_study(store, spec, tmp_path)
    driver = driver_of(store, spec, history, executor)
    said: list[str] = []
    poll, commit = executor.poll, store.commit

    def polled(timeout_s: float) -> list[ev.Event]:
        said.append("poll")
        return poll(timeout_s)

    def committed(*arguments: Any) -> Any:
        said.append("commit")
        return commit(*arguments)

    monkeypatch.setattr(executor, "poll", polled)
    monkeypatch.setattr(store, "commit", committed)
    driver.run()
    *ticks, last = "".join(word[0] for word in said).split("p")
    assert {*ticks} == {"", "c"}
    assert last == "cc", "the study ended with it, and was closed"


def test_a_watcher_sees_every_change_once(store, spec, executor, tmp_path):
    seen: list[Changes] = []
    history = create_study(store, spec, tmp_path)
    driver_of(
        store, spec, history, executor, watch=lambda study, changes, now: seen.append(changes)
    ).run()
    reports = [(r.trial, r.resource) for changes in seen for r in changes.reports]
    assert len(reports) == len(set(reports)) == sum(len(t.reports) for t in history.trials)


def after_ticks(count: int, then: Callable[[], object]) -> Callable[..., None]:
    """A watcher that does something once, after so many ticks."""
    ticks = iter(range(10**6))

    def watch(study: object, changes: object, now: float) -> None:
        if next(ticks) == count:
            then()

    return watch


def test_a_driver_whose_study_was_taken_over_writes_nothing_more(store, spec, executor, tmp_path):
    history = create_study(store, spec, tmp_path)
    taken: list[Lease] = []

    def take_over() -> None:
        with closing(Store.open(store.url)) as other:
            let_pass(other, 2e9)
            taken.append(other.acquire(history.study.id, "second", 1e9))

    driver = driver_of(store, spec, history, executor, watch=after_ticks(40, take_over))
    with pytest.raises(LeaseLost):
        driver.run()
    holder = store.holder(spec.study)
    assert holder is not None
    assert holder.owner == "second"
    on_record = store.load(spec.study)
    assert sum(len(t.reports) for t in on_record.trials) < sum(
        len(t.reports) for t in history.trials
    ), "what it saw after is lost"


def test_a_database_that_does_not_answer_for_a_while_is_waited_for(
    store, spec, executor, tmp_path, monkeypatch
):
    monkeypatch.setattr("hpsearch.running.driver.journal.time.sleep", lambda seconds: None)
    history = create_study(store, spec, tmp_path)
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


def test_a_database_that_is_damaged_is_not_waited_for(spec, executor, tmp_path, monkeypatch):
    def impatient(seconds: float) -> None:
        raise AssertionError("waiting mends no damage")

    monkeypatch.setattr("hpsearch.running.driver.journal.time.sleep", impatient)
    with closing(Store.open(f"sqlite:///{tmp_path}/study.db")) as store:
        history = create_study(store, spec, tmp_path)
        driver = driver_of(
            store,
            spec,
            history,
            executor,
            watch=after_ticks(3, lambda: ruin(tmp_path / "study.db")),
        )
        with pytest.raises(Damaged, match="malformed"):
            driver.run()


def ruin(database: Path) -> None:
    """Let a table begin on a page that is not there."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute("UPDATE sqlite_schema SET rootpage = 99999 WHERE name = 'trials'")
        connection.execute("PRAGMA schema_version = 99999")


def test_a_stop_that_is_asked_for_ends_the_study_resumably(store, spec, executor, tmp_path):
    history = create_study(store, spec, tmp_path)
    driver = driver_of(
        store,
        spec,
        history,
        executor,
        watch=after_ticks(6, lambda: store.request_stop(spec.study, "ann@desk")),
    )
    driver.run()
    found = store.load(spec.study).study
    assert found.state is StudyState.INTERRUPTED
    assert found.reason == "stopped by ann@desk"
    asked = store.find_request(1)
    assert (asked.kind, asked.origin) == (RequestKind.INTERRUPT, "ann@desk")
    assert asked.handled is not None
    assert asked.refused is None


@pytest.mark.parametrize("by_flag", [True, False])
def test_a_study_stops_by_the_request_alone_too_and_gives_up_on_workers_that_do_not_save(
    store, spec, executor, tmp_path, by_flag
):
    history = create_study(store, spec, tmp_path)
    executor.stop = lambda order: None  # type: ignore[method-assign]  # nobody saves
    request = Request(0, RequestKind.INTERRUPT, {}, "ann@desk", 1.0)

    def ask() -> None:
        store.request_stop(spec.study) if by_flag else store.add_request(spec.study, request)

    executor._curves = Bowl(seconds_per_unit=1e6)
    resources = Resources(stop_grace=5.0)
    watch = after_ticks(1, ask)
    driver_of(store, spec, history, executor, resources=resources, watch=watch).run()
    loaded = store.load(spec.study)
    assert loaded.study.state is StudyState.INTERRUPTED
    assert {trial.state for trial in loaded.trials} == {State.QUEUED}


@pytest.mark.parametrize("grace_s", [5.0, 500.0])
def test_an_interrupted_study_waits_for_workers_that_save_as_long_as_its_file_says(
    store, spec, executor, tmp_path, grace_s
):
    history = create_study(store, spec, tmp_path)
    executor.stop = lambda order: None  # type: ignore[method-assign]  # nobody saves
    resources = Resources(stop_grace=grace_s)
    watch = after_ticks(1, lambda: driver.request_stop())  # trials run by then
    driver = driver_of(store, spec, history, executor, resources=resources, watch=watch)
    executor._curves = Bowl(seconds_per_unit=1e6)
    driver.run()
    loaded = store.load(spec.study)
    assert loaded.study.state is StudyState.INTERRUPTED
    assert loaded.study.ended is not None
    assert grace_s < loaded.study.ended - START <= grace_s + 5
    assert {trial.state for trial in loaded.trials} == {State.QUEUED}


def ask_by_signal(driver: Driver, store: Store, name: str) -> None:
    driver.request_stop()


def ask_from_elsewhere(driver: Driver, store: Store, name: str) -> None:
    store.request_stop(name)


@pytest.mark.parametrize("ask", [ask_by_signal, ask_from_elsewhere])
@pytest.mark.parametrize("error", [LeaseLost("taken over"), StoreUnreachable("the server is gone")])
def test_nobody_is_told_to_stop_by_a_driver_that_cannot_write(
    store, spec, executor, tmp_path, monkeypatch, ask, error
):
    history = create_study(store, spec, tmp_path)
    sent_before: list[int] = []
    write = Journal.write

    def write_or_fail(journal: Journal, *arguments: Any) -> bool:
        if driver.study.phase is Phase.INTERRUPTED:
            sent_before.append(len(executor.sent))
            raise error
        return write(journal, *arguments)

    monkeypatch.setattr(Journal, "write", write_or_fail)
    watch = after_ticks(6, lambda: ask(driver, store, spec.study))
    driver = driver_of(store, spec, history, executor, watch=watch)
    with pytest.raises(type(error)):
        driver.run()
    assert len(executor.sent) == sent_before[0]
    assert not any(isinstance(order, ev.Stop) and order.save for order in executor.sent)


def test_a_stop_is_acted_on_without_waiting_for_events(store, spec, executor, tmp_path):
    history = create_study(store, spec, tmp_path)
    executor._curves = Bowl(seconds_per_unit=1e6)
    watch = after_ticks(1, lambda: driver.request_stop())
    driver = driver_of(store, spec, history, executor, watch=watch, poll_s=3600.0)
    driver.run()
    assert executor.now == START
    assert store.load(spec.study).study.state is StudyState.INTERRUPTED


def test_a_driver_that_dies_before_it_acknowledges_costs_disk_and_no_data(
    store, spec, executor, tmp_path
):
    """It dies between the two: all that the database names is still there."""

    def die() -> None:
        raise KeyboardInterrupt

    history = create_study(store, spec, tmp_path)
    driver = driver_of(store, spec, history, executor, watch=after_ticks(12, die))
    with pytest.raises(KeyboardInterrupt):
        driver.run()
    named = [trial for trial in store.load(spec.study).trials if trial.checkpoint is not None]
    assert named
    for trial in named:
        assert trial.checkpoint in executor.checkpoints[trial.number]


@pytest.mark.parametrize("seconds", [-3600.0, 3600.0])
def test_a_steady_clock_starts_with_the_machines_and_is_not_set_with_it(seconds):
    wall, passing = 1000.0, 17.0
    clock = SteadyClock(wall=lambda: wall, passing=lambda: passing)
    assert clock() == 1000.0
    wall += seconds
    passing += 5.0
    assert clock() == 1005.0


def test_a_studys_time_does_not_run_backwards_from_driver_to_driver():
    def passing() -> float:
        return 17.0

    assert SteadyClock(not_before=1600.0, wall=lambda: 1000.0, passing=passing)() == 1600.0
    assert SteadyClock(not_before=400.0, wall=lambda: 1000.0, passing=passing)() == 1000.0


def test_a_driver_that_is_stopped_between_listening_and_deciding_takes_no_trial_for_hung(
    store, spec, executor, tmp_path
):
    history = create_study(store, spec, tmp_path)
    driver = driver_of(store, spec, history, executor)
    decide = driver._tick
    ticks = itertools.count()

    def stopped(events: list[ev.Event]) -> None:
        if next(ticks) % 5 == 4:
            executor.now += 2 * spec.resources.report_deadline_s
        decide(events)

    driver._tick = stopped  # type: ignore[method-assign]
    driver.run()
    assert all(trial.state is not State.FAILED for trial in history.trials)


def test_a_signal_that_reaches_the_workers_before_the_driver_knows_of_it_costs_no_retry(
    store, spec, executor, tmp_path
):
    history = create_study(store, spec, tmp_path)
    driver = driver_of(store, spec, history, executor, resources=Resources(retries=0))
    poll = executor.poll

    def signalled(timeout_s: float) -> list[ev.Event]:
        events = poll(timeout_s)
        if not driver.study.running:
            return events
        driver.request_stop()
        keys = [(live.attempt.trial, live.attempt.number) for live in driver.study.running.values()]
        return [*events, *(ev.Stopped(*key, why="SIGTERM", signalled=True) for key in keys)]

    executor.poll = signalled  # type: ignore[method-assign]
    driver.run()
    outcomes = {attempt.outcome for trial in history.trials for attempt in trial.attempts}
    assert outcomes == {Outcome.INTERRUPTED}
