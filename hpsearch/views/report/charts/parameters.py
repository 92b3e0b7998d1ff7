"""Configurations with their values: importances, parallel coordinates and slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.history_frames import rows_in
from hpsearch.views.report.charts import style
from hpsearch.views.report.charts.style import Chart, axis, figure, plotly, shown
from hpsearch.views.report.data import (
    Importances,
    ParameterValues,
    ReportData,
    Tier,
    parameter_importances,
    parameter_values,
    ranked_configurations,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_LINES, MOST_POINTS = 120, 500
MOST_AXES, MOST_SLICES = 10, 12
COLUMNS = 3  # slices beside each other
AXIS_WIDTH, SLICE_WIDTH = 80, 220  # the least pixels between two axes, and for a slice
JITTER = 0.035  # the spread of the lines of a category, as a share of an axis
_COLOURS = {Tier.REST: style.PALE, Tier.BETTER: style.CALM, Tier.BEST: style.WINNER}
"""In the order of drawing."""
_SYMBOLS = {Tier.REST: "circle-open", Tier.BETTER: "circle", Tier.BEST: "diamond"}


@dataclass(frozen=True, slots=True)
class Configurations:
    """The configurations of a study, to be drawn."""

    goal: GoalColumns
    ranked: pd.DataFrame  # `ranked_configurations`
    parameters: Sequence[ParameterValues]  # all of them, the most important first
    importances: Importances

    @property
    def can_compare(self) -> bool:
        return len(self.ranked) > 1 and bool(self.parameters)


def configurations(data: ReportData, goal: GoalColumns) -> Configurations:
    """The configurations of a study, its parameters in the order of importance."""
    ranked = ranked_configurations(data.history, goal)
    params = data.history.params.loc[ranked.index]
    values = parameter_values(params, data.history.space)
    found = parameter_importances(ranked["standing"], params[list(values)])
    order = dict.fromkeys([*found.frame["parameter"], *values])
    return Configurations(goal, ranked, [values[name] for name in order], found)


def importances(of: Configurations) -> Chart | None:
    """A bar for each parameter; None if no importance is known."""
    frame = of.importances.frame.head(MOST_AXES)
    if frame.empty:
        return None
    percent = (100 * frame["importance"]).to_numpy(float)
    places = list(range(len(frame)))
    made = figure(70 + 26 * len(frame), showlegend=False, bargap=0.35)
    bars = plotly().Bar(
        x=percent,
        y=places,
        orientation="h",
        marker={"color": style.CALM},
        text=[f"{each:.0f}%" if each >= 0.5 else "<1%" for each in percent],
        textposition="outside",
        cliponaxis=False,
        hoverinfo="skip",
    )
    made.add_trace(bars)
    range_ = [0, 1.15 * float(percent.max())]
    made.update_xaxes(axis("share explained", range=range_, showticklabels=False))
    names = [shown(name) for name in frame["parameter"]]
    made.update_yaxes(axis(tickvals=places, ticktext=names, autorange="reversed", showgrid=False))
    parts = ", ".join(f"{row.parameter} {row.importance:.0%}" for row in rows_in(frame.head(5)))
    alternative = f"Shares of the differences explained: {parts}."
    remark = _parameters_left_out(len(frame), len(of.importances.frame))
    return Chart(made, "What mattered", alternative, remark)


def _parameters_left_out(drawn: int, of: int) -> str | None:
    return f"{drawn} of {of} parameters are drawn, the most important ones." if drawn < of else None


def parallel_coordinates(of: Configurations) -> Chart | None:
    """A line for each trial, through its value of each parameter to its objective, interrupted
    where it has none. None if fewer than two trials can be compared."""
    if not of.can_compare:
        return None
    numbers = style.some_of(list(of.ranked.index), MOST_LINES)
    ranked = of.ranked.loc[numbers]
    parameters = of.parameters[:MOST_AXES]
    axes = [_parameter_axis(each, numbers) for each in parameters]
    limits = style.value_range(ranked["standing"], maximize=of.goal.maximize)
    low, high = limits or (ranked["standing"].min(), ranked["standing"].max())
    axes.append(_numeric_axis(ranked["standing"].clip(low, high)))
    made = figure(420, showlegend=True)
    _add_lines(made, np.column_stack([each.heights for each in axes]), ranked)
    rule, ends = {"color": style.INK, "width": 1}, {"showarrow": False, "font": {"size": 11}}
    for place, each in enumerate(axes):
        made.add_shape(type="line", x0=place, x1=place, y0=0, y1=1, line=rule)
        made.add_annotation(x=place, y=-0.01, text=each.bottom, yanchor="top", **ends)
        made.add_annotation(x=place, y=1.01, text=each.top, yanchor="bottom", **ends)
    names = [shown(each.name, 16) for each in parameters]
    names.append(f"<b>{shown(of.goal.metric, 16)}</b>")
    places: dict[str, Any] = {"tickvals": list(range(len(names))), "ticktext": names}
    limits_ = [-0.4, len(names) - 0.6]
    made.update_xaxes(axis(**places, range=limits_, showgrid=False, showline=False))
    made.update_yaxes(visible=False, fixedrange=True, range=[-0.08, 1.09])
    listed = ", ".join(each.name for each in parameters)
    alternative = f"Parallel coordinates of {len(numbers)} trials: {listed}, and {of.goal.metric}."
    remark = _remark(numbers, parameters, of, limits)
    return Chart(made, "Configurations", alternative, remark, AXIS_WIDTH * len(names))


def _remark(
    numbers: Sequence[int],
    parameters: Sequence[ParameterValues],
    of: Configurations,
    limits: list[float] | None,
) -> str | None:
    trials = style.left_out(len(numbers), len(of.ranked), "trials")
    left_out = _parameters_left_out(len(parameters), len(of.parameters))
    return style.joined([trials, left_out, style.outside(limits)])


@dataclass(frozen=True, slots=True)
class _Axis:
    """Heights on an axis from 0 to 1, NaN where a trial has no value, and the texts at its ends."""

    heights: np.ndarray
    bottom: str
    top: str


def _parameter_axis(parameter: ParameterValues, numbers: list[int]) -> _Axis:
    values = parameter.values.loc[numbers]
    categories = parameter.categories
    if categories is None:
        return _numeric_axis(values, log=parameter.log)
    place_of = {text: place for place, text in enumerate(categories)}
    last = max(1, len(categories) - 1)
    places = values.map(place_of).to_numpy(float)
    # Multiples of the golden ratio: small shifts, the same each time, that hardly repeat.
    shifts = (np.arange(len(places)) * 0.6180339887) % 1 - 0.5
    heights = (places / last + 2 * JITTER * shifts).clip(0, 1)
    top = categories[-1] if len(categories) > 1 else ""
    return _Axis(heights, shown(categories[0], 10), shown(top, 10))


def _numeric_axis(values: pd.Series, *, log: bool = False) -> _Axis:
    known = values.dropna()
    if known.empty:
        return _Axis(values.to_numpy(float), "", "")
    low, high = float(known.min()), float(known.max())
    bottom, top = style.brief(low), style.brief(high)
    if log:
        values, low, high = np.log10(values), np.log10(low), np.log10(high)
    most = max(abs(low), abs(high)) * 2 or 1.0  # differences of the largest floats are none
    width = high / most - low / most
    heights = (values / most - low / most) / width if width > 0 else values * 0 + 0.5
    return _Axis(heights.to_numpy(float), bottom, top)


def _add_lines(made: go.Figure, heights: np.ndarray, ranked: pd.DataFrame) -> None:
    """Add the lines of each tier, the best last; `heights` are (trials, axes)."""
    places = np.append(np.arange(heights.shape[1], dtype=float), np.nan)
    for tier, colour in _COLOURS.items():
        chosen = (ranked["tier"] == tier).to_numpy()
        if not chosen.any():
            continue
        lines = np.pad(heights[chosen], ((0, 0), (0, 1)), constant_values=np.nan)
        trace = plotly().Scatter(
            x=np.tile(places, len(lines)),
            y=lines.ravel().round(4),
            customdata=np.repeat(ranked.index.to_numpy(int)[chosen], lines.shape[1]),
            mode="lines",
            line={"color": colour, "width": 1 if tier is Tier.REST else 1.6},
            opacity=0.3 if tier is Tier.REST else 0.65,
            name=tier.value,
            hovertemplate=style.OF_TRIAL,
        )
        made.add_trace(trace)


def slices(of: Configurations) -> Chart | None:
    """The worth of trials against each parameter; None if fewer than two can be compared."""
    if not of.can_compare:
        return None
    numbers = style.some_of(list(of.ranked.index), MOST_POINTS)
    ranked = of.ranked.loc[numbers]
    parameters = of.parameters[:MOST_SLICES]
    rows = -(-len(parameters) // COLUMNS)
    made = figure(60 + 250 * rows, showlegend=False)
    grid = {"rows": rows, "columns": COLUMNS, "pattern": "independent"}
    made.update_layout(grid={**grid, "xgap": 0.2, "ygap": 0.45})
    limits = style.value_range(ranked["standing"], maximize=of.goal.maximize)
    for place, parameter in enumerate(parameters):
        suffix = "" if place == 0 else str(place + 1)
        values = parameter.values.loc[numbers]
        for trace in _points(ranked, values):
            trace.update(xaxis=f"x{suffix}", yaxis=f"y{suffix}")
            made.add_trace(trace)
        title = shown(of.goal.metric) if place % COLUMNS == 0 else None
        made.update_layout({f"xaxis{suffix}": _slice_axis(parameter, values)})
        made.update_layout({f"yaxis{suffix}": axis(title, range=limits)})
    listed = ", ".join(each.name for each in parameters)
    alternative = f"{of.goal.metric} of {len(numbers)} trials against {listed}."
    width = SLICE_WIDTH * min(COLUMNS, len(parameters))
    return Chart(made, "Slices", alternative, _remark(numbers, parameters, of, limits), width)


def _points(ranked: pd.DataFrame, values: pd.Series) -> list[Any]:
    """The points of each tier, the best last."""
    traces = []
    for tier, colour in _COLOURS.items():
        chosen = (ranked["tier"] == tier) & values.notna()
        own = values[chosen]
        trace = plotly().Scatter(
            x=[shown(each, 16) if isinstance(each, str) else each for each in own],
            y=ranked["standing"].to_numpy(float)[chosen],
            customdata=own.index.to_numpy(int),
            mode="markers",
            marker={"color": colour, "size": 5, "symbol": _SYMBOLS[tier], "opacity": 0.75},
            name=tier.value,
            hovertemplate=style.TRIAL_AND_POINT,
        )
        traces.append(trace)
    return traces


def _slice_axis(parameter: ParameterValues, values: pd.Series) -> dict[str, Any]:
    title = shown(parameter.name)
    if parameter.categories is not None:
        order = [shown(text, 16) for text in parameter.categories]
        return axis(title, type="category", categoryorder="array", categoryarray=order)
    if not parameter.log:
        return axis(title, **style.ticks(values))
    return axis(title, type="log", nticks=4, exponentformat="e", tickangle=0)
