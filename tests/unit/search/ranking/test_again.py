"""What comes of a configuration when it is trained again: the mean, and where one more ends."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial
from hpsearch.search.ranking.again import (
    Again,
    EarlierRepeats,
    Seeds,
    Spread,
    earlier_repeats,
    spread_of,
)
from hpsearch.search.ranking.repeats import Repeats
from hpsearch.search.ranking.selection import rank

NO_REPEATS = Repeats({}, "minimize")


def trial(number: int, value: float, **more: Any) -> Trial:
    return Trial(number, State.COMPLETE, {}, value=value, resource=3.0, **more)


def repeat(number: int, of: int, value: float, **more: Any) -> Trial:
    return trial(number, value, role=Role.CONFIRM, repeats=of, **more)


def first_of(trials: list[Trial], metric: str = "accuracy") -> Again:
    again = rank(trials, "maximize", metric)[0].again
    assert again is not None
    return again


def test_repeats_alone_give_students_interval_of_one_more_training():
    repeats = [repeat(1, 0, 0.80), repeat(2, 0, 0.82), repeat(3, 0, 0.84)]
    found = first_of([trial(0, 0.9), *repeats])
    half = 2.91998558 * 0.02 * math.sqrt(1 + 1 / 3)  # t(0.95, 2), from tables
    assert found.mean == pytest.approx(0.82)
    assert (found.low, found.high) == pytest.approx((0.82 - half, 0.82 + half))


def test_a_few_trials_that_were_trained_once_tell_nothing_of_seeds():
    found = first_of([trial(0, 0.9), trial(1, 0.8), trial(2, 0.7)])
    assert found == Again(0.9, None, None, 0)


def test_the_best_of_many_falls_back_towards_the_other_good_ones():
    values = [0.90, 0.87, 0.86, 0.85, 0.6, 0.5, 0.4, 0.3, 0.2]
    found = first_of([trial(n, value) for n, value in enumerate(values)])
    assert found.low is not None
    assert found.low < 0.87 < found.mean < 0.90


def test_repeats_that_are_all_equal_leave_an_interval_with_a_width():
    ends = [trial(n, 1.0 - 0.01 * n) for n in range(6)]
    repeats = [repeat(6 + n, 0, 1.0) for n in range(3)]
    found = first_of([*ends, *repeats])
    assert found.low is not None
    assert found.low < 1.0 == found.mean == found.high


def test_equal_values_at_the_top_are_judged_by_the_others():
    assert spread_of(6, lambda most: [0.0, 0.0, 0.0, 0.1, 0.2, 0.3][:most]) is not None
    assert spread_of(6, lambda most: [0.5] * most) is None


def test_a_repeat_counts_by_its_end_as_the_trial_that_it_repeats_does():
    lucky = repeat(1, 0, 1.0, expected=0.97)
    found = first_of([trial(0, 1.0, expected=0.97), lucky])
    assert (found.mean, found.runs) == (0.97, 1)


def test_the_repeats_of_earlier_studies_tell_how_far_seeds_move_this_one():
    spread = Spread(0.0, 1.0)
    steady = earlier_repeats([({0: [5.0, 5.2, 4.8], 1: [3.0, 3.1, 2.9]}, Spread(0.0, 10.0))])
    usual = Seeds(NO_REPEATS, spread).reach(1.0)
    assert steady.freedom == 4
    assert Seeds(NO_REPEATS, spread, steady).reach(1.0) < usual
    assert Seeds(NO_REPEATS, spread, EarlierRepeats(40.0, 4)).reach(1.0) > usual


@given(
    st.lists(st.floats(-1e308, 1e308), min_size=1, max_size=12),
    st.sampled_from(["minimize", "maximize"]),
)
def test_every_interval_holds_its_mean_and_has_a_width(values, direction):
    ranked = rank([trial(n, value) for n, value in enumerate(values)], direction)
    for each in ranked:
        found = each.again
        assert found is not None
        if found.low is not None and found.high is not None:
            assert found.low <= found.mean <= found.high
            assert found.low < found.high or abs(found.mean) > 1e6 * (found.high - found.low)


def test_an_interval_is_narrower_where_the_forecast_is_surer_until_repeats_measure_it():
    once = Seeds(NO_REPEATS, Spread(1.0, 0.1))
    surely, usually, hardly = (once.sharpness(each) for each in (0.01, 0.07, 0.2))
    assert surely < usually < hardly
    assert usually == pytest.approx(1.0)
    assert once.sharpness(None) == 1.0
    assert once.sharpness(1e300) < 2, "no forecast widens it without end"
    repeated = Seeds(Repeats({1: [0.9, 1.1]}, "minimize"), Spread(1.0, 0.1))
    assert repeated.sharpness(0.01) == 1.0
