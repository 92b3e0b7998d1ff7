"""The configurations that a study has tried, and those that it has not."""

from collections.abc import Sequence
from typing import Any

import pytest

from hpsearch.domain.facts import ErrorKind, Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.proposals import Proposals
from hpsearch.search.untried import MOST, Untried
from hpsearch.store.optuna_storage.view import HistoryStorage
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.space import contains
from support.studies.small import history_for, spec_with

GRID = {"type": "float", "low": 0.0, "high": 0.4, "step": 0.1}
SPACE: dict[str, Any] = {
    "c": {"type": "categorical", "choices": ["a", "b", None]},
    "x": {**GRID, "when": {"c": "a"}},
    "k": {"type": "int", "low": 1, "high": 2, "when": {"c": "b"}},
}
SIZE = 5 + 2 + 1


def untried(space: dict[str, Any], requires: Sequence[str] = ()) -> tuple[Untried, History]:
    spec = spec_with(space=space)
    history = history_for(spec)
    return Untried(spec.space, [Expression(each) for each in requires], history), history


def add(history: History, params: dict[str, Any] | None, **facts: Any) -> Trial:
    assert params is not None
    return history.add_trial(Trial(len(history.trials), State.RUNNING, params, **facts))


def test_configurations_are_the_same_on_a_grid_and_without_one_to_full_precision_only():
    known, history = untried(SPACE)
    add(history, {"c": "a", "x": 3 * 0.1})
    known.refresh()
    assert known.was_tried({"c": "a", "x": 0.3}), "3 * 0.1 is 0.30000000000000004"
    assert known.was_tried({"c": "a", "x": 0.3, "k": 1}), "which is not active"
    assert not known.was_tried({"c": "a", "x": 0.2})
    assert not known.was_tried({"c": "b", "k": 1})
    known, history = untried({"x": {"type": "float", "low": 1e-5, "high": 1.0, "log": True}})
    add(history, {"x": 0.1})
    known.refresh()
    assert known.was_tried({"x": 0.1})
    assert not known.was_tried({"x": 0.1 + 1e-16})


def test_a_space_that_few_of_very_many_configurations_fit_is_listed_in_slices():
    wide = {name: {"type": "int", "low": 1, "high": 10_000} for name in "abcde"}
    known, history = untried(wide, ["a + b + c + d + e < 9"])
    add(history, dict.fromkeys("abcde", 1))
    assert not known.exhausted
    assert known._slices == 2, "one for each trial, and one"


def test_the_only_configuration_of_very_many_is_found():
    wide = {name: {"type": "int", "low": 1, "high": 10_000} for name in "xab"}
    known, history = untried(wide, ["a + b == 2", "x == 7"])
    assert known.anywhere(0) == {"x": 7, "a": 1, "b": 1}
    add(history, {"x": 7, "a": 1, "b": 1})
    assert not known.exhausted, "it is not known yet that there is no other one"


def test_a_space_is_used_up_once_all_its_slices_are_listed():
    square = {name: {"type": "int", "low": 1, "high": 150} for name in "ab"}
    known, history = untried(square, ["a * b == 4"])
    for seed in range(3):
        assert not known.exhausted
        add(history, known.anywhere(seed))
    assert known.exhausted


def test_all_that_is_left_is_drawn_once_and_then_the_space_is_used_up():
    known, history = untried(SPACE)
    for seed in range(SIZE):
        assert not known.exhausted
        add(history, known.anywhere(seed))
    assert known.exhausted
    assert len({repr(trial.params) for trial in history.trials}) == SIZE
    spec = spec_with(space=SPACE)
    assert not any(contains(spec, trial.params) for trial in history.trials)


def test_what_breaks_a_requirement_is_not_left():
    known, history = untried(SPACE, ["x * 10 <= 2", "c == 'a' or c == 'b'"])
    for seed in range(3 + 2):
        assert not known.exhausted
        add(history, known.anywhere(seed))
    assert known.exhausted
    assert all(trial.params.get("x", 0) <= 0.2 for trial in history.trials)


def test_every_configuration_that_is_left_has_the_same_chance():
    known, history = untried(SPACE)
    add(history, {"c": None})
    known.refresh()
    drawn = [repr(known.anywhere(seed)) for seed in range(600)]
    counts = {each: drawn.count(each) for each in drawn}
    assert len(counts) == SIZE - 1
    assert min(counts.values()) > 50, "86 are expected"


@pytest.mark.parametrize(
    ("kind", "counts"),
    [
        (ErrorKind.LOST, False),
        (ErrorKind.DIVERGED, True),
        (ErrorKind.ERROR, True),
        (ErrorKind.TIMEOUT, True),
    ],
)
def test_a_failure_counts_unless_the_workers_were_lost(kind, counts):
    known, history = untried(SPACE)
    trial = add(history, {"c": None})
    known.refresh()
    assert known.was_tried({"c": None}), "it runs"
    trial.state, trial.error_kind = State.FAILED, kind
    history.touch(trial)
    known.refresh()
    assert known.was_tried({"c": None}) is counts


def test_a_configuration_that_was_lost_twice_is_left_alone():
    known, history = untried(SPACE)
    for _ in range(2):
        add(history, {"c": None}, error_kind=ErrorKind.LOST).state = State.FAILED
    known.refresh()
    assert known.was_tried({"c": None})


def test_repeats_and_trials_outside_the_space_do_not_count():
    known, history = untried({"c": {"type": "categorical", "choices": [1, 2]}})
    add(history, {"c": 1})
    add(history, {"c": 2}, role=Role.CONFIRM, repeats=0)
    add(history, {"c": 3})
    add(history, {})
    assert not known.exhausted
    assert known.anywhere(0) == {"c": 2}


@pytest.mark.parametrize(
    "space",
    [
        {"x": {"type": "float", "low": 0.0, "high": 1.0}},
        {"k": {"type": "int", "low": 0, "high": MOST}},
        {"c": SPACE["c"], "x": {"type": "float", "low": 0.0, "high": 1.0, "when": {"c": "a"}}},
    ],
)
def test_a_space_without_an_end_is_never_used_up(space):
    known, history = untried(space)
    for seed in range(20):
        add(history, known.anywhere(seed))
        assert not known.exhausted


def test_what_was_asked_for_is_never_refused():
    spec = spec_with(space=SPACE)
    history = history_for(spec)
    proposals = Proposals(spec, history, HistoryStorage(history), None)
    for _ in range(2):
        trial = history.add_trial(Trial(len(history.trials), State.QUEUED, {}))
        proposals.propose(trial, {"c": None})
        assert trial.params == {"c": None}
    drawn = history.add_trial(Trial(2, State.QUEUED, {}))
    proposals.propose(drawn)
    assert drawn.params != {"c": None}
    assert drawn.distributions.keys() == drawn.params.keys()
