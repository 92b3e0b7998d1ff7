"""What every database must do for a study: keep all of it, whole or not at all, for one driver at a
time."""

import math
import threading
import time

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from hpsearch.domain.facts import DecisionKind, ErrorKind, RequestKind, Role
from hpsearch.domain.history import Changes, History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import (
    Attempt,
    Decision,
    Environment,
    Outcome,
    ReportRecord,
    Request,
    StudyRecord,
    StudyState,
    Trial,
)
from hpsearch.errors import LeaseLost, StudyExists, StudyHeld, StudyNotFound
from hpsearch.store import schema
from hpsearch.store.store import Store
from support.running.leases import let_pass

NASTY = "naïve ☃ 𝄞 NUL:\0 half:\ud800 quote:'\" percent:%s %(x)s \\u0000"
TTL_S = 6000.0


def new_study(store: Store, name: str = "a-study") -> History:
    return History(store.create_study(StudyRecord(0, name, "study: a-study\n", created=1.0)))


def save(store: Store, history: History) -> None:
    store.commit(history.study.id, history.drain())


def assert_same(loaded: History, expected: History) -> None:
    assert loaded.study == expected.study
    assert loaded.trials == expected.trials


def a_trial_with_every_field() -> Trial:
    return Trial(
        0,
        State.PAUSED,
        {
            "zeta": 1e23,
            "alpha": -0.0,
            "kind": "adam",
            "none": None,
            "flag": False,
            "n": 2**60,
            "top": math.inf,
        },
        seed=2**63 - 1,
        value=-math.inf,
        resource=0.1 + 0.2,
        rung=2,
        error_kind=ErrorKind.ERROR,
        error_text="Traceback ☃",
        checkpoint="/checkpoints/0",
        gpu_seconds=0.1,
        cost=1e-300,
        speed=1.7976931348623157e308,
        created=1.5,
        started=2.5,
        ended=3.5,
        role=Role.CONFIRM,
        repeats=3,
        values=[1.0, math.inf],
        best_checkpoint="/checkpoints/0/best",
        checkpoint_bytes=2**60,
        distributions={
            "zeta": FloatDistribution(1e-5, 1e30, log=True),
            "n": IntDistribution(0, 2**61, step=2),
            "kind": CategoricalDistribution(["adam", "sgd", None, 1.5, True]),
        },
        user_attrs={"nested": {"text": ["☃"]}},
        system_attrs={"half": "\\ud800"},
    )


def test_everything_about_a_study_comes_back(store):
    study = StudyRecord(
        0,
        "päper-7",
        "study: päper\n# ☃\n",
        directions=("minimize", "maximize"),
        state=StudyState.INTERRUPTED,
        reason="stopped by hand",
        created=1753900000.123456,
        ended=1753900001.5,
        active_seconds=12.25,
        user_attrs={"z": 1, "a": [1, {"deep": None}], "größe ☃": NASTY.replace("\0", "")[:9]},
        system_attrs={"$float": "not a float", "big": 10**40, "inf": -math.inf, "on": True},
    )
    history = History(store.create_study(study))
    history.add_trial(a_trial_with_every_field())
    history.add_attempt(
        Attempt(
            0,
            1,
            "w-1",
            2.5,
            start_resource=1.0,
            reserved_gpu_seconds=60.0,
            node="n-1",
            device="cuda:0",
            ended=3.5,
            outcome=Outcome.LOST,
            gpu_seconds=1.0,
            note="node died",
        )
    )
    history.add_attempt(Attempt(0, 2, "w-2", 4.0))
    history.add_report(
        ReportRecord(0, 1 / 3, 0.5, {"loss": -math.inf}, attempt=1, step=2**40, elapsed=1.5)
    )
    history.add_report(ReportRecord(0, 2.0, None, {}, created=9.0))
    history.touch_study()
    save(store, history)

    loaded = store.load("päper-7")
    assert_same(loaded, history)
    assert list(loaded.trials[0].params) == ["zeta", "alpha", "kind", "none", "flag", "n", "top"]
    assert math.copysign(1, loaded.trials[0].params["alpha"]) == -1
    assert isinstance(loaded.trials[0].params["zeta"], float)


def test_what_is_not_a_number_is_kept_in_metrics_and_absent_as_a_value(store):
    history = new_study(store)
    history.add_trial(Trial(0, State.RUNNING, {}, value=math.nan))
    history.add_report(ReportRecord(0, 1.0, math.nan, {"loss": math.nan}))
    save(store, history)
    (trial,) = store.load("a-study").trials
    assert trial.value is None
    assert trial.reports[1.0].value is None
    assert math.isnan(trial.reports[1.0].metrics["loss"])


def test_words_from_anywhere_are_stored_readably(store):
    history = new_study(store)
    history.add_trial(Trial(0, State.FAILED, {}, error_text=NASTY, checkpoint=NASTY))
    history.add_attempt(Attempt(0, 1, NASTY, 0.0, note=NASTY))
    history.add_decision(Decision(0, DecisionKind.FAIL, NASTY))
    save(store, history)
    (trial,) = store.load("a-study").trials
    readable = "naïve ☃ 𝄞 NUL:\\x00 half:\\ud800 quote:'\" percent:%s %(x)s \\u0000"
    assert (
        trial.error_text
        == trial.checkpoint
        == trial.attempts[0].note
        == trial.attempts[0].worker
        == readable
    )


def test_decisions_and_environments_are_written_once_each(store):
    history = new_study(store)
    history.add_trial(Trial(0, State.RUNNING, {}))
    history.add_decision(
        Decision(0, DecisionKind.START, "its turn", resource=1.0, against=[3, 1], created=5.0)
    )
    history.add_environment(Environment(4.0, "abc", {"torch": "2"}, "H200"))
    save(store, history)
    save(store, history)
    with store.reading() as connection:
        (decision,) = connection.execute(select(schema.decisions)).mappings()
        (environment,) = connection.execute(select(schema.environments)).mappings()
    assert (decision["trial"], decision["why"], decision["against"]) == (0, "its turn", [3, 1])
    assert (environment["revision"], environment["packages"]) == ("abc", {"torch": "2"})


def test_a_name_is_given_once(store):
    new_study(store)
    with pytest.raises(StudyExists, match="hpsearch resume a-study"):
        new_study(store)
    assert store.study_names() == ["a-study"]


def test_a_deleted_study_is_gone_with_all_its_rows_and_its_id_is_not_used_again(store):
    history = new_study(store)
    history.add_trial(Trial(0, State.RUNNING, {}))
    history.add_attempt(Attempt(0, 1, "w", 0.0))
    history.add_report(ReportRecord(0, 1.0, 1.0, {}))
    history.add_decision(Decision(0, DecisionKind.START, "its turn"))
    history.add_environment(Environment(0.0, None, {}, "cpu"))
    save(store, history)
    store.delete_study(history.study.id)
    with store.reading() as connection:
        for table in schema.metadata.sorted_tables:
            assert connection.execute(select(table)).all() == []
    with pytest.raises(StudyNotFound):
        store.delete_study(history.study.id)
    with pytest.raises(StudyNotFound):
        store.refresh(history, 1)
    with pytest.raises(StudyNotFound):
        save(store, history)
    assert new_study(store).study.id > history.study.id


def test_a_live_lease_keeps_others_out_and_tells_who_has_it(store):
    study_id = new_study(store).study.id
    store.acquire(study_id, "host-1:17", TTL_S)
    let_pass(store, TTL_S / 2)
    with pytest.raises(StudyHeld, match=r"host-1:17 since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"):
        store.acquire(study_id, "host-2:18", TTL_S)


def test_people_are_shown_who_has_it_without_what_makes_that_certain(store):
    study_id = new_study(store).study.id
    lost = store.acquire(study_id, "ada@gpu-1:17#b-00t/4026531836/99", TTL_S)
    with pytest.raises(StudyHeld, match=r"driven by ada@gpu-1:17 since"):
        store.acquire(study_id, "ada@gpu-1:17#b-00t/4026531999/99", TTL_S)
    let_pass(store, TTL_S)
    store.acquire(study_id, "bob@gpu-2:1#c-00t/4026531836/5", TTL_S)
    with pytest.raises(LeaseLost, match=r"ada@gpu-1:17 does not own .*: bob@gpu-2:1 took it"):
        store.renew(lost, TTL_S, 0.0)


def test_a_lease_ends_by_the_databases_clock_and_no_other(store, monkeypatch):
    study_id = new_study(store).study.id
    a_day_ahead = time.time() + 86_400.0
    monkeypatch.setattr(time, "time", lambda: a_day_ahead)
    lease = store.acquire(study_id, "one", TTL_S)
    by_the_database = text("SELECT EXTRACT(EPOCH FROM clock_timestamp())")
    if store.url.startswith("sqlite"):
        by_the_database = text("SELECT (julianday('now') - 2440587.5) * 86400")
    with store.reading() as connection:
        now = float(connection.execute(by_the_database).scalar_one())
    assert lease.since <= now + 0.001 < lease.expires
    assert lease.expires - lease.since == pytest.approx(TTL_S, abs=0.1)
    assert lease.live
    let_pass(store, TTL_S)
    held = store.holder("a-study")
    assert held is not None
    assert not held.live


def test_a_live_lease_keeps_out_also_whoever_has_its_owners_name(store):
    study_id = new_study(store).study.id
    store.acquire(study_id, "root@host:1", TTL_S)
    with pytest.raises(StudyHeld):
        store.acquire(study_id, "root@host:1", TTL_S)


def test_an_expired_lease_is_taken_over_with_a_higher_epoch(store):
    study_id = new_study(store).study.id
    first = store.acquire(study_id, "one", TTL_S)
    let_pass(store, TTL_S)
    second = store.acquire(study_id, "two", TTL_S)
    assert second.epoch > first.epoch
    assert store.holder("a-study") == second


def test_a_renewed_lease_lasts_longer(store):
    study_id = new_study(store).study.id
    lease = store.acquire(study_id, "one", TTL_S)
    let_pass(store, 0.9 * TTL_S)
    assert store.renew(lease, TTL_S, 50.0).stop_requested is False
    let_pass(store, 0.9 * TTL_S)
    store.commit(study_id, Changes(), lease, TTL_S, 100.0)
    let_pass(store, 0.9 * TTL_S)
    with pytest.raises(StudyHeld):
        store.acquire(study_id, "two", TTL_S)


def test_a_released_lease_is_free_at_once_and_nobody_holds_it(store):
    study_id = new_study(store).study.id
    assert store.holder("a-study") is None
    lease = store.acquire(study_id, "one", TTL_S)
    store.release(lease)
    assert store.holder("a-study") is None
    store.acquire(study_id, "two", TTL_S)
    store.release(lease)
    held = store.holder("a-study")
    assert held is not None
    assert held.owner == "two"


def test_whoever_takes_a_study_over_learns_when_its_last_driver_lived(store):
    """By that driver's own clock, which may differ from the database's, and however it ended."""
    study_id = new_study(store).study.id
    first = store.acquire(study_id, "one", TTL_S)
    assert first.alive_at is None
    store.renew(first, TTL_S, 50.0)
    store.release(first)
    second = store.acquire(study_id, "two", TTL_S)
    assert second.alive_at == 50.0
    store.release(second)  # it ended before it had taken up what ran: that has cost nothing since
    third = store.acquire(study_id, "three", TTL_S)
    assert third.alive_at == 50.0
    store.commit(study_id, Changes(), third, TTL_S, 70.0)
    store.commit(study_id, Changes(), third)
    let_pass(store, TTL_S)
    assert store.acquire(study_id, "four", TTL_S).alive_at == 70.0


@pytest.mark.parametrize("same_name", [False, True])
def test_a_driver_that_was_taken_over_writes_nothing_more(store, same_name):
    history = new_study(store)
    study_id = history.study.id
    zombie = store.acquire(study_id, "one", TTL_S)
    let_pass(store, TTL_S)
    store.acquire(study_id, "one" if same_name else "two", TTL_S)
    before = store.load("a-study")
    history.add_trial(Trial(0, State.RUNNING, {}))
    history.study.reason = "written by a zombie"
    history.touch_study()
    with pytest.raises(LeaseLost):
        store.commit(study_id, history.drain(), zombie, TTL_S, 2001.0)
    with pytest.raises(LeaseLost):
        store.renew(zombie, TTL_S, 2001.0)
    assert_same(store.load("a-study"), before)


def test_without_a_lease_a_study_that_is_driven_cannot_be_written(store):
    history = new_study(store)
    store.acquire(history.study.id, "one", TTL_S)
    with pytest.raises(StudyHeld, match="one"):
        store.commit(history.study.id, Changes(study=history.study))
    let_pass(store, TTL_S)
    store.commit(history.study.id, Changes(study=history.study))


def test_a_driver_whose_lease_ran_out_does_not_overwrite_what_was_written_since(store):
    history = new_study(store)
    lease = store.acquire(history.study.id, "one", TTL_S)
    let_pass(store, TTL_S)
    store.commit(history.study.id, Changes(study=history.study))
    with pytest.raises(LeaseLost, match="its lease ended"):
        store.commit(history.study.id, Changes(), lease, TTL_S, 2001.0)


def test_a_request_to_stop_reaches_the_driver_with_its_next_write(store):
    study_id = new_study(store).study.id
    lease = store.acquire(study_id, "one", TTL_S)
    assert store.commit(study_id, Changes(), lease, TTL_S, 1.0).stop_requested is False
    store.request_stop("a-study")
    assert store.commit(study_id, Changes(), lease, TTL_S, 2.0).stop_requested is True
    assert store.renew(lease, TTL_S, 3.0).stop_requested is True
    with pytest.raises(StudyNotFound):
        store.request_stop("another")


def test_a_request_to_stop_is_for_the_driver_that_owns_the_study_and_not_for_the_next_one(store):
    study_id = new_study(store).study.id
    first = store.acquire(study_id, "one", TTL_S)
    store.request_stop("a-study")
    store.release(first)
    store.add_request("a-study", Request(0, RequestKind.BUDGET, {"trials": 9}, "ann@desk", 1.0))
    second = store.acquire(study_id, "two", TTL_S)
    assert store.renew(second, TTL_S, 1.0).stop_requested is False
    assert store.find_request(1).refused == "the driver that was to stop had ended"
    assert [each.kind for each in store.waiting(study_id)] == [RequestKind.BUDGET]
    store.request_stop("a-study")
    assert store.renew(second, TTL_S, 2.0).stop_requested is True
    assert len(store.waiting(study_id)) == 2


def test_a_commit_that_fails_in_the_middle_leaves_nothing(store):
    history = new_study(store)
    history.add_trial(Trial(0, State.RUNNING, {}))
    save(store, history)
    before = store.load("a-study")
    history.trials[0].resource = 7.0
    history.touch(history.trials[0])
    changes = history.drain()
    changes.study = StudyRecord(history.study.id, "a-study", "other")
    changes.reports = [ReportRecord(99, 1.0, None, {})]
    with pytest.raises(IntegrityError):
        store.commit(history.study.id, changes)
    assert_same(store.load("a-study"), before)
    assert store.refresh(before, 1) == 1


def test_a_refresh_brings_only_what_has_changed(store, database_url):
    history = new_study(store)
    for number in range(3):
        history.add_trial(Trial(number, State.RUNNING, {"x": number}))
    save(store, history)
    reader = Store.open(database_url)
    seen = History(reader.find_study("a-study"))
    revision = reader.refresh(seen, -1)
    assert_same(seen, history)
    untouched = seen.trials[0]
    clock, _ = seen.changed_since(0)

    history.add_attempt(Attempt(1, 1, "w", 0.0))
    history.add_report(ReportRecord(2, 1.0, 0.5, {"loss": 0.5}))
    history.study.reason = "news"
    history.touch_study()
    save(store, history)

    later = reader.refresh(seen, revision)
    assert_same(seen, history)
    assert seen.trials[0] is untouched
    assert sorted(seen.changed_since(clock)[1]) == [1, 2]
    assert reader.refresh(seen, later) == later
    assert seen.changed_since(seen.changed_since(0)[0])[1] == []
    assert not seen.drain()
    reader.close()


def test_readers_see_commits_whole_while_a_driver_writes(store, database_url):
    history = new_study(store)
    done = threading.Event()
    torn: list[str] = []

    def read() -> None:
        reader = Store.open(database_url)
        while not done.is_set():
            for trial in reader.load("a-study").trials:
                if not len(trial.reports) == len(trial.attempts) == trial.resource:
                    reports, attempts = len(trial.reports), len(trial.attempts)
                    torn.append(f"{trial.resource}: {reports} reports, {attempts} attempts")
        reader.close()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        for tick in range(1, 31):
            for number in range(3):
                if tick == 1:
                    history.add_trial(Trial(number, State.RUNNING, {}))
                trial = history.trials[number]
                trial.resource = float(tick)
                history.touch(trial)
                history.add_attempt(Attempt(number, tick, "w", 0.0))
                history.add_report(ReportRecord(number, float(tick), None, {}))
            save(store, history)
    finally:
        done.set()
        thread.join()
    assert torn == []


def test_processes_that_open_a_new_database_at_once_agree(database_url):
    problems: list[BaseException] = []

    def work(name: str) -> None:
        try:
            mine = Store.open(database_url)
            new_study(mine, name)
            mine.close()
        except BaseException as problem:  # noqa: BLE001 - a thread's error would be lost
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(f"s-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert sorted(Store.open(database_url).study_names()) == ["s-0", "s-1", "s-2", "s-3"]
