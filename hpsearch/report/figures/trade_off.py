"""Several objectives: the trials that no other one beats in all of them, among all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from hpsearch.report.figures.style import PALE, WINNER, axis, figure, plotly, shown
from hpsearch.store.reading.course import CourseGoal

if TYPE_CHECKING:
    import plotly.graph_objects as go


def front(
    trials: pd.DataFrame, on_front: pd.Series, goals: tuple[CourseGoal, CourseGoal]
) -> go.Figure:
    """All trials by two of their objectives, the front marked.

    Args:
        trials: By number, with the columns of both goals.
        on_front: Which of them no other one beats.
        goals: The two objectives.
    """
    made = figure(400, showlegend=True)
    across, up = goals
    kinds = (
        ("other trials", ~on_front, PALE, "circle-open"),
        ("front", on_front, WINNER, "diamond"),
    )
    for name, chosen, colour, symbol in kinds:
        own = trials[chosen]
        made.add_trace(
            plotly().Scatter(
                x=own[across.column].to_numpy(float),
                y=own[up.column].to_numpy(float),
                customdata=own.index.to_numpy(int),
                mode="markers",
                marker={"color": colour, "size": 8, "symbol": symbol},
                name=name,
                hovertemplate="trial %{customdata}<br>%{x:.5~g}, %{y:.5~g}<extra></extra>",
            )
        )
    made.update_xaxes(axis(_titled(across)))
    made.update_yaxes(axis(_titled(up)))
    return made


def _titled(goal: CourseGoal) -> str:
    better = "more" if goal.maximize else "less"
    return f"{shown(goal.metric)} ({better} is better)"
