"""What figures show beside their points: ticks that can be read, ranges that leave little out."""

from __future__ import annotations

import pandas as pd
import pytest

from hpsearch.report.figures.configuration import slice_of
from hpsearch.report.figures.style import time_scale, value_range
from hpsearch.report.frames.configurations import ParameterScale, Tier, parameter_scales
from hpsearch.store.reading.course import CourseGoal

GOAL = CourseGoal(0, "accuracy", maximize=True)


def ticks_of(values: list[float]) -> list[str]:
    """The ticks of a logarithmic slice through some values."""
    ranked = pd.DataFrame({"standing": [0.5] * len(values), "tier": Tier.REST.value})
    made = slice_of(ranked, pd.Series(values), ParameterScale("x", log=True), GOAL)
    return list(made.layout.xaxis.ticktext)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1e-5, 1e-1], ["1e-05", "0.001", "0.1"]),
        ([17.0, 256.0], ["20", "50", "100", "200"]),
        ([0.031, 0.042], ["0.031", "0.042"]),
        ([0.3, 0.3], ["0.3"]),
        ([1e-9, 1e3], ["1e-09", "1e-05", "0.1", "1000"]),
    ],
)
def test_a_logarithmic_axis_has_a_few_ticks_that_can_be_read(
    values: list[float], ticks: list[str]
) -> None:
    assert ticks_of(values) == ticks


def test_a_few_values_far_worse_than_all_others_lie_outside() -> None:
    usual = [0.8 + n / 1000 for n in range(100)]
    limits, outside = value_range([*usual, -50.0, -80.0], goal_maximize=True)
    assert outside >= 2
    assert limits is not None
    assert limits[0] > 0.7
    assert limits[1] > max(usual), "the best are never outside"
    assert value_range(usual, goal_maximize=True) == (None, 0)
    assert value_range([], goal_maximize=False) == (None, 0)


def test_times_are_in_a_unit_that_suits_them() -> None:
    assert time_scale(90.0) == (1.0, "seconds")
    assert time_scale(3 * 3600.0) == (3600.0, "hours")
    assert time_scale(5 * 86400.0)[1] == "days"


def test_many_categories_share_an_axis_with_the_others_in_one() -> None:
    values = [f"c{n % 50}" for n in range(50)] + ["c7"] * 9
    scale = parameter_scales(pd.DataFrame({"x": values}, dtype=object), {})["x"]
    assert scale.categories is not None
    assert len(scale.categories) == 30
    assert "c7" in scale.categories
    assert scale.categories[-1] == "(others)"
    places = scale.places(pd.Series(values, dtype=object))
    assert places.notna().all()
    assert (places == 29).sum() == 21
