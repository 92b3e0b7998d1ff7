"""Trials are asked for, reported and told, by one process with a real SQLite file."""

import itertools
import math
import os
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from sqlalchemy import Connection

import hpsearch
from benchmarks.simulation.running import simulate
from hpsearch.asking import opening, session
from hpsearch.asking.session import AskingSession
from hpsearch.brain.study import Study as Brain
from hpsearch.cli.main import main
from hpsearch.domain.events import Command
from hpsearch.domain.facts import ErrorKind, RequestKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment, Outcome, Request, StudyState
from hpsearch.errors import (
    AttemptLost,
    SpecError,
    StoreUnreachable,
    StudyExists,
    StudyHeld,
    StudyNotFound,
    UserError,
)
from hpsearch.running.checkpoint_folders import Mark, StudyFolder
from hpsearch.running.creation.study import spec_of
from hpsearch.running.study_run.on_ray import StudyRun, prepare
from hpsearch.running.study_run.ownership import owning
from hpsearch.store import heartbeats
from hpsearch.store.audit.checkpoints import unusable
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support.running.programs import run_program
from support.studies.asked import CURVES, SPEC, asked, spec_with, train, work

WITHOUT_RUNGS = spec_with(search={"sampler": "random", "pruner": "none"})


def run(*words: str) -> int:
    """The exit status of a command."""
    with pytest.raises(SystemExit) as ended:
        main([*words])
    code = ended.value.code
    return code if isinstance(code, int) else 0


def loaded(url: str, name: str = "asked") -> History:
    with closing(Store.open(url, create=False)) as store:
        history = store.load(name)
        with store.reading() as connection:
            assert list(violations(connection)) == []
            found = heartbeats.read(connection, history.study.id)
    running = {trial.number for trial in history.trials if trial.state is State.RUNNING}
    assert {beat.trial for beat in found} == running
    return history


def told(history: History) -> list[Any]:
    """What must be the same in two studies that tried the same."""
    found = []
    for trial in history.trials:
        ends = [(attempt.outcome, attempt.start_resource) for attempt in trial.attempts]
        what = (trial.params, trial.seed, trial.state, trial.value, trial.role, trial.rung)
        found.append((*what, trial.repeats, sorted(trial.reports), ends))
    return found


@pytest.mark.parametrize("sampler", ["random", "curve_gp"])
@pytest.mark.parametrize("alone", [True, False])
def test_the_trials_are_those_of_a_driver_with_one_worker(sampler, alone, sqlite_url):
    spec = spec_with(
        budget={"trials": 12, "per_trial": {"epochs": 9}},
        search={"sampler": sampler, "confirm": {"top": 2, "seeds": 2}},
    )
    driven = simulate(opening.read(spec), CURVES, workers=1)
    with hpsearch.create(sqlite_url, spec) as study:
        while (trial := study.ask()) is not None:
            for epoch in range(trial.resource, trial.budget):
                if not alone:  # as if another process had written: all is read and made again
                    study._session._begin_again(study._session._history.study)
                metrics = CURVES.measure(trial.params, trial.seed, epoch + 1)
                if not trial.report(epoch + 1, metrics, checkpoint="here"):
                    break
            study.tell(trial)
    asked = loaded(sqlite_url)
    assert told(asked) == told(driven)
    assert (asked.study.state, asked.study.reason) == (StudyState.FINISHED, driven.study.reason)
    assert study.ended == driven.study.reason


@pytest.mark.thorough
@pytest.mark.parametrize("turn", [20, 35, 66])
def test_who_leads_does_not_depend_on_when_expectations_were_written_down(
    turn, sqlite_url, monkeypatch
):
    spec = spec_with(
        budget={"trials": 12, "per_trial": {"epochs": 9}},
        search={"sampler": "random", "confirm": {"top": 2, "seeds": 2}},
    )
    driven = simulate(opening.read(spec), CURVES, workers=1)
    tick = Brain.on_tick
    turns = itertools.count(1)

    def noted_once(brain: Brain, now: float) -> list[Command]:
        if next(turns) == turn:
            brain._expected_at = -math.inf
        return tick(brain, now)

    monkeypatch.setattr(Brain, "on_tick", noted_once)
    monkeypatch.setattr("hpsearch.brain.study.EXPECT_EVERY_S", math.inf)
    with hpsearch.create(sqlite_url, spec) as study:
        work(study)
    assert next(turns) > turn
    assert told(loaded(sqlite_url)) == told(driven)


@pytest.mark.parametrize("jump_s", [86_400.0, -86_400.0])
def test_a_clock_that_is_set_is_not_charged(jump_s, sqlite_url, monkeypatch):
    moment = heartbeats.moment

    def later(connection: Connection, study_id: int) -> tuple[float, float | None]:
        clock, alive_at = moment(connection, study_id)
        return clock + jump_s, alive_at

    spec = spec_with(budget={"wall_clock": "12h", "per_trial": {"epochs": 9}})
    with hpsearch.create(sqlite_url, spec) as study:
        trial = asked(study)
        monkeypatch.setattr(heartbeats, "moment", later)
        train(trial)
        study.tell(trial)
        assert study.ask() is not None
    history = loaded(sqlite_url)
    assert history.study.state is StudyState.RUNNING
    assert history.study.active_seconds < 43_200
    assert 0 < history.trials[0].attempts[0].gpu_seconds < 43_200


def test_a_paused_trial_comes_back_where_it_was(sqlite_url):
    seen: dict[int, tuple[int | float, dict[str, Any]]] = {}
    came_back = 0
    with hpsearch.create(sqlite_url, SPEC) as study:
        while (trial := study.ask()) is not None:
            if trial.number in seen:
                resource, params = seen[trial.number]
                assert (trial.resource, trial.params) == (resource, params)
                assert trial.resume_from == f"{trial.number}/{resource}"
                came_back += 1
            else:
                assert (trial.resource, trial.resume_from) == (0, None)
            train(trial)
            reports = loaded(sqlite_url).trials[trial.number].reports
            seen[trial.number] = int(max(reports)), trial.params
    assert came_back


def test_without_a_checkpoint_a_trial_comes_back_from_the_beginning(sqlite_url):
    with hpsearch.create(sqlite_url, WITHOUT_RUNGS) as study:
        trial = asked(study)
        assert trial.report(1, 0.5)
        study.tell(trial, interrupted="the machine is needed")
        again = asked(study)
        assert (again.number, again.attempt) == (trial.number, 2)
        assert (again.resource, again.resume_from) == (0, None)


def test_metrics_may_be_told_at_once_as_a_number_of_any_kind(sqlite_url):
    with hpsearch.create(sqlite_url, SPEC) as study:
        for value in (0.5, np.float32(0.25), {"loss": np.array(0.125), "other": 1}):
            trial = asked(study)
            study.tell(trial, value)
    trials = loaded(sqlite_url).trials
    assert [trial.value for trial in trials] == [0.5, 0.25, 0.125]
    assert {trial.state for trial in trials} == {State.COMPLETE}


def test_a_trial_that_failed_does_not_come_back_and_one_interrupted_does(sqlite_url):
    with hpsearch.create(sqlite_url, WITHOUT_RUNGS) as study:
        first, second, third = (study.ask() for _ in range(3))
        assert first is not None
        assert second is not None
        assert third is not None
        study.tell(first, failed="the loss is nan", kind="diverged")
        train(second, most=1)
        study.tell(second, interrupted="later")
        study.tell(third)
        again = asked(study)
        assert again.number == second.number
        study.tell(again, 1.0)
    trials = loaded(sqlite_url).trials
    assert (trials[0].state, trials[0].error_kind) == (State.FAILED, ErrorKind.DIVERGED)
    assert trials[0].error_text == "the loss is nan"
    assert "ended without a finite loss" in (trials[2].error_text or "")


def test_not_a_number_counts_as_no_value(sqlite_url):
    with hpsearch.create(sqlite_url, SPEC) as study:
        trial = asked(study)
        study.tell(trial, math.nan)
    assert loaded(sqlite_url).trials[0].error_kind is ErrorKind.DIVERGED


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("a bug")])
def test_what_ends_the_block_gives_its_trials_back(error, sqlite_url):
    def interrupted() -> None:
        with hpsearch.create(sqlite_url, WITHOUT_RUNGS) as study:
            trial = asked(study)
            train(trial, most=1)
            raise error

    with pytest.raises(type(error)):
        interrupted()
    record = loaded(sqlite_url).trials[0]
    assert record.state is State.QUEUED
    assert record.attempts[0].outcome is Outcome.INTERRUPTED
    assert type(error).__name__ in (record.attempts[0].note or "")
    with hpsearch.create(sqlite_url, WITHOUT_RUNGS) as study:
        again = asked(study)
        assert (again.number, again.attempt, again.resource) == (0, 2, 1)
        assert again.report(2, 0.5)
        study.tell(again)


def test_a_study_goes_on_in_a_later_process_and_with_more_budget(sqlite_url):
    with hpsearch.create(sqlite_url, SPEC) as study:
        work(study)
    with hpsearch.create(sqlite_url, SPEC) as study:
        assert study.ask() is None
        assert study.ended == "all 6 trials have ended"
    with hpsearch.resume(sqlite_url, "asked", trials=8) as study:
        assert work(study)
    assert len(loaded(sqlite_url).trials) == 8
    with pytest.raises(UserError, match="already started 8 trials"):
        hpsearch.resume(sqlite_url, "asked", trials=7)
    with pytest.raises(StudyExists, match="with another study file"):
        hpsearch.create(sqlite_url, SPEC)


def test_a_study_gives_up_whose_trials_all_fail_and_goes_on_when_it_is_resumed(sqlite_url):
    with hpsearch.create(sqlite_url, SPEC) as study:
        while (trial := study.ask()) is not None:
            study._session._begin_again(study._session._history.study)
            study.tell(trial, failed="no such file")
    assert "3 trials failed the same way" in (study.ended or "")
    assert loaded(sqlite_url).study.state is StudyState.FAILED
    with hpsearch.resume(sqlite_url, "asked") as study:
        assert work(study) >= 6
    assert loaded(sqlite_url).study.state is StudyState.FINISHED


def test_why_a_trial_failed_is_cut_and_need_not_have_text(sqlite_url):
    class Mute(Exception):
        def __str__(self) -> str:
            raise self

    with hpsearch.create(sqlite_url, SPEC) as study:
        for failed in (Mute(), RuntimeError("x" * 20_000_000), "y" * 20_000_000):
            trial = asked(study)
            study.tell(trial, failed=failed)
    told = [str(trial.error_text) for trial in loaded(sqlite_url).trials[:3]]
    assert "Mute: (it has no text" in told[0]
    assert max(map(len, told)) < 3_000


def test_the_target_ends_a_study_also_for_those_who_come_later(sqlite_url):
    spec = spec_with(budget={**SPEC["budget"], "target": 0.5})
    with hpsearch.create(sqlite_url, spec) as one, hpsearch.create(sqlite_url, spec) as other:
        running, good = asked(one), asked(one)
        one.tell(good, 0.4)
        assert other.ask() is None
        assert "reached the target" in (other.ended or "")
        answer = running.report(1, 1.0)
        assert not answer
        assert "reached the target" in answer.why
    assert loaded(sqlite_url).study.state is StudyState.FINISHED


def test_a_stop_is_told_at_the_next_report_and_ask_gives_none(sqlite_url, capsys):
    with hpsearch.create(sqlite_url, WITHOUT_RUNGS) as study:
        trial = asked(study)
        assert run("stop", "asked", "--storage", sqlite_url) == 0
        assert "hands out no more trials" in capsys.readouterr().err
        assert run("status", "asked", "--storage", sqlite_url) == 0
        assert "asked to stop" in capsys.readouterr().out
        answer = trial.report(1, 0.5, checkpoint=Path("/my/checkpoint"))
        assert not answer
        assert answer.why.startswith("stopped by ")
        study.tell(trial)
        assert study.ask() is None
        assert study.ended == "it was stopped: hpsearch stop asked"
        with closing(Store.open(sqlite_url, create=False)) as store:
            assert store.find_request(1).handled is not None
            assert store.find_request(1).refused is None
    history = loaded(sqlite_url)
    assert history.study.state is StudyState.INTERRUPTED
    assert history.trials[0].state is State.QUEUED
    with hpsearch.resume(sqlite_url, "asked") as study:
        again = asked(study)
        assert again.resume_from == "/my/checkpoint"
        study.tell(again)
        assert work(study)


def test_a_stop_that_nobody_heard_of_does_not_stop_those_who_come_later(sqlite_url):
    hpsearch.create(sqlite_url, WITHOUT_RUNGS).close()
    assert run("stop", "asked", "--storage", sqlite_url) == 0
    with hpsearch.resume(sqlite_url, "asked") as study:
        assert study.ask() is not None
        with closing(Store.open(sqlite_url, create=False)) as store:
            told = store.find_request(1)
    assert told.kind is RequestKind.INTERRUPT
    assert told.refused == "the driver that was to stop had ended"


def test_what_people_ask_of_the_study_is_done_in_the_next_turn(sqlite_url):
    with hpsearch.create(sqlite_url, WITHOUT_RUNGS) as study:
        trial = asked(study)
        with closing(Store.open(sqlite_url, create=False)) as store:
            store.add_request("asked", Request(0, RequestKind.STOP, {"trial": 0}, "ann@desk", 1.0))
            proposal = {"params": dict(trial.params), "why": "once more"}
            store.add_request("asked", Request(0, RequestKind.PROPOSE, proposal, "ann@desk", 1.0))
            answer = trial.report(1, 0.5)
            assert not answer
            assert answer.why == "it is pruned: stopped by ann@desk"
            again = asked(study)
            assert again.params == trial.params
            assert store.find_request(1).refused is None
            assert store.find_request(2).trial == again.number
    stopped, proposed = loaded(sqlite_url).trials
    assert stopped.state is State.PRUNED
    assert proposed.role is Role.PROPOSED


def test_run_and_resume_refuse_a_study_that_is_asked(sqlite_url, tmp_path, capsys):
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump({**SPEC, "task": {"kind": "ask"}}))
    assert run("run", str(file), "--storage", sqlite_url) == 2
    assert "study.ask()" in capsys.readouterr().err
    function = {**SPEC, "study": "driven", "task": {"kind": "math:sqrt"}}
    with hpsearch.create(sqlite_url, function) as study:
        assert study.ask() is not None
        for command in (["resume", "driven"], ["rm", "driven", "--yes"]):
            assert run(*command, "--storage", sqlite_url) == 4
            assert "is asked by" in capsys.readouterr().err
    with hpsearch.create(sqlite_url, file) as study:
        work(study)
    assert run("resume", "asked", "--storage", sqlite_url) == 2
    assert "study.ask()" in capsys.readouterr().err


def test_asking_is_refused_while_a_driver_owns_the_study(sqlite_url):
    with (
        hpsearch.create(sqlite_url, WITHOUT_RUNGS) as study,
        closing(Store.open(sqlite_url)) as store,
    ):
        trial = asked(study)
        lease = store.acquire(store.find_study("asked").id, "driver", 60.0)
        with pytest.raises(StudyHeld, match="is driven by driver"):
            study.ask()
        with pytest.raises(StudyHeld, match="is driven by driver"):
            trial.report(1, 0.5)
        with pytest.raises(StudyHeld):
            hpsearch.create(sqlite_url, WITHOUT_RUNGS)
        store.release(lease)
        assert trial.report(1, 0.5)
        study.tell(trial)


def test_a_driver_begins_again_what_it_cannot_read(sqlite_url, tmp_path):
    with hpsearch.create(sqlite_url, {**WITHOUT_RUNGS, "task": {"kind": "math:sqrt"}}) as study:
        trial, complete = asked(study), asked(study)
        assert trial.report(1, 0.5, checkpoint="mine")
        assert not complete.report(9, 0.5, checkpoint="best")
    with closing(Store.open(sqlite_url)) as store:
        assert unusable(store) == []
        history = store.load("asked")
        spec = spec_of(history.study)
        home = StudyFolder(Mark("asked", history.study.uid or ""), str(tmp_path / "own"))
        run_of = StudyRun(spec, home, spec.resources)
        with owning(store, history.study, 60.0) as lease:
            prepare(store, history, run_of, lease, Environment(1.0, None, {}, "CPU"))
    assert [each.checkpoint for each in history.trials] == [None, "best"]


def test_mistakes_are_told_before_anything_is_written(sqlite_url):
    with hpsearch.create(sqlite_url, SPEC) as study:
        trial = asked(study)
        before = study._session.store.revision(study._session.study_id)
        for resource, metrics, why in (
            (0, {"loss": 1.0}, "must rise"),
            (math.nan, {"loss": 1.0}, "resource nan is not finite"),
            (math.inf, {"loss": 1.0}, "resource inf is not finite"),
            (1e300, {"loss": 1.0}, r"resource 1e\+300 is above"),
            ("1", {"loss": 1.0}, "^resource must be a number, not '1'"),
            (1, {"accuracy": 1.0}, "has no loss; it has accuracy"),
            (1, {"loss": "0.5"}, "^metric 'loss' must be a number, not '0.5'"),
            (1, {"loss": 1.0, "$x": 1.0}, "cannot be named"),
        ):
            with pytest.raises(UserError, match=why):
                trial.report(resource, metrics)  # type: ignore[arg-type]
        with pytest.raises(UserError, match="ends in one way"):
            study.tell(trial, 1.0, failed="no")
        with pytest.raises(UserError, match="not a kind of failure"):
            study.tell(trial, failed="no", kind="tired")
        assert study._session.store.revision(study._session.study_id) == before
        study.tell(trial, 1.0)
        study.tell(trial)
        with pytest.raises(UserError, match="has ended"):
            trial.report(10, 1.0)
        with pytest.raises(UserError, match="has ended already"):
            study.tell(trial, failed="no")
    with pytest.raises(UserError, match="was closed"):
        study.ask()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused(url, tmp_path, capsys):
    with pytest.raises(UserError, match="ends with the program"):
        hpsearch.create(url, SPEC)
    with pytest.raises(UserError, match="ends with the program"):
        hpsearch.resume(url, "asked")
    file = tmp_path / "study.yaml"
    file.write_text(yaml.safe_dump({**SPEC, "task": {"kind": "math:sqrt"}}))
    assert run("run", str(file), "--storage", url) == 2
    assert "ends with the program" in capsys.readouterr().err


def test_one_thread_cannot_wait_for_itself(sqlite_url):
    with hpsearch.create(
        sqlite_url, spec_with(budget={"trials": 1, "per_trial": {"epochs": 3}})
    ) as study:
        trial = study.ask()
        with pytest.raises(UserError, match="before one of these trials ends"):
            study.ask()
        assert trial is not None
        study.tell(trial, 1.0)
        assert study.ask() is None


def test_threads_share_a_study_and_wait_for_each_other(sqlite_url):
    done: list[int] = []
    with hpsearch.create(sqlite_url, SPEC) as study:
        threads = [threading.Thread(target=lambda: done.append(work(study))) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    history = loaded(sqlite_url)
    assert history.study.state is StudyState.FINISHED
    assert sum(done) == sum(len(trial.attempts) for trial in history.trials)


def test_the_budget_of_time_is_kept_across_processes(sqlite_url, monkeypatch):
    now = 1e9
    monkeypatch.setattr(AskingSession, "_now", lambda *_: now)
    per_trial = {"epochs": 9}
    spec = spec_with(budget={"gpu_hours": 0.1, "per_trial": per_trial}, resources={"gpu": 2})
    with hpsearch.create(sqlite_url, spec) as one, hpsearch.create(sqlite_url, spec) as other:
        running = {}
        for study in (one, other, one, other, one) * 40:
            trial = running.pop(study, None) or study.ask()
            if trial is None:
                continue
            now += 3.0
            if train(trial, most=1):
                study.tell(trial, interrupted="half way")
    attempts = [each for trial in loaded(sqlite_url).trials for each in trial.attempts]
    assert len(attempts) > 10
    spent = sum(attempt.gpu_seconds for attempt in attempts)
    held_s = sum((attempt.ended or now) - attempt.started for attempt in attempts)
    assert spent == pytest.approx(2 * held_s)
    assert 300 < spent <= 360
    assert one.ended == other.ended == "the budget left is too small for another trial"


def test_limits_of_one_trial_are_kept(sqlite_url, monkeypatch):
    now = 1e9
    monkeypatch.setattr(AskingSession, "_now", lambda *_: now)
    spec = {
        **WITHOUT_RUNGS,
        "budget": {"trials": 9, "per_trial": {"epochs": 9, "time_limit": 60}},
        "resources": {"report_deadline": 40},
    }
    with hpsearch.create(sqlite_url, spec) as one, hpsearch.create(sqlite_url, spec) as other:
        slow, silent = asked(one), asked(one)
        for epoch in (1, 2):
            now += 30.0
            assert slow.report(epoch, 0.5)
        assert other.ask() is not None  # it notices who has reported nothing for a minute
        with pytest.raises(AttemptLost, match="attempt 1 of trial 1") as lost:
            silent.report(1, 0.5)
        assert "no report for 60 s" in str(lost.value)
        now += 1.0
        assert "time limit of 60 s" in slow.report(3, 0.5).why
    kinds = [trial.error_kind for trial in loaded(sqlite_url).trials]
    assert kinds == [ErrorKind.TIMEOUT, ErrorKind.TIMEOUT, None]


def test_a_process_that_was_forked_must_open_the_study_itself(sqlite_url, monkeypatch):
    with hpsearch.create(sqlite_url, SPEC) as study:
        monkeypatch.setattr(session.os, "getpid", lambda: -1)
        with pytest.raises(UserError, match="of which this one is a fork"):
            study.ask()
        monkeypatch.undo()


def test_an_attempt_that_nobody_was_told_of_is_handed_out_again(sqlite_url):
    with hpsearch.create(sqlite_url, SPEC) as study:
        trial = asked(study)
        study._session.own_attempts.clear()  # as if the answer of the database had been lost
        again = asked(study)
        assert (again.number, again.attempt) == (0, 2)
        with pytest.raises(AttemptLost, match="attempt 1 of trial 0 is not current any more"):
            trial.report(1, 0.5)
        study.tell(again, 1.0)


def test_a_report_that_came_through_unheard_may_be_repeated(sqlite_url, monkeypatch):
    write = AskingSession._write
    answers = iter([StoreUnreachable("the connection broke"), None])

    def breaks_after(self: AskingSession, *of: Any) -> None:
        write(self, *of)
        of[0].exec_driver_sql("COMMIT")
        of[0].exec_driver_sql("BEGIN IMMEDIATE")
        error = next(answers)
        if error is not None:
            raise error

    with hpsearch.create(sqlite_url, SPEC) as study:
        trial = asked(study)
        with monkeypatch.context() as patch:
            patch.setattr(AskingSession, "_write", breaks_after)
            answer = trial.report(9, 0.5)
        assert not answer
        assert "it is complete" in answer.why
    assert loaded(sqlite_url).trials[0].state is State.COMPLETE


def test_what_a_failed_turn_handed_out_is_not_given_back(sqlite_url, monkeypatch):
    def fails(*_: Any) -> None:
        raise RuntimeError("in the middle")

    with hpsearch.create(sqlite_url, SPEC) as study, hpsearch.create(sqlite_url, SPEC) as other:
        with monkeypatch.context() as patch:
            patch.setattr(heartbeats, "begin", fails)
            with pytest.raises(RuntimeError):
                study.ask()
        trial = asked(other)
        assert trial.key == (0, 1)
        # As if it had been another process that was given it.
        study._session.own_attempts = {}
        study.close()
        assert loaded(sqlite_url).trials[0].state is State.RUNNING
        other.tell(trial, 1.0)


def test_a_process_that_was_suspended_may_report_no_more(sqlite_url, caplog):
    began = time.time()
    with hpsearch.create(sqlite_url, SPEC) as study, closing(Store.open(sqlite_url)) as store:
        trial = asked(study)
        silent_since = time.time()
        with store.writing() as connection:  # another machine's process, silent for a minute
            connection.exec_driver_sql(
                "UPDATE heartbeats SET owner = 'me@elsewhere:1', renewed = renewed + 5,"
                " expires = expires - 60"
            )
        with hpsearch.create(sqlite_url, SPEC) as other:
            again = asked(other)
            assert (again.number, again.attempt) == (0, 2)
            with pytest.raises(AttemptLost, match="me@elsewhere:1 gave no sign of life"):
                trial.report(1, 0.5)
            other.tell(again, 1.0)
    first, _ = loaded(sqlite_url).trials[0].attempts
    assert first.outcome is Outcome.LOST
    assert 4.0 < first.gpu_seconds < 5.0 + silent_since - began
    assert loaded(sqlite_url).trials[0].reports.keys() == {9.0}


@pytest.mark.parametrize(
    ("spec", "error", "why"),
    [
        ({**SPEC, "objective": None}, SpecError, "objective: is missing"),
        ({**SPEC, "spac": {}}, SpecError, "spac: unknown key"),
        (
            {**SPEC, "task": {"kind": "ask", "x": 1}},
            SpecError,
            "task.x: is not a key of a ask task",
        ),
        ({**SPEC, "seed": object()}, UserError, "spec holds a value that"),
        ("no-such.yaml", UserError, "there is no such study file"),
        (7, UserError, "spec is of type int"),
        ("study: x\nspace: [", SpecError, "spec:2"),
    ],
)
def test_a_study_file_with_mistakes_is_refused(spec, error, why, sqlite_url):
    with pytest.raises(error, match=why):
        hpsearch.create(sqlite_url, spec)
    assert not Path(sqlite_url.removeprefix("sqlite:///")).exists()


def test_a_study_is_written_in_any_way(tmp_path, sqlite_url):
    text = "# mine\n" + yaml.safe_dump(SPEC)
    file = tmp_path / "study.yaml"
    file.write_text(text)
    for spec in (SPEC, text, file, str(file)):
        hpsearch.create(sqlite_url, spec).close()
    assert opening.read(text).text.startswith("# mine\n")
    with pytest.raises(StudyNotFound, match="did you mean asked"):
        hpsearch.resume(sqlite_url, "askd")


def test_asking_imports_neither_ray_nor_torch(sqlite_url):
    program = f"""
import sys, hpsearch
with hpsearch.create({sqlite_url!r}, {WITHOUT_RUNGS!r}) as study:
    trial = study.ask()
    assert trial.report(1, 0.5)
    study.tell(trial)
print(sorted({{"ray", "torch", "pandas", "transformers"}} & set(sys.modules)))
"""
    done = run_program([sys.executable, "-c", program], check=True, env=os.environ)
    assert done.stdout == "[]\n"
