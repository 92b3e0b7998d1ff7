"""The sentence that opens a result."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import CONSTRAINT, StudyState, Trial
from hpsearch.search.ranking.selection import rank
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.reading.standing import BudgetLine, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.views.result.study_result import StudyResult
from hpsearch.views.words.certainty import opening

OVER = StudyState.FINISHED


def said(
    *trials: Trial,
    state: StudyState = OVER,
    seconds: float = 14.0,
    directions: tuple[str, ...] = ("maximize",),
) -> str:
    """The sentence on a study with these trials."""
    head = StudyHead(1, "s", "", directions, state, None, 0, 1, 1, None, False, None)
    default = next((trial for trial in trials if trial.role is Role.DEFAULT), None)
    names = [("accuracy", "maximize"), ("size", "minimize")][: len(directions)]
    several = [replace_place(trial) for trial in trials] if len(names) > 1 else None
    ranked = cast(Any, rank(trials, "maximize") if several is None else several)
    result = StudyResult(head, names, ranked, {}, cast(Any, default), StudyTrust())
    searched = sum(trial.role is not Role.CONFIRM for trial in trials)
    budget = [
        BudgetLine("trials", searched, None),
        BudgetLine("wall_clock_seconds", seconds, None),
    ]
    counts = Counter(trial.state for trial in trials)
    return "".join(opening(result, StudySummary(head, counts, 0.0, None, budget)))


def replace_place(trial: Trial) -> Any:
    (place,) = rank([trial], "maximize")
    return replace(place, again=None)


def trial(number: int, value: float | None, role: Role = Role.SEARCH, **more: Any) -> Trial:
    state = more.pop("state", State.COMPLETE)
    return Trial(number, state, {}, value=value, resource=3.0, role=role, **more)


DEFAULT = trial(0, 0.94, Role.DEFAULT)


def test_it_says_how_good_how_much_better_from_what_and_how_often_trained() -> None:
    assert said(DEFAULT, trial(1, 0.97)) == (
        "accuracy 0.97, 0.03 better than the defaults, from 2 trials in 14 s; trained once"
    )


def test_repeats_are_counted_apart_from_trials() -> None:
    repeats = [trial(n, 0.95 + n / 100, Role.CONFIRM, repeats=1) for n in (2, 3)]
    assert said(DEFAULT, trial(1, 0.99), *repeats) == (
        "accuracy 0.975, 0.035 better than the defaults, from 2 trials in 14 s; mean of 2 trainings"
    )
    assert said(trial(1, 0.99), repeats[0]).endswith("; trained again once")


def test_a_value_that_no_training_has_shown_is_said_to_be_expected() -> None:
    lucky = [trial(n, value) for n, value in enumerate([0.5, 0.6, 0.7, 0.8, 0.95])]
    sentence = said(*lucky)
    assert " if trained again, from 5 trials in 14 s; trained once" in sentence
    assert not sentence.startswith("accuracy 0.95 ")
    paused = trial(1, 0.8, state=State.PAUSED, expected=0.9, expected_deviation=0.01)
    assert said(paused) == "accuracy 0.9 if trained to the end, from 1 trial in 14 s"


def test_a_gain_is_left_out_without_defaults_and_never_invented() -> None:
    assert said(trial(0, 0.9)) == "accuracy 0.9, from 1 trial in 14 s; trained once"
    assert " with the defaults, which no trial beats, " in said(DEFAULT, trial(1, 0.9))
    repeats = [trial(2, 0.9, Role.CONFIRM, repeats=1), trial(3, 0.91, Role.CONFIRM, repeats=1)]
    assert ", not better than the defaults, " in said(trial(1, 0.99), *repeats, DEFAULT)


def test_what_is_not_over_is_so_far_and_a_time_that_is_not_known_is_left_out() -> None:
    sentence = said(trial(0, 0.9), state=StudyState.INTERRUPTED)
    assert sentence == "accuracy 0.9, from 1 trial in 14 s so far; trained once"
    assert said(trial(0, 0.9), seconds=0.0) == "accuracy 0.9, from 1 trial; trained once"


def test_a_best_that_breaks_the_limits_says_so() -> None:
    assert "accuracy 0.9, 5.0% over the limits, which no trial keeps, from" in said(
        trial(0, 0.9, system_attrs={f"{CONSTRAINT}size": 0.05})
    )


def test_several_objectives_have_trade_offs() -> None:
    several = ("maximize", "minimize")
    assert said(trial(0, 0.9), trial(1, 0.8), directions=several) == (
        "the 2 best trade-offs between accuracy and size, from 2 trials in 14 s"
    )
    assert said(trial(0, 0.9), directions=several).startswith("1 trial is the best trade-off ")


@pytest.mark.parametrize(
    ("trials", "state", "sentence"),
    [
        ([], StudyState.RUNNING, "no result yet: no trial has started"),
        ([trial(0, None, state=State.FAILED)], OVER, "no result: the only trial failed"),
        ([trial(n, None, state=State.FAILED) for n in (0, 1)], OVER, "no result: all 2 trials f"),
        ([trial(0, None, state=State.PAUSED)], OVER, "no result: its trial has no value"),
    ],
)
def test_without_a_result_it_says_why(
    trials: list[Trial], state: StudyState, sentence: str
) -> None:
    assert said(*trials, state=state).startswith(sentence)
