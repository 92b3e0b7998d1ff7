"""Learning-rate schedules."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trials.loop.optim.schedules import multiplier
from trials.settings import SCHEDULES

SHARES = st.floats(0.0, 1.0)
WARMUPS = st.floats(0.0, 0.9)
FRACTIONS = st.floats(0.01, 1.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_rises_to_its_peak_at_the_end_of_the_warm_up(schedule):
    rising = [multiplier(schedule, progress / 100, warmup=0.2) for progress in range(21)]
    assert rising == sorted(rising)
    assert rising[-1] == pytest.approx(1.0)
    assert rising[0] < 0.05


@pytest.mark.parametrize("schedule", ["linear", "cosine", "one_cycle", "wsd"])
def test_a_decaying_schedule_falls_from_its_peak_to_nothing(schedule):
    falling = [multiplier(schedule, progress / 100, warmup=0.2) for progress in range(20, 101)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == pytest.approx(0.0)


@given(st.sampled_from(SCHEDULES), SHARES, WARMUPS, FRACTIONS)
def test_no_schedule_leaves_the_range_from_nothing_to_the_peak(
    schedule, progress, warmup, fraction
):
    assert 0.0 <= multiplier(schedule, progress, warmup, fraction) <= 1.0


@given(st.sampled_from(SCHEDULES), st.tuples(SHARES, SHARES), st.floats(0.01, 0.9), FRACTIONS)
def test_a_warm_up_never_falls_and_what_follows_never_rises(schedule, shares, warmup, fraction):
    earlier, later = sorted(shares)
    warm = [
        multiplier(schedule, share * warmup * 0.999, warmup, fraction) for share in (earlier, later)
    ]
    assert warm[0] <= warm[1]
    after = [
        multiplier(schedule, warmup + share * (1.0 - warmup), warmup, fraction)
        for share in (earlier, later)
    ]
    assert after[0] >= after[1] - 1e-12


@given(st.sampled_from([name for name in SCHEDULES if name != "constant"]), WARMUPS, FRACTIONS)
def test_every_schedule_but_the_constant_one_ends_low(schedule, warmup, fraction):
    assert multiplier(schedule, 1.0, warmup, fraction) <= 0.01 + 1e-12


def test_step_and_wsd_stay_and_fall_where_they_say():
    seen = [
        multiplier("step", progress, warmup=0.0) for progress in (0.0, 0.49, 0.5, 0.74, 0.75, 1.0)
    ]
    assert seen == pytest.approx([1.0, 1.0, 0.1, 0.1, 0.01, 0.01])
    seen = [multiplier("wsd", progress, 0.1, 0.4) for progress in (0.05, 0.1, 0.59, 0.8, 1.0)]
    assert seen == pytest.approx([0.5, 1.0, 1.0, 0.5, 0.0])
    assert multiplier("wsd", 0.5, 0.5, 1.0) == pytest.approx(1.0)
    assert multiplier("wsd", 0.75, 0.5, 1.0) == pytest.approx(0.5)


def test_linear_and_cosine_meet_halfway_constant_stays_and_one_cycle_rises_without_a_warm_up():
    assert multiplier("linear", 0.5, warmup=0.0) == pytest.approx(0.5)
    assert multiplier("cosine", 0.5, warmup=0.0) == pytest.approx(0.5)
    assert multiplier("cosine", 0.25, warmup=0.0) == pytest.approx(0.8535534)
    assert {multiplier("constant", progress / 10, warmup=0.0) for progress in range(11)} == {1.0}
    assert multiplier("one_cycle", 0.0, warmup=0.0) == pytest.approx(1 / 25)
    assert multiplier("one_cycle", 0.3, warmup=0.0) == pytest.approx(1.0)
    assert multiplier("linear", 1.01, warmup=0.1) == 0.0
