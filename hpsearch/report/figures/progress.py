"""The best value so far, against what had been spent for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import pandas as pd

from hpsearch.ranking.repeats import Confirmed
from hpsearch.report.figures.style import CALM, WINNER, axis, figure, plotly, shown, time_scale
from hpsearch.store.reading.course import CourseGoal

if TYPE_CHECKING:
    import plotly.graph_objects as go

Spent = Literal["gpu_seconds", "wall_seconds"]
_TITLES: dict[Spent, str] = {"gpu_seconds": "compute time", "wall_seconds": "wall clock"}


def best_so_far(
    improvements: pd.DataFrame,
    goal: CourseGoal,
    against: Spent = "gpu_seconds",
    confirmed: Confirmed | None = None,
) -> go.Figure:
    """The best value that any trial had shown, as a staircase.

    Args:
        improvements: Columns `trial`, `value` and what `against` names, in seconds
            (`hpsearch.report.frames.progress.improvements`).
        goal: The objective.
        against: What had been spent.
        confirmed: What repeats of the winner gave; drawn as a band.
    """
    spent = improvements[against]
    unit_s, unit = time_scale(float(spent.max()) if len(spent) else 0.0)
    made = figure(320, showlegend=confirmed is not None)
    made.add_trace(
        plotly().Scatter(
            x=(spent / unit_s).to_numpy(float),
            y=improvements["value"].to_numpy(float),
            customdata=improvements["trial"].to_numpy(int),
            mode="lines+markers",
            line={"shape": "hv", "color": CALM, "width": 2},
            marker={"size": 6, "color": CALM},
            hovertemplate="%{y:.5~g} after %{x:.3~g} " + unit + "<br>trial %{customdata}"
            "<extra></extra>",
            name="best shown so far",
        )
    )
    if confirmed is not None:
        _mark_confirmed(made, confirmed)
    made.update_xaxes(axis(f"{_TITLES[against]} ({unit})", rangemode="tozero"))
    made.update_yaxes(axis(shown(goal.metric)))
    return made


def _mark_confirmed(made: go.Figure, confirmed: Confirmed) -> None:
    """Mark the mean of the winner's repeats, and its interval."""
    low, high = confirmed.low, confirmed.high
    if low is not None and high is not None:
        made.add_hrect(y0=low, y1=high, fillcolor=WINNER, opacity=0.14, line_width=0, layer="below")
    made.add_hline(y=confirmed.mean, line={"color": WINNER, "width": 2, "dash": "dot"})
    name = "confirmed mean" if low is None else "confirmed mean and 90% interval"
    line = {"color": WINNER, "width": 2, "dash": "dot"}
    made.add_trace(plotly().Scatter(x=[None], y=[None], mode="lines", line=line, name=name))
