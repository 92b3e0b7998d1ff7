"""Learning-rate schedules."""

import pytest

from trials.schedules import multiplier


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "one_cycle"])
def test_a_schedule_rises_to_its_peak_at_the_end_of_the_warm_up(schedule: str) -> None:
    rising = [multiplier(schedule, progress / 100, warmup=0.2) for progress in range(21)]
    assert rising == sorted(rising)
    assert rising[-1] == pytest.approx(1.0)
    assert rising[0] < 0.05


@pytest.mark.parametrize("schedule", ["linear", "cosine", "one_cycle"])
def test_a_decaying_schedule_falls_from_its_peak_to_nothing(schedule: str) -> None:
    falling = [multiplier(schedule, progress / 100, warmup=0.2) for progress in range(20, 101)]
    assert falling == sorted(falling, reverse=True)
    assert falling[-1] == pytest.approx(0.0)


def test_linear_and_cosine_meet_halfway_down() -> None:
    assert multiplier("linear", 0.5, warmup=0.0) == pytest.approx(0.5)
    assert multiplier("cosine", 0.5, warmup=0.0) == pytest.approx(0.5)
    assert multiplier("cosine", 0.25, warmup=0.0) == pytest.approx(0.8535534)


def test_constant_stays_at_its_peak() -> None:
    assert {multiplier("constant", progress / 10, warmup=0.0) for progress in range(11)} == {1.0}


def test_one_cycle_without_a_warm_up_rises_for_three_tenths() -> None:
    assert multiplier("one_cycle", 0.0, warmup=0.0) == pytest.approx(1 / 25)
    assert multiplier("one_cycle", 0.3, warmup=0.0) == pytest.approx(1.0)


def test_progress_past_the_budget_is_its_end() -> None:
    assert multiplier("linear", 1.01, warmup=0.1) == 0.0
