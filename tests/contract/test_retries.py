"""Failed trials run again under their numbers, on both databases, once whatever was mended."""

from contextlib import closing

import pytest

import hpsearch
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import StudyState
from hpsearch.errors import UserError
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from support.studies.asked import SPEC, asked, spec_with, train, work


def recorded(url: str) -> History:
    with closing(Store.open(url)) as store:
        with store.reading() as connection:
            assert violations(connection) == []
        return store.load(SPEC["study"])


def ended(url: str, *failing: int) -> History:
    """A study to its end, of which some trials failed after two reports, each with a value that no
    other has."""
    with hpsearch.create(url, spec_with(search={"sampler": "random", "pruner": "none"})) as study:
        while (trial := study.ask()) is not None:
            if trial.number in failing:
                trial.report(1, -1.0)
                trial.report(2, -2.0)
                study.tell(trial, failed="no such file: x.csv")
            else:
                train(trial)
    return recorded(url)


def test_trials_of_an_ended_study_run_again_and_keep_their_numbers_and_charges(database_url):
    before = ended(database_url, 1, 3).trials
    with hpsearch.resume(database_url, SPEC["study"], retry="value < -1 and number > 2") as study:
        states = [trial.state for trial in recorded(database_url).trials]
        assert states.count(State.COMPLETE) == 4
        assert (states[1], states[3]) == (State.FAILED, State.QUEUED)
        trial = asked(study)
        assert (trial.number, trial.resource, recorded(database_url).trials[3].reports) == (
            3,
            0,
            {},
        )
        study.tell(trial, failed="still")
    with hpsearch.resume(database_url, SPEC["study"], retry="failed") as study:
        assert work(study) == 2
    history = recorded(database_url)
    assert history.study.state is StudyState.FINISHED
    for was, now in zip(before, history.trials, strict=True):
        assert (now.params, now.seed, now.state) == (was.params, was.seed, State.COMPLETE)
        assert now.gpu_seconds >= was.gpu_seconds
        assert {each.attempt for each in now.reports.values()} == {len(now.attempts)}
    outcomes = [attempt.outcome for attempt in history.trials[3].attempts]
    assert outcomes == ["failed", "failed", "complete"]
    assert min(trial.value or 0.0 for trial in history.trials) > 0


def test_no_other_trial_is_retried_and_what_to_do_is_said(database_url, run):
    ended(database_url, 1)
    for which, said, to_do in (
        ("0", "trial 0 of asked has not failed: it is complete", "hpsearch train asked"),
        ("9", "study asked has no trial 9", "it has trials 0 to 5"),
        ("x > 2", "selects no trial of asked that failed", "those that failed: 1"),
        ("1,", "--retry: ", ""),
        ("", "--retry: ", ""),
    ):
        with pytest.raises(UserError) as refused:
            hpsearch.resume(database_url, "asked", retry=which)
        assert said in str(refused.value)
        assert to_do in str(refused.value)
        code, _, told = run("resume", "asked", "--retry", which, "--storage", database_url)
        assert code == 2
        assert said in told
    assert recorded(database_url).trials[1].state is State.FAILED
    with hpsearch.resume(database_url, "asked", retry="1") as study:
        work(study)
    with pytest.raises(UserError, match=r"no trial of asked has failed"):
        hpsearch.resume(database_url, "asked", retry="failed")


def test_a_study_without_budget_says_what_to_raise(sqlite_url):
    budget = {"trials": 1, "wall_clock": "1s", "per_trial": {"epochs": 9}}
    with hpsearch.create(sqlite_url, spec_with(budget=budget)) as study:
        study.tell(asked(study), failed="no")
    with closing(Store.open(sqlite_url)) as store:
        history = store.load("asked")
        history.study.active_seconds = 2.0
        history.touch_study()
        store.commit(history.study.id, history.drain())
    with pytest.raises(UserError, match=r"limit on wall-clock.*\n.*wall_clock=N"):
        hpsearch.resume(sqlite_url, "asked", retry="failed")
    with hpsearch.resume(sqlite_url, "asked", retry="failed", wall_clock="1h") as study:
        assert work(study) == 1
