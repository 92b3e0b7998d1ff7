"""What repeats say of means: the pooled spread, and who is behind."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr, stdtrit

from hpsearch.search.ranking.repeats import Repeats, t_below, t_quantile


def test_one_run_alone_puts_nobody_behind_and_trials_share_what_is_known_of_the_spread():
    assert not Repeats({0: [0.8], 1: [0.1]}, "maximize").behind(1)
    together = Repeats({0: [0.80, 0.82], 1: [0.5, 0.52], 2: [0.3, 0.32]}, "maximize")
    assert together.deviation == pytest.approx(0.02 / math.sqrt(2))
    assert together.freedom == 3


@pytest.mark.parametrize(("direction", "behind"), [("minimize", 1), ("maximize", 0)])
def test_the_direction_says_who_is_behind(direction, behind):
    repeats = Repeats({0: [0.10, 0.11, 0.12], 1: [0.30, 0.31, 0.32]}, direction)
    assert repeats.behind(behind)
    assert not repeats.behind(1 - behind)


def test_equal_values_without_any_spread_are_told_apart_by_nothing():
    repeats = Repeats({0: [0.5, 0.5], 1: [0.5, 0.5], 2: [0.6, 0.6]}, "minimize")
    assert [repeats.behind(number) for number in (0, 1, 2)] == [False, False, True]


def test_the_chance_of_being_better_is_that_of_a_t_test():
    repeats = Repeats({0: [1.0, 2.0, 3.0], 1: [2.0, 3.0, 4.0]}, "maximize")
    assert repeats.chance(0, 1) == pytest.approx(
        0.14393, abs=1e-4
    )  # scipy.stats.ttest_ind, one-sided


def test_runs_may_be_as_far_apart_as_floats():
    repeats = Repeats({0: [1.7e308, 1.7e308, -1.7e308], 1: [-1.7e308, -1.7e308]}, "minimize")
    assert repeats.first == 1
    assert repeats.deviation is not None
    assert math.isfinite(repeats.deviation)
    assert 0.5 < repeats.chance(1, 0) <= 1


@given(
    st.dictionaries(
        st.integers(0, 9),
        st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["minimize", "maximize"]),
)
def test_the_first_is_never_behind_and_chances_add_up(runs, direction):
    repeats = Repeats(runs, direction)
    assert repeats.first is not None
    assert not repeats.behind(repeats.first)
    for number in runs:
        for other in runs:
            assert repeats.chance(number, other) + repeats.chance(other, number) == pytest.approx(
                1.0
            )


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 8, 31, 200])
def test_students_distribution_is_scipys(freedom):
    for t in (-30.0, -1.7, -0.1, 0.0, 0.4, 2.0, 80.0):
        assert t_below(freedom, t) == pytest.approx(stdtr(freedom, t), abs=1e-13)
    for probability in (0.5, 0.6, 0.95, 0.999):
        wanted = stdtrit(freedom, probability)
        assert t_quantile(freedom, probability) == pytest.approx(wanted, rel=1e-10, abs=1e-12)
