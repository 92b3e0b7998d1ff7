"""The paces of trials on types of device of which one takes three times as long."""

import pytest

from hpsearch.domain.lifecycle import State
from hpsearch.domain.paces import Paces
from hpsearch.domain.records import Attempt, Trial


def trained(number: int, *shown: tuple[str, float | None]) -> Trial:
    """A trial with an attempt on each of some devices, with the pace that it showed there."""
    attempts = [
        Attempt(number, place, "w", 0.0, device=device, slowest_pace=pace)
        for place, (device, pace) in enumerate(shown, start=1)
    ]
    paces = [pace for _, pace in shown if pace is not None]
    speed = 1 / paces[-1] if paces else None
    return Trial(number, State.PAUSED, {}, speed=speed, attempts=attempts)


def test_each_type_of_device_has_its_own_pace_and_nothing_is_known_before_a_report():
    paces = Paces([trained(0, ("A100", 10.0)), trained(1, ("T4", 30.0)), trained(2, ("T4", 50.0))])
    assert (paces.mean("A100"), paces.mean("T4")) == (10.0, 40.0)
    assert paces.mean("V100") == paces.mean() == pytest.approx(30.0)
    assert (paces.slowest("A100"), paces.slowest("T4")) == (10.0, 50.0)
    assert paces.slowest("V100") == paces.slowest() == 50.0
    paces = Paces([trained(0, ("A100", None))])
    assert paces.mean("A100") is None
    assert paces.mean() is None
    assert paces.slowest("A100") == 0.0
    assert paces.of(trained(1, ("A100", None)), "T4") is None


def test_a_trial_that_changes_its_device_is_expected_to_change_its_pace():
    wide, narrow = trained(0, ("A100", 20.0)), trained(1, ("A100", 10.0))
    paces = Paces([wide, narrow, trained(2, ("T4", 45.0))])
    assert paces.of(wide, "A100") == 20.0
    assert paces.of(wide, "T4") == pytest.approx(60.0)
    moved = trained(0, ("A100", 20.0), ("T4", None))
    assert paces.of(moved, "T4") == pytest.approx(60.0), "it has shown nothing there yet"


def test_a_trial_counts_where_it_trained_last_and_the_slowest_everywhere():
    trial = trained(0, ("T4", 30.0))
    paces = Paces([trial, trained(1, ("T4", 40.0))])
    trial.attempts.append(Attempt(0, 2, "w", 0.0, device="A100", slowest_pace=10.0))
    trial.speed = 1 / 10.0
    paces.learn(trial)
    again = Paces([trial, trained(1, ("T4", 40.0))])
    for each in (paces, again):
        assert (each.mean("A100"), each.mean("T4")) == (10.0, 40.0)
        assert (each.slowest("A100"), each.slowest("T4")) == (10.0, 40.0)
