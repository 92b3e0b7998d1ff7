"""Learning curves: what trials reported on their way."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hpsearch.report.figures.style import (
    BAD,
    CALM,
    GOOD,
    OTHER,
    PALE,
    WINNER,
    axis,
    figure,
    linear_ticks,
    plotly,
    shown,
    value_range,
)
from hpsearch.store.reading.course import CourseGoal

if TYPE_CHECKING:
    import plotly.graph_objects as go


class CurveKind(StrEnum):
    """How a curve is drawn: as its trial stands."""

    PAUSED = "paused or pruned"
    FAILED = "failed"
    RUNNING = "not ended"
    COMPLETE = "complete"
    WINNER = "winner"


_LINES = {
    CurveKind.PAUSED: ({"color": PALE, "width": 1}, 0.6),
    CurveKind.FAILED: ({"color": BAD, "width": 1.2, "dash": "dot"}, 0.8),
    CurveKind.RUNNING: ({"color": GOOD, "width": 1.2}, 0.8),
    CurveKind.COMPLETE: ({"color": CALM, "width": 1.4}, 0.75),
    CurveKind.WINNER: ({"color": WINNER, "width": 3}, 1.0),
}
"""The line of each kind and its opacity, in the order of drawing."""


def curves(reports: pd.DataFrame, goal: CourseGoal, unit: str) -> go.Figure:
    """A curve for each trial, those that were paused dimmed and the winner marked.

    Args:
        reports: Columns `trial`, `resource`, `kind` (a `CurveKind`) and the goal's, by trial and
            resource.
        goal: The objective.
        unit: The unit of the resource.
    """
    made = figure(380, showlegend=True)
    alone = reports.groupby("trial")["trial"].transform("size") == 1
    for kind, (line, opacity) in _LINES.items():
        own = reports[reports["kind"] == kind]
        if own.empty:
            continue
        x, y, trials = _with_gaps(own, goal.column)
        has_points = kind is CurveKind.WINNER or bool(alone[own.index].any())
        made.add_trace(
            plotly().Scatter(
                x=x,
                y=y,
                customdata=trials,
                mode="lines+markers" if has_points else "lines",
                marker={"size": 7 if kind is CurveKind.WINNER else 4},
                line=line,
                opacity=opacity,
                name=kind.value,
                hovertemplate="trial %{customdata}<br>%{y:.5~g} at %{x}<extra></extra>",
            )
        )
    limits, _ = value_range(reports[goal.column], goal.maximize)
    made.update_xaxes(axis(shown(unit), **_ticks(reports["resource"])))
    made.update_yaxes(axis(shown(goal.metric), range=limits))
    return made


_COLOURS = (CALM, WINNER, GOOD, OTHER, BAD, PALE)
"""Of curves side by side, in their order."""


def side_by_side(reports: pd.DataFrame, goal: CourseGoal, unit: str) -> go.Figure:
    """A curve for each trial in a colour of its own.

    Args:
        reports: Columns `trial`, `resource` and the goal's, by resource within each trial.
        goal: The objective.
        unit: The unit of the resource.
    """
    trials = list(dict.fromkeys(reports["trial"]))
    made = figure(320, showlegend=len(trials) > 1)
    for place, trial in enumerate(trials):
        own = reports[reports["trial"] == trial]
        made.add_trace(
            plotly().Scatter(
                x=own["resource"],
                y=own[goal.column],
                mode="lines+markers" if len(own) < 100 else "lines",
                marker={"size": 6},
                line={"color": _COLOURS[place % len(_COLOURS)], "width": 2},
                name=f"trial {trial}",
                hovertemplate="%{y:.5~g} at %{x}<extra></extra>",
            )
        )
    made.update_xaxes(axis(shown(unit), **_ticks(reports["resource"])))
    made.update_yaxes(axis(shown(goal.metric)))
    return made


def _ticks(resources: pd.Series) -> dict[str, Any]:
    """A tick for each epoch of a short training; else those that Plotly finds."""
    ticks = linear_ticks(resources)
    return ticks if "dtick" in ticks else {}


def _with_gaps(reports: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The points of several curves in one line that is interrupted between them."""
    trials = reports["trial"].to_numpy(int)
    ends = np.flatnonzero(np.diff(trials)) + 1
    x = np.insert(reports["resource"].to_numpy(float), ends, np.nan)
    y = np.insert(reports[column].to_numpy(float), ends, np.nan)
    return x, y, np.insert(trials, ends, trials[ends - 1] if len(ends) else 0)
