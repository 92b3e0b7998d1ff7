"""What a broken, silent or locked database does to its users: it is told, nothing is lost, nothing
is written twice."""

import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.history import Changes
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Decision, StudyRecord, StudyState, Trial
from hpsearch.errors import LeaseLost, StoreUnreachable, Unreachable, UserError
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.connecting import waiting
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import Resources
from support.studies.small import Bowl, spec_with

SPEC = spec_with(budget={"trials": 6, "per_trial": {"epochs": 9}})


class Wire:
    """A connection to a server that can be made to swallow everything, or be cut after the next
    question."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.silent = False
        self.cut_at: bytes | None = None
        self._open: list[socket.socket] = []
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._open.append(near)
                far = socket.create_connection(("127.0.0.1", self._to))
                self._open.append(far)
                threading.Thread(target=self._carry, args=(near, far, True), daemon=True).start()
                threading.Thread(target=self._carry, args=(far, near, False), daemon=True).start()

    def _carry(self, source: socket.socket, to: socket.socket, asking: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.silent:
                    continue
                cut = asking and self.cut_at is not None and self.cut_at in data
                if not asking and self.cut_at == b"":
                    self.cut_at = None
                    source.close()
                    to.shutdown(socket.SHUT_RDWR)
                    return
                if cut:
                    self.cut_at = b""  # the question goes through, and its answer does not
                to.sendall(data)
            to.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._accepting.join()  # so that none comes after those that are closed here
        for each in [self._listener, *self._open]:
            each.close()


@pytest.fixture
def wire(postgresql_url: str) -> Iterator[Wire]:
    wire = Wire(make_url(postgresql_url).port or 0)
    yield wire
    wire.close()


@pytest.fixture
def over_the_wire(postgresql_url: str, wire: Wire) -> Iterator[Store]:
    with closing(Store.open(_through(postgresql_url, wire))) as store:
        yield store


def _through(url: str, wire: Wire) -> str:
    return make_url(url).set(port=wire.port).render_as_string(hide_password=False)


def a_study(store: Store) -> StudyRecord:
    return store.create_study(StudyRecord(0, "s", ""))


def decided(number: int) -> Changes:
    return Changes(
        trials=[Trial(number, State.QUEUED, {})],
        decisions=[Decision(number, DecisionKind.START, "why")],
    )


def counted(store: Store, table: str) -> int:
    with store.reading() as connection:
        return int(connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())


def test_a_commit_that_is_repeated_writes_nothing_twice(store: Store) -> None:
    record = a_study(store)
    lease = store.acquire(record.id, "me", 60.0)
    at = store.revision(record.id)
    for _ in range(3):
        store.commit(record.id, decided(0), lease, 60.0, revision=at + 1)
    assert counted(store, "decisions") == 1
    assert store.revision(record.id) == at + 1
    store.commit(record.id, decided(1), lease, 60.0, revision=at + 2)
    assert counted(store, "decisions") == 2


def test_a_commit_whose_answer_is_lost_is_made_once(over_the_wire: Store, wire: Wire) -> None:
    record = a_study(over_the_wire)
    lease = over_the_wire.acquire(record.id, "me", 60.0)
    at = over_the_wire.revision(record.id)
    wire.cut_at = b"COMMIT\0"
    with pytest.raises(StoreUnreachable):
        over_the_wire.commit(record.id, decided(0), lease, 60.0, revision=at + 1)
    assert over_the_wire.revision(record.id) == at + 1, "it came through, and nobody was told"
    over_the_wire.commit(record.id, decided(0), lease, 60.0, revision=at + 1)
    assert counted(over_the_wire, "decisions") == 1


@pytest.mark.parametrize("given", ["soon", "0", "-3", "1.5"])
def test_a_timeout_that_is_none_is_the_users_mistake(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPSEARCH_DATABASE_TIMEOUT", given)
    with pytest.raises(UserError, match="HPSEARCH_DATABASE_TIMEOUT is"):
        waiting.wait_s()


def test_a_server_that_falls_silent_is_told_in_time(
    over_the_wire: Store, wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "answer_s", lambda: 0.3)
    record = a_study(over_the_wire)
    wire.silent = True
    with pytest.raises(StoreUnreachable, match="fell silent"):
        over_the_wire.acquire(record.id, "me", 60.0)
    wire.silent = False
    over_the_wire.acquire(record.id, "me", 60.0)


def driver_of(store: Store, folder: Path, **more: Any) -> tuple[Driver, SimulatedExecutor]:
    history = create_study(store, SPEC, folder)
    executor = SimulatedExecutor(Bowl(), trial_budget(SPEC), workers=2)
    lease = store.acquire(history.study.id, "driver", 1e9)
    study = build_study(history, SPEC)
    return Driver(study, executor, store, lease, clock=executor.clock, **more), executor


def test_a_study_outlives_connections_that_break_in_the_middle_of_commits(
    over_the_wire: Store, wire: Wire, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hpsearch.running.driver.journal.time.sleep", lambda seconds: None)
    ticks = iter(range(10**6))

    def break_now_and_then(*_: object) -> None:
        if next(ticks) % 5 == 2:
            wire.cut_at = b"COMMIT\0"

    driver, _ = driver_of(over_the_wire, tmp_path, watch=break_now_and_then)
    driver.run()
    wire.cut_at = None
    loaded = over_the_wire.load(SPEC.study)
    assert loaded.study.state is StudyState.FINISHED
    with over_the_wire.reading() as connection:
        starts = connection.exec_driver_sql(
            "SELECT trial, count(*) FROM decisions WHERE kind = 'start' GROUP BY trial"
        )
        assert {(trial, count) for trial, count in starts} == {(number, 1) for number in range(6)}


def test_a_driver_without_a_database_ends_resumably_after_a_stated_time(
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with closing(Store.open(sqlite_url)) as store:
        driver, executor = driver_of(store, tmp_path, resources=Resources(database_patience=100.0))

        def gone(*_: Any) -> bool:
            raise StoreUnreachable("the server is gone")

        def sleep(seconds: float) -> None:
            executor.now += seconds

        monkeypatch.setattr(store, "commit", gone)
        monkeypatch.setattr("hpsearch.running.driver.journal.time.sleep", sleep)
        with pytest.raises(
            StoreUnreachable, match=r"the server is gone - waited 1\d\d s for it"
        ) as caught:
            driver.run()
    assert (
        caught.value.hint
        == "everything up to the last report is saved; when it answers again: hpsearch resume plain"
    )
    waits = [record.message for record in caplog.records]
    assert "trying again in 0.1 s" in waits[0]
    assert "trying again in 10.0 s" in waits[-1]


def test_a_driver_says_when_the_database_answers_again(
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A file that another program keeps locked, and then no more."""
    monkeypatch.setenv("HPSEARCH_DATABASE_TIMEOUT", "1")
    monkeypatch.setattr(waiting, "wait_s", lambda: 0.0)
    with closing(Store.open(sqlite_url)) as store:
        driver, _ = driver_of(store, tmp_path)
        path = sqlite_url.removeprefix("sqlite:///")
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            monkeypatch.setattr(
                "hpsearch.running.driver.journal.time.sleep", lambda seconds: other.rollback()
            )
            driver.run()
        assert store.load(SPEC.study).study.state is StudyState.FINISHED
    said = [record.message for record in caplog.records]
    assert "database is locked" in said[0]
    assert "the database answers again" in said[1]


def test_an_owner_that_is_frozen_in_the_middle_of_a_transaction_keeps_nothing_from_its_successor(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HPSEARCH_DATABASE_TIMEOUT", "1")
    with closing(Store.open(postgresql_url)) as frozen:
        study = a_study(frozen)
        lease = frozen.acquire(study.id, "frozen", 0.0)
        with (  # noqa: PT012 - the server ends the transaction
            pytest.raises(StoreUnreachable),
            frozen.writing() as connection,
        ):
            connection.exec_driver_sql("UPDATE studies SET revision = revision + 1")
            monkeypatch.setenv("HPSEARCH_DATABASE_TIMEOUT", "30")
            with closing(Store.open(postgresql_url)) as successor:
                successor.acquire(study.id, "successor", 10.0)
        with pytest.raises(LeaseLost):
            frozen.commit(study.id, decided(1), lease, 10.0)


def test_a_query_that_never_ends_blocks_no_study(store: Store, tmp_path: Path) -> None:
    driver, _ = driver_of(store, tmp_path)
    with closing(Store.open(store.url)) as other, other.reading() as connection:
        before = connection.exec_driver_sql("SELECT count(*) FROM reports").scalar_one()
        driver.run()
        assert (
            connection.exec_driver_sql("SELECT count(*) FROM reports").scalar_one() == before == 0
        )
    assert store.load(SPEC.study).study.state is StudyState.FINISHED


def file_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


def test_a_driver_whose_file_is_gone_makes_no_other_and_can_be_resumed_once_it_is_back(
    sqlite_url: str, tmp_path: Path
) -> None:
    file = file_of(sqlite_url)
    ticks = iter(range(10**6))

    def move_away(*_: object) -> None:
        if next(ticks) == 10:
            for suffix in ("", "-wal", "-shm"):
                Path(f"{file}{suffix}").rename(f"{file}.moved{suffix}")

    with closing(Store.open(sqlite_url)) as store:
        driver, _ = driver_of(
            store, tmp_path, watch=move_away, resources=Resources(database_patience=0.001)
        )
        with pytest.raises(StoreUnreachable, match="the file was removed") as caught:
            driver.run()
    assert caught.value.exit_code == 3
    assert not file.exists()
    with closing(Store.open(f"{sqlite_url}.moved", create=False)) as found:
        at = found.revision(driver.study.history.study.id)
        assert at == driver.journal.revision, "every commit is in it"


def test_a_reader_sees_the_file_that_was_put_in_its_place(sqlite_url: str, tmp_path: Path) -> None:
    file, other = file_of(sqlite_url), tmp_path / "other.db"
    with closing(Store.open(f"sqlite:///{other}")) as elsewhere:
        elsewhere.create_study(StudyRecord(0, "new", ""))
    Store.open(sqlite_url).close()
    with closing(Store.open(sqlite_url)) as reader:
        assert reader.study_names() == []
        for suffix in ("-wal", "-shm"):
            Path(f"{file}{suffix}").unlink()
        other.rename(file)
        assert reader.study_names() == ["new"]
        file.unlink()
        with pytest.raises(StoreUnreachable, match="the file was removed"):
            reader.study_names()
        assert not file.exists()


def test_a_database_restored_to_an_older_state_is_noticed(store: Store) -> None:
    record = a_study(store)
    lease = store.acquire(record.id, "me", 60.0)
    for number in range(5):
        store.commit(record.id, decided(number), lease, 60.0, revision=number + 1)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE studies SET revision = 2")
    with pytest.raises(Unreachable, match="a backup was restored"):
        store.commit(record.id, decided(5), lease, 60.0, revision=6)


@pytest.mark.parametrize(
    ("option", "reason", "remedy"),
    [
        ("role%3Dpg_read_all_data", "permission denied", "role"),
        ("default_transaction_read_only%3Don", "read-only transaction", "standby"),
    ],
)
def test_who_may_only_read_can_read_and_is_refused_plainly(
    option: str, reason: str, remedy: str, postgresql_url: str
) -> None:
    with closing(Store.open(postgresql_url)) as store:
        record = a_study(store)
    with closing(Store.open(f"{postgresql_url}%20-c{option}")) as store:
        assert store.study_names() == ["s"]
        with pytest.raises(StoreUnreachable, match=reason) as caught:
            store.acquire(record.id, "me", 60.0)
        assert remedy in str(caught.value.hint)
