"""Ranking: who counts, who is first, and who cannot be told from the first."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.metric_bounds import bounds_of
from hpsearch.search.ranking.selection import leading, rank, standing


def trial(number: int, value: float | None, state: State = State.COMPLETE, **more: Any) -> Trial:
    return Trial(number, state, {}, value=value, resource=more.pop("resource", 3.0), **more)


def repeat(number: int, of: int, value: float | None, state: State = State.COMPLETE) -> Trial:
    return trial(number, value, state, role=Role.CONFIRM, repeats=of)


def order(trials: list[Trial], direction: str = "maximize") -> list[int]:
    return [ranked.trial.number for ranked in rank(trials, direction)]


def test_the_direction_says_which_end_is_best():
    trials = [trial(0, 0.2), trial(1, 0.9), trial(2, 0.5)]
    assert order(trials, "maximize") == [1, 2, 0]
    assert order(trials, "minimize") == [0, 2, 1]


def test_a_trial_that_is_ahead_after_less_training_is_ahead():
    trials = [
        trial(0, 0.9, State.PAUSED, resource=1.0),
        trial(1, 0.4, State.COMPLETE, resource=9.0),
        trial(2, 0.6, State.RUNNING, resource=3.0),
    ]
    assert order(trials) == [0, 2, 1]


def test_of_equal_values_the_complete_one_comes_first_and_then_the_one_that_trained_further():
    trials = [
        trial(0, 0.5, State.PRUNED, resource=1.0),
        trial(1, 0.5, State.PAUSED, resource=3.0),
        trial(2, 0.5, State.COMPLETE, resource=3.0),
    ]
    assert order(trials) == [2, 1, 0]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
def test_a_trial_without_a_finite_value_takes_no_place(value):
    assert order([trial(0, value), trial(1, 0.1)], "maximize") == [1]
    assert order([trial(0, value), trial(1, 0.1)], "minimize") == [1]


def test_a_failed_trial_takes_no_place_whatever_it_had_reached():
    assert order([trial(0, 0.9, State.FAILED), trial(1, 0.1, State.PRUNED)]) == [1]


def test_equal_values_are_tied_at_equal_resource_and_the_older_trial_stands_first():
    ranked = rank([trial(1, 0.9), trial(2, 0.9 + 1e-14), trial(3, 0.9 - 1e-9)], "maximize")
    assert {r.trial.number for r in ranked if r.tied} == {1}
    assert not rank([trial(0, 0.5), trial(1, 0.9)], "maximize")[0].tied
    assert not rank([trial(0, 0.5)], "maximize")[0].tied
    ranked = rank(
        [trial(0, 0.5, State.PRUNED, resource=1.0), trial(1, 0.5, State.PRUNED, resource=3.0)],
        "maximize",
    )
    assert [r.tied for r in ranked] == [False, False]


def test_repeats_take_no_place_and_their_mean_stands_for_the_trial():
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


def test_a_confirmed_trial_falls_behind_one_that_beat_it_in_the_search_and_no_other():
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
    trials = [trial(0, 0.6), trial(1, 0.9), repeat(2, 0, 0.61), repeat(3, 0, 0.62)]
    assert order(trials) == [1, 0]


def test_failed_and_unfinished_repeats_do_not_count():
    trials = [
        trial(0, 0.9),
        repeat(1, 0, 0.1, State.FAILED),
        repeat(2, 0, 0.2, State.RUNNING),
        repeat(3, 0, math.nan),
    ]
    assert rank(trials, "maximize")[0].confirmed is None


def test_trials_paused_or_not_that_repeats_cannot_tell_apart_are_tied_and_others_are_not():
    close = [
        *(trial(0, 0.9), repeat(2, 0, 0.85), repeat(3, 0, 0.89)),
        *(trial(1, 0.89), repeat(4, 1, 0.86), repeat(5, 1, 0.87)),
    ]
    assert [r.tied for r in rank(close, "maximize")] == [False, True]
    apart = [
        *(trial(0, 0.9), repeat(2, 0, 0.9), repeat(3, 0, 0.9001), repeat(4, 0, 0.9002)),
        *(trial(1, 0.8), repeat(5, 1, 0.8), repeat(6, 1, 0.8001), repeat(7, 1, 0.8002)),
    ]
    assert [r.tied for r in rank(apart, "maximize")] == [False, False]
    trials = [
        *(trial(0, 0.9, State.PAUSED, resource=1.0), repeat(2, 0, 0.85), repeat(3, 0, 0.89)),
        *(trial(1, 0.89), repeat(4, 1, 0.86), repeat(5, 1, 0.87)),
    ]
    assert [r.tied for r in rank(trials, "maximize")] == [False, True]


# --------------------------------------------------------------------------------------------------
# expectations


def hoped(
    number: int, value: float, expected: float, deviation: float | None = 0.0, **more: Any
) -> Trial:
    """A paused trial of which something is expected."""
    state = more.pop("state", State.PAUSED)
    more.setdefault("resource", 1.0)
    return trial(number, value, state, expected=expected, expected_deviation=deviation, **more)


def test_what_is_expected_in_full_wins_over_a_lucky_value_and_without_it_the_value_stands():
    trials = [hoped(0, 0.95, 0.80), hoped(1, 0.85, 0.90)]
    assert order(trials, "maximize") == [1, 0]
    trials = [hoped(0, 0.05, 0.20), hoped(1, 0.15, 0.10)]
    assert order(trials, "minimize") == [1, 0]
    assert rank(trials, "minimize")[0].value == 0.15, "the value that it has shown is still told"
    assert order([hoped(0, 0.95, 0.80), trial(1, 0.85), hoped(2, 0.7, 0.9)]) == [2, 1, 0]


@pytest.mark.parametrize("expected", [math.nan, math.inf, -math.inf])
def test_an_expectation_that_is_not_finite_is_none(expected):
    assert order([trial(0, 0.5), hoped(1, 0.6, expected), trial(2, 0.7)]) == [2, 1, 0]


def test_of_equal_expectations_the_complete_one_comes_first_and_over_a_limit_last():
    trials = [
        hoped(0, 0.9, 0.5, resource=1.0),
        hoped(1, 0.8, 0.5, resource=2.0),
        hoped(2, 0.1, 0.5, state=State.COMPLETE, resource=3.0),
    ]
    assert order(trials) == [2, 1, 0]
    over = {"constraints:size": 0.5}
    assert order([hoped(0, 0.9, 0.99, system_attrs=over), hoped(1, 0.2, 0.1)]) == [1, 0]


def test_a_trial_of_which_less_was_expected_does_not_pass_one_that_was_repeated():
    repeats = [repeat(4, 0, 0.84), repeat(5, 0, 0.86)]
    trials = [hoped(0, 0.7, 0.90), hoped(1, 0.99, 0.88), hoped(2, 0.6, 0.95), *repeats]
    assert order(trials) == [2, 0, 1], "0 was expected to beat 1, whatever 1 had shown"


def test_expectations_that_differ_by_less_than_their_deviations_allow_are_tied():
    # The difference has a standard deviation of 0.05, and 0.08 is 1.6 times that: 5.5%.
    ranked = rank([hoped(0, 0.9, 0.90, 0.03), hoped(1, 0.9, 0.82, 0.04, resource=2.0)], "maximize")
    assert [r.tied for r in ranked] == [False, True]
    # 0.085 is 1.7 times that: 4.5%.
    ranked = rank([hoped(0, 0.9, 0.90, 0.03), hoped(1, 0.9, 0.815, 0.04, resource=2.0)], "maximize")
    assert [r.tied for r in ranked] == [False, False]
    trials = [hoped(0, 0.9, 0.8), hoped(1, 0.8, 0.8, None, resource=2.0), hoped(2, 0.9, 0.7999)]
    assert [r.tied for r in rank(trials, "maximize")] == [False, True, False]


def test_an_expectation_is_compared_with_the_interval_of_repeats_and_no_other_value():
    repeats = [repeat(4, 0, 0.84), repeat(5, 0, 0.86)]
    near, far = hoped(1, 0.83, 0.80, 0.01), hoped(2, 0.5, 0.40, 0.01)
    ranked = rank([trial(0, 0.9), near, far, *repeats], "maximize")
    assert [(r.trial.number, r.tied) for r in ranked] == [(0, False), (1, True), (2, False)]
    ranked = rank([hoped(0, 0.5, 0.9, 0.5), trial(1, 0.8)], "maximize")
    assert [r.tied for r in ranked] == [False, False]


def test_what_has_hardly_trained_is_not_known_yet_and_what_is_equal_is_tied():
    """As in a study of six trials, of which three are complete."""
    in_full: dict[str, Any] = {"state": State.COMPLETE, "resource": 3.0}
    best = hoped(0, 0.896, 0.893, 0.002, expected_low=0.889, expected_high=0.897, **in_full)
    equal = hoped(1, 0.896, 0.870, 0.004, expected_low=0.862, expected_high=0.875, **in_full)
    worse = hoped(2, 0.786, 0.702, 0.035, expected_low=0.64, expected_high=0.73, **in_full)
    unseen = hoped(3, 0.105, 0.61, 0.6, expected_low=0.0, expected_high=0.91)
    near = hoped(4, 0.895, 0.885, 0.02, expected_low=0.84, expected_high=0.90)
    hopeless = hoped(5, 0.0, 0.2, 0.2, expected_low=0.0, expected_high=0.5)
    ranked = rank([best, equal, worse, unseen, near, hopeless], "maximize", "accuracy")
    assert {r.trial.number for r in ranked if r.tied} == {1, 4}
    assert {r.trial.number for r in ranked if r.unknown} == {3}


def test_the_side_that_faces_the_best_one_decides():
    narrow = hoped(1, 0.8, 0.8, 0.1, expected_low=0.5, expected_high=0.81)
    assert [r.unknown for r in rank([hoped(0, 0.9, 0.9), narrow], "maximize")] == [False, False]


@pytest.mark.parametrize(
    ("metric", "seen", "low", "high"),
    [
        ("accuracy", [0.2, 0.9], 0.0, 1.0),
        ("val/acc", [20.0, 90.0], 0.0, 100.0),
        ("macro_f1", [math.nan, 0.1], 0.0, 1.0),
        ("mcc", [-0.1, 0.4], -1.0, 1.0),
        ("eval_loss", [0.1, 3.0], 0.0, math.inf),
        ("loss", [-4.0, 3.0], -math.inf, math.inf),
        ("r2", [-4.0, 0.5], -math.inf, 1.0),
        ("reward", [0.5, 200.0], 0.0, math.inf),
        ("reward", [-0.5, 200.0], -math.inf, math.inf),
    ],
)
def test_a_metric_lies_in_what_its_name_and_its_values_say(metric, seen, low, high):
    assert bounds_of(metric, seen) == (low, high)


def test_the_interval_of_repeats_lies_within_what_the_metric_can_be():
    repeats = [repeat(1, 0, 0.9), repeat(2, 0, 0.99)]
    (first,) = rank([trial(0, 0.97), *repeats], "maximize", "accuracy")
    assert first.confirmed is not None
    assert first.confirmed.low is not None
    assert (first.confirmed.high, first.confirmed.low < 0.9) == (1.0, True)


UNITS = st.sampled_from([0.2, 0.4, 0.5, 0.6, 0.9])


@st.composite
def histories(draw: st.DrawFn) -> list[Trial]:
    """Trials of which something is expected or not, and repeats of some of them."""
    trials = []
    for number in range(draw(st.integers(1, 8))):
        expected = draw(st.none() | UNITS)
        made = trial(
            number,
            draw(UNITS),
            draw(st.sampled_from([State.COMPLETE, State.PAUSED, State.RUNNING])),
            resource=draw(st.sampled_from([1.0, 3.0])),
            expected=expected,
            expected_deviation=None if expected is None else draw(st.sampled_from([0.0, 0.1])),
        )
        trials.append(made)
    originals = st.integers(0, len(trials) - 1)
    for of, value in draw(st.lists(st.tuples(originals, UNITS), max_size=6)):
        trials.append(repeat(len(trials), of, value))
    return trials


@given(histories(), st.randoms(), st.sampled_from(["minimize", "maximize"]))
def test_the_order_does_not_depend_on_the_order_of_what_is_given(trials, chance, direction):
    ranked = rank(trials, direction)
    shuffled = trials.copy()
    chance.shuffle(shuffled)
    assert rank(shuffled, direction) == ranked


@given(histories())
def test_no_trial_passes_a_repeated_one_of_which_as_much_was_expected(trials):
    ranked = rank(trials, "maximize")
    for place, each in enumerate(ranked):
        if each.confirmed is not None:
            continue
        for behind in ranked[place + 1 :]:
            assert behind.confirmed is None or standing(behind.trial) < standing(each.trial)


@given(
    st.lists(st.one_of(st.none(), st.floats()), max_size=20),
    st.sampled_from(["minimize", "maximize"]),
)
def test_the_first_is_at_least_as_good_as_every_other(values, direction):
    ranked = rank([trial(n, value) for n, value in enumerate(values)], direction)
    finite = [v for v in values if v is not None and math.isfinite(v)]
    assert len(ranked) == len(finite)
    if finite:
        assert ranked[0].value == (max(finite) if direction == "maximize" else min(finite))


def test_the_leading_trial_is_the_first_of_the_ranking_with_repeats_and_without():
    trials = [trial(0, 0.9), trial(1, 0.85), trial(2, 0.95, State.FAILED)]
    assert leading(trials, "maximize") is trials[0]
    repeats = [repeat(3, 0, 0.7), repeat(4, 0, 0.72), repeat(5, 1, 0.84), repeat(6, 1, 0.86)]
    found = leading([*trials, *repeats], "maximize")
    assert found is trials[1]
    assert found is rank([*trials, *repeats], "maximize")[0].trial
    assert leading([], "maximize") is None
