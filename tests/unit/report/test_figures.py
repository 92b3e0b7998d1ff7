"""What figures show beside their points: ticks that can be read, ranges that leave little out."""

from __future__ import annotations

import pandas as pd
import pytest

from hpsearch.report.charts.chart import left_out, some_of
from hpsearch.report.charts.parameters import Configurations, slices
from hpsearch.report.charts.style import time_scale, value_range
from hpsearch.report.frames.configurations import ParameterValues, Tier
from hpsearch.report.frames.importances import Importances
from hpsearch.store.reading.history_frames import GoalColumns

GOAL = GoalColumns(0, "accuracy", maximize=True)


def ticks_of(values: list[float]) -> list[str]:
    """The ticks of a logarithmic slice through some values."""
    ranked = pd.DataFrame({"standing": [0.5] * len(values), "tier": Tier.REST.value})
    parameter = ParameterValues("x", pd.Series(values), log=True)
    chart = slices(GOAL, Configurations(ranked, [parameter], Importances(ranked, 2, ())))
    assert chart is not None
    return list(chart.figure.layout.xaxis.ticktext)


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([1e-5, 1e-1], ["1e-05", "0.001", "0.1"]),
        ([17.0, 256.0], ["17", "100", "256"]),
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
    limits = value_range([*usual, -50.0, -80.0], maximize=True)
    assert limits is not None
    assert limits[0] > 0.7
    assert limits[1] > max(usual), "the best are never outside"
    assert value_range(usual, maximize=True) is None
    assert value_range([], maximize=False) is None


def test_times_are_in_a_unit_that_suits_them() -> None:
    assert time_scale(90.0) == (1.0, "seconds")
    assert time_scale(3 * 3600.0) == (3600.0, "hours")
    assert time_scale(5 * 86400.0)[1] == "days"


def test_of_many_trials_the_best_and_some_others_are_drawn() -> None:
    assert some_of(range(5), 9) == [0, 1, 2, 3, 4]
    chosen = some_of(range(1000), 60)
    assert chosen[:20] == list(range(20)), "a third of them are the best"
    assert len(chosen) == 60
    assert chosen == sorted(chosen)
    assert chosen[-1] == 999
    assert left_out(60, 1000, "curves") is not None
    assert left_out(5, 5, "curves") is None
