"""Studies that go on as another version: with other code, or in another space."""

from contextlib import closing
from typing import Any

import pytest

import hpsearch
from hpsearch.brain.widening import refuse_unmeasured, widen
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.errors import UserError
from hpsearch.running.creation.seal import Seal
from hpsearch.running.study_run.versions import begin_due, refuse_changed
from hpsearch.store.audit.invariants import violations
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.space import contains
from support.studies.asked import asked, train
from support.studies.asked import spec_with as asked_with
from support.studies.driven import drive
from support.studies.small import Bowl, budget_of, search_by, spec_with

NAME = "plain"
FLOAT = {"type": "float", "low": 0.0, "high": 1.0}
LETTERS = {"type": "categorical", "choices": ["a", "b"]}
GONE = {"type": "int", "low": 1, "high": 2}


def file_with(trials: int, search: Any, space: Any, **more: Any) -> StudySpec:
    return spec_with(space=space, budget=budget_of(trials), search=search, **more)


def recorded(url: str) -> History:
    with closing(Store.open(url)) as store:
        with store.reading() as connection:
            assert violations(connection) == []
        return store.load(NAME)


def goes_on(url: str, before: StudySpec, after: StudySpec) -> int:
    """Begin the next version, as `resume --from` does; how many trials are outside."""
    with closing(Store.open(url)) as store:
        history = store.load(NAME)
        begin_due(history, (), None, 1e6, ["space.x was so, now otherwise"])
        history.study.spec = after.text
        outside = widen(history, before, after)
        store.commit(history.study.id, history.drain())
    return outside


SAMPLERS: list[Any] = [
    *("curve_gp", "random", "qmc"),
    {"kind": "tpe", "n_startup_trials": 2},
    {"kind": "cmaes", "n_startup_trials": 2},
    {"kind": "gp", "n_startup_trials": 2},
]
BEFORE = {"x": FLOAT, "c": LETTERS, "k": GONE}
SPACES = {
    "wider": {"x": {**FLOAT, "high": 2.0}, "c": LETTERS, "k": GONE},
    "narrower": {"x": {**FLOAT, "low": 0.5}, "c": LETTERS, "k": GONE},
    "another choice": {"x": FLOAT, "c": {**LETTERS, "choices": ["z", "b", "a"]}, "k": GONE},
    "a choice less": {"x": FLOAT, "c": {**LETTERS, "choices": ["b"]}, "k": GONE},
    "one more": {**BEFORE, "n": {"type": "int", "low": 0, "high": 4, "was": 0}},
    "one less": {"x": FLOAT, "c": LETTERS},
    "nothing left": {"x": {**FLOAT, "low": 5.0, "high": 9.0}, "c": LETTERS, "k": GONE},
}


@pytest.mark.parametrize("change", SPACES)
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.filterwarnings("ignore")
def test_every_sampler_goes_on_in_a_changed_space_and_crowns_no_trial_outside(
    sqlite_url, sampler, change
):
    search = search_by(sampler, "promotion")
    before = file_with(10, search, BEFORE)
    settings = {"k": 1} if change == "one less" else {}
    after = file_with(16, search, SPACES[change], settings=settings)
    drive(sqlite_url, before, Bowl(), workers=2, stop_after=30)
    was = recorded(sqlite_url).trials
    outside = goes_on(sqlite_url, before, after)
    kept = recorded(sqlite_url).trials
    assert sum(trial.out_of_space for trial in kept) == outside
    assert [trial.value for trial in kept] == [trial.value for trial in was]
    drive(sqlite_url, after, Bowl(), workers=2, resume=True)
    trials = recorded(sqlite_url).trials
    assert len(trials) == 16
    for trial in trials:
        assert (contains(after, trial.params) != []) == trial.out_of_space
        assert trial.state.terminal
    assert {trial.version for trial in trials[len(was) :]} == {2}
    with hpsearch.open(sqlite_url, NAME) as study:
        assert not contains(after, dict(trials[study.best()["number"].iloc[0]].params))
        assert len(study.trials(where="version = 2")) >= 16 - len(was)
        assert len(study.optuna().trials) == 16


@pytest.mark.parametrize("pruner", ["median", "hyperband", "none"])
def test_pruners_of_optuna_go_on_in_a_changed_space(sqlite_url, pruner):
    search = search_by("random", pruner)
    before, after = (file_with(n, search, {"x": {**FLOAT, "high": n / 8}}) for n in (8, 12))
    drive(sqlite_url, before, Bowl(), workers=2, stop_after=20)
    assert goes_on(sqlite_url, before, after) == 0
    drive(sqlite_url, after, Bowl(), workers=2, resume=True)
    assert len(recorded(sqlite_url).trials) == 12


def test_trials_left_out_come_back_with_their_values_where_the_space_has_them_again(database_url):
    search = search_by("curve_gp", "promotion")
    before = file_with(8, search, {"x": FLOAT})
    narrow = file_with(10, search, {"x": {**FLOAT, "low": 0.6}})
    drive(database_url, before, Bowl(), workers=2)
    best = {trial.number: trial.value for trial in recorded(database_url).trials}
    goes_on(database_url, before, narrow)
    drive(database_url, narrow, Bowl(), workers=2, resume=True)
    with hpsearch.open(database_url, NAME) as study:
        assert study.best()["x"].iloc[0] >= 0.6
    assert goes_on(database_url, narrow, before) == 0
    for trial in recorded(database_url).trials[:8]:
        assert not trial.out_of_space
        assert trial.value <= best[trial.number]


def test_limits_that_are_set_later_rank_the_trials_of_before(sqlite_url):
    search = search_by("curve_gp", "promotion")
    before = file_with(8, search, {"x": FLOAT})
    after = file_with(8, search, {"x": FLOAT}, constraints={"loss": {"min": 0.2}})
    drive(sqlite_url, before, Bowl(), workers=2)
    goes_on(sqlite_url, before, after)
    trials = recorded(sqlite_url).trials
    assert all((trial.violation > 0) == (trial.value < 0.2) for trial in trials)
    with hpsearch.open(sqlite_url, NAME) as study:
        assert study.best()["value"].iloc[0] >= 0.2
    goes_on(sqlite_url, after, before)
    assert {trial.violation for trial in recorded(sqlite_url).trials} == {0.0}
    unknown = file_with(8, search, {"x": FLOAT}, constraints={"memory": {"max": 1.0}})
    with pytest.raises(UserError, match="trial 0 of plain has not reported memory"):
        refuse_unmeasured(recorded(sqlite_url), unknown)


def seal_with(**digests: str) -> Seal:
    return Seal(digests, digests, "all")


def test_changed_code_is_refused_by_name_and_begins_a_version_once_it_is_meant(database_url):
    spec = file_with(4, search_by(), {"x": FLOAT})
    drive(database_url, spec, Bowl())
    with closing(Store.open(database_url)) as store:
        history = store.load(NAME)
        one, two = seal_with(train="1", data="1"), seal_with(train="2", other="1")
        assert begin_due(history, (), one, 1.0) == []
        refuse_changed(store, history, one)
        refuse_changed(store, history, seal_with(train="1", new="5"))
        with pytest.raises(UserError, match=r"train differs from version 1 .*\n.*begins version 2"):
            refuse_changed(store, history, two)
        assert begin_due(history, (), two, 2.0) == ["train has changed"]
        refuse_changed(store, history, two)
        store.commit(history.study.id, history.drain())
        found = store.load(NAME).versions
    assert [(each.number, each.changes) for each in found] == [(1, []), (2, ["train has changed"])]
    assert [each.new_code for each in found] == [False, True]
    assert found[1].files == {"train": "2", "other": "1"}
    assert all(each.spec == spec.text and "@" in each.origin for each in found)


def test_a_program_that_asks_says_that_it_has_changed(sqlite_url):
    with hpsearch.create(sqlite_url, asked_with(search=search_by())) as study:
        first, waits = asked(study), asked(study)
        train(first)
        train(waits, 3)
    with hpsearch.resume(sqlite_url, "asked", changed=True, trials=8) as study:
        while (trial := study.ask()) is not None:
            train(trial)
    with closing(Store.open(sqlite_url)) as store:
        history = store.load("asked")
    assert [trial.version for trial in history.trials] == [1] + [2] * 7
    assert history.trials[1].state is State.COMPLETE
    assert history.versions[1].changes == ["its program has changed"]
    with hpsearch.open(sqlite_url, "asked") as study:
        assert list(study.trials(where="version = 1")["number"]) == [0]
