"""Ticks of a slice: a few, which can be read."""

from __future__ import annotations

import pandas as pd
import pytest

from hpsearch.report.charts.parameters import Configurations, slices
from hpsearch.report.frames.configurations import ParameterValues, Tier
from hpsearch.report.frames.importances import Importances
from hpsearch.store.reading.best import GoalColumns

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
