"""Recorded curves: what stands for a proposal, and what it measures on its way."""

from typing import Any

import numpy as np
import pytest

from benchmarks.simulation.curves import Curve, RecordedCurves
from support.studies.small import spec_with
from trials.contract import Diverged

SPACE = {
    "lr": {"type": "float", "low": 1e-4, "high": 1.0, "log": True},
    "kind": {"type": "categorical", "choices": ["plain", "lora", True]},
    "rank": {"type": "int", "low": 1, "high": 9, "when": {"kind": "lora"}},
}


def curve(*values: float, seconds: tuple[float, ...] = (10.0, 20.0, 40.0)) -> Curve:
    return Curve(np.array([1.0, 2.0, 4.0]), {"loss": np.array(values)}, np.array(seconds))


def recorded(*configurations: dict[str, Any]) -> RecordedCurves:
    """Curves whose loss is the configuration's place in the table."""
    curves = [curve(*[float(place)] * 3) for place in range(len(configurations))]
    return RecordedCurves(spec_with(space=SPACE).space, configurations, [[each] for each in curves])


def loss(of: RecordedCurves, params: dict[str, Any]) -> float:
    return of.measure(params, 0, 1.0)["loss"]


def test_near_is_told_on_the_scale_of_the_space():
    table = recorded({"lr": 1e-3, "kind": "plain"}, {"lr": 0.5, "kind": "plain"})
    assert loss(table, {"lr": 0.01, "kind": "plain"}) == 0


def test_configurations_stand_for_one_proposal_only_until_the_table_has_run_out():
    table = recorded({"lr": 1e-3, "kind": "plain"}, {"lr": 0.5, "kind": "plain"})
    assert [loss(table, {"lr": lr, "kind": "plain"}) for lr in (1e-3, 2e-3, 1e-3)] == [0, 1, 0]
    assert table.taken == 2
    assert [loss(table, {"lr": lr, "kind": "plain"}) for lr in (1e-3, 0.4, 0.6, 1e-4)] == [
        0,
        1,
        1,
        0,
    ]


def test_each_seed_of_a_proposal_takes_the_next_recorded_one():
    space = spec_with(space=SPACE).space
    runs = [curve(*[value] * 3) for value in (1.0, 2.0, 5.0)]
    configurations = [{"lr": 0.01, "kind": "plain"}, {"lr": 0.5, "kind": "plain"}]
    table = RecordedCurves(space, configurations, [runs[:2], runs[2:]])
    repeated = [table.measure(configurations[0], seed, 1.0)["loss"] for seed in (9, 7, 9, 3)]
    assert repeated == [1.0, 2.0, 1.0, 1.0]
    alone = [table.measure(configurations[1], seed, 1.0)["loss"] for seed in (7, 9)]
    assert alone == [5.0, 5.0]
    assert table.taken == 2


def test_another_choice_is_farther_than_any_small_step():
    table = recorded(
        {"lr": 1e-3, "kind": "lora", "rank": 1},
        {"lr": 0.1, "kind": "plain"},
        {"lr": 1e-3, "kind": True},
    )
    assert loss(table, {"lr": 1e-3, "kind": "plain"}) == 1
    assert loss(table, {"lr": 1e-3, "kind": True}) == 2


def test_an_inactive_parameter_is_like_an_inactive_one():
    table = recorded(
        {"lr": 0.01, "kind": "lora", "rank": 9}, {"lr": 0.01, "kind": "lora", "rank": 2}
    )
    assert loss(table, {"lr": 0.01, "kind": "lora", "rank": 1}) == 1


def test_a_curve_is_straight_between_its_levels_and_starts_at_no_time():
    falling = curve(4.0, 2.0, 1.0)
    assert [falling.at(r)["loss"] for r in (0.5, 1.0, 1.5, 3.0, 4.0)] == [4.0, 4.0, 3.0, 1.5, 1.0]
    assert [falling.seconds_at(r) for r in (0.0, 0.5, 2.0, 3.0)] == [0.0, 5.0, 20.0, 30.0]


def test_a_run_that_diverged_gets_no_farther():
    diverging = curve(4.0, 2.0, float("nan"))
    assert diverging.at(2.0) == {"loss": 2.0}
    with pytest.raises(Diverged, match="not finite at 3"):
        diverging.at(3.0)
