"""What repeats say of true values: means, pooled spread, intervals, and who is behind."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpsearch.ranking.repeats import Repeats


def test_a_lone_trial_has_students_interval() -> None:
    found = Repeats({0: [0.80, 0.82, 0.84]}, "maximize").confirmed()[0]
    half = 2.91998558 * 0.02 / math.sqrt(3)  # t(0.95, 2), from tables
    assert found.mean == pytest.approx(0.82)
    assert found.low == pytest.approx(0.82 - half)
    assert found.high == pytest.approx(0.82 + half)


def test_one_run_alone_has_no_interval_and_puts_nobody_behind() -> None:
    alone = Repeats({0: [0.8]}, "maximize").confirmed()[0]
    assert (alone.mean, alone.low, alone.high, alone.runs) == (0.8, None, None, 1)
    assert not Repeats({0: [0.8], 1: [0.1]}, "maximize").behind(1)


def test_trials_share_what_is_known_of_the_spread() -> None:
    alone = Repeats({0: [0.80, 0.82]}, "maximize").confirmed()[0]
    together = Repeats({0: [0.80, 0.82], 1: [0.5, 0.52], 2: [0.3, 0.32]}, "maximize")
    found = together.confirmed()[0]
    assert alone.low is not None
    assert found.low is not None
    assert found.low > alone.low + 0.01  # t(0.95, 1) is 6.3, t(0.95, 3) is 2.4
    assert together.deviation == pytest.approx(0.02 / math.sqrt(2))
    single = Repeats({0: [0.80, 0.82], 1: [0.5]}, "maximize").confirmed()[1]
    assert single.low is not None  # the others tell how its one run may be off


def test_the_best_of_several_that_cannot_be_told_apart_has_a_wider_interval() -> None:
    def width(runs: dict[int, list[float]]) -> float:
        found = Repeats(runs, "minimize").confirmed()[0]
        assert found.low is not None
        assert found.high is not None
        return found.high - found.low

    apart = width({0: [0.1, 0.2, 0.3], 1: [5.1, 5.2, 5.3], 2: [9.1, 9.2, 9.3]})
    close = width({0: [0.1, 0.2, 0.3], 1: [0.11, 0.21, 0.31], 2: [0.12, 0.22, 0.32]})
    assert close > apart * 1.1


@pytest.mark.parametrize(("direction", "behind"), [("minimize", 1), ("maximize", 0)])
def test_the_direction_says_who_is_behind(direction: str, behind: int) -> None:
    repeats = Repeats({0: [0.10, 0.11, 0.12], 1: [0.30, 0.31, 0.32]}, direction)
    assert repeats.behind(behind)
    assert not repeats.behind(1 - behind)


def test_equal_values_without_any_spread_are_told_apart_by_nothing() -> None:
    repeats = Repeats({0: [0.5, 0.5], 1: [0.5, 0.5], 2: [0.6, 0.6]}, "minimize")
    assert [repeats.behind(number) for number in (0, 1, 2)] == [False, False, True]


def test_the_chance_of_being_better_is_that_of_a_t_test() -> None:
    repeats = Repeats({0: [1.0, 2.0, 3.0], 1: [2.0, 3.0, 4.0]}, "maximize")
    assert repeats.chance(0, 1) == pytest.approx(
        0.14393, abs=1e-4
    )  # scipy.stats.ttest_ind, one-sided


@given(
    st.dictionaries(
        st.integers(0, 9),
        st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=5),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(["minimize", "maximize"]),
)
def test_the_first_is_never_behind_and_every_mean_lies_in_its_interval(
    runs: dict[int, list[float]], direction: str
) -> None:
    repeats = Repeats(runs, direction)
    assert repeats.first is not None
    assert not repeats.behind(repeats.first)
    for number, found in repeats.confirmed().items():
        assert found.runs == len(runs[number])
        assert found.low is None or found.high is None or found.low <= found.mean <= found.high
        for other in runs:
            assert repeats.chance(number, other) + repeats.chance(other, number) == pytest.approx(
                1.0
            )
