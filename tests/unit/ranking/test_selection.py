"""Ranking: who counts, who is first, and who cannot be told from the first."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.ranking.selection import rank


def trial(number: int, value: float | None, state: State = State.COMPLETE, **more: Any) -> Trial:
    return Trial(number, state, {}, value=value, resource=more.pop("resource", 3.0), **more)


def repeat(number: int, of: int, value: float | None, state: State = State.COMPLETE) -> Trial:
    return trial(number, value, state, role=Role.CONFIRM, repeats=of)


def order(trials: list[Trial], direction: str = "maximize") -> list[int]:
    return [ranked.trial.number for ranked in rank(trials, direction)]


def test_the_direction_says_which_end_is_best() -> None:
    trials = [trial(0, 0.2), trial(1, 0.9), trial(2, 0.5)]
    assert order(trials, "maximize") == [1, 2, 0]
    assert order(trials, "minimize") == [0, 2, 1]


def test_a_trial_that_is_ahead_after_less_training_is_ahead() -> None:
    trials = [
        trial(0, 0.9, State.PAUSED, resource=1.0),
        trial(1, 0.4, State.COMPLETE, resource=9.0),
        trial(2, 0.6, State.RUNNING, resource=3.0),
    ]
    assert order(trials) == [0, 2, 1]


def test_of_equal_values_the_complete_one_comes_first_and_then_the_one_that_trained_further() -> (
    None
):
    trials = [
        trial(0, 0.5, State.PRUNED, resource=1.0),
        trial(1, 0.5, State.PAUSED, resource=3.0),
        trial(2, 0.5, State.COMPLETE, resource=3.0),
    ]
    assert order(trials) == [2, 1, 0]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_a_trial_without_a_finite_value_takes_no_place(value: float | None) -> None:
    assert order([trial(0, value), trial(1, 0.1)], "maximize") == [1]
    assert order([trial(0, value), trial(1, 0.1)], "minimize") == [1]


def test_a_failed_trial_takes_no_place_whatever_it_had_reached() -> None:
    assert order([trial(0, 0.9, State.FAILED), trial(1, 0.1, State.PRUNED)]) == [1]


def test_equal_values_are_tied_and_the_older_trial_stands_first() -> None:
    ranked = rank(
        [trial(0, 0.5), trial(1, 0.9), trial(2, 0.9 + 1e-14), trial(3, 0.9 - 1e-9)], "maximize"
    )
    assert {r.trial.number for r in ranked if r.tied} == {1, 2}


def test_a_lone_best_is_not_tied() -> None:
    assert not rank([trial(0, 0.5), trial(1, 0.9)], "maximize")[0].tied
    assert not rank([trial(0, 0.5)], "maximize")[0].tied


def test_equal_values_at_different_resource_are_no_tie() -> None:
    ranked = rank(
        [trial(0, 0.5, State.PRUNED, resource=1.0), trial(1, 0.5, State.PRUNED, resource=3.0)],
        "maximize",
    )
    assert [r.tied for r in ranked] == [False, False]


def test_repeats_take_no_place_and_their_mean_stands_for_the_trial() -> None:
    trials = [
        trial(0, 0.9),
        trial(1, 0.8),
        repeat(2, 0, 0.5),
        repeat(3, 0, 0.6),
        repeat(4, 1, 0.78),
        repeat(5, 1, 0.8),
    ]
    first, second = rank(trials, "maximize")
    assert (first.trial.number, second.trial.number) == (1, 0)
    assert first.confirmed is not None
    assert first.confirmed.mean == pytest.approx(0.79)
    assert first.confirmed.runs == 2
    assert first.value == 0.8


def test_a_trial_that_lost_to_a_confirmed_one_does_not_pass_it_for_never_having_been_repeated() -> (
    None
):
    trials = [
        trial(4, 0.87),
        trial(0, 0.90),
        trial(1, 0.88),
        repeat(2, 0, 0.84),
        repeat(3, 0, 0.86),
    ]
    assert order(trials) == [0, 1, 4]
    assert order(
        [trial(0, 0.10), trial(1, 0.12), repeat(2, 0, 0.2), repeat(3, 0, 0.2)], "minimize"
    ) == [0, 1]


def test_a_confirmed_trial_falls_behind_one_that_beat_it_in_the_search() -> None:
    trials = [trial(0, 0.6), trial(1, 0.9), repeat(2, 0, 0.61), repeat(3, 0, 0.62)]
    assert order(trials) == [1, 0]


def test_failed_and_unfinished_repeats_do_not_count() -> None:
    trials = [
        trial(0, 0.9),
        repeat(1, 0, 0.1, State.FAILED),
        repeat(2, 0, 0.2, State.RUNNING),
        repeat(3, 0, math.nan),
    ]
    assert rank(trials, "maximize")[0].confirmed is None


def test_trials_that_repeats_cannot_tell_apart_are_tied_and_others_are_not() -> None:
    close = [
        *(trial(0, 0.9), repeat(2, 0, 0.85), repeat(3, 0, 0.89)),
        *(trial(1, 0.89), repeat(4, 1, 0.86), repeat(5, 1, 0.87)),
    ]
    assert [r.tied for r in rank(close, "maximize")] == [True, True]
    apart = [
        *(trial(0, 0.9), repeat(2, 0, 0.9), repeat(3, 0, 0.9001), repeat(4, 0, 0.9002)),
        *(trial(1, 0.8), repeat(5, 1, 0.8), repeat(6, 1, 0.8001), repeat(7, 1, 0.8002)),
    ]
    assert [r.tied for r in rank(apart, "maximize")] == [False, False]


def test_a_paused_trial_that_was_repeated_can_be_tied_with_a_complete_one() -> None:
    trials = [
        *(trial(0, 0.9, State.PAUSED, resource=1.0), repeat(2, 0, 0.85), repeat(3, 0, 0.89)),
        *(trial(1, 0.89), repeat(4, 1, 0.86), repeat(5, 1, 0.87)),
    ]
    assert [r.tied for r in rank(trials, "maximize")] == [True, True]


@given(
    st.lists(st.one_of(st.none(), st.floats()), max_size=20),
    st.sampled_from(["minimize", "maximize"]),
)
def test_the_first_is_at_least_as_good_as_every_other(
    values: list[float | None], direction: str
) -> None:
    ranked = rank([trial(n, value) for n, value in enumerate(values)], direction)
    finite = [v for v in values if v is not None and math.isfinite(v)]
    assert len(ranked) == len(finite)
    if finite:
        assert ranked[0].value == (max(finite) if direction == "maximize" else min(finite))
