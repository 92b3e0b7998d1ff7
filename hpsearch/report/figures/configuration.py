"""Configurations and what became of them: parallel coordinates, and a slice for each parameter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hpsearch.report.figures.style import (
    CALM,
    INK,
    PALE,
    WINNER,
    axis,
    brief,
    figure,
    linear_ticks,
    plotly,
    shortened,
    shown,
    value_range,
)
from hpsearch.report.frames.configurations import ParameterScale, Tier
from hpsearch.store.reading.course import CourseGoal

if TYPE_CHECKING:
    import plotly.graph_objects as go

_COLOURS = {Tier.REST: PALE, Tier.BETTER: CALM, Tier.BEST: WINNER}
"""In the order of drawing."""
_SYMBOLS = {Tier.REST: "circle-open", Tier.BETTER: "circle", Tier.BEST: "diamond"}
FEW_POINTS = 300
"""More are drawn smaller."""
PAGE, EDGES, LETTER, NARROWEST_AXIS = 880, 28, 6.8, 66
"""Pixels of a page's width, beside the axes, of a letter of an axis's name, and between two axes at
least."""
LONGEST_AXIS_NAME = 16
MOST_LEVEL = 3
"""So many categories have short names, which stand side by side; more may be slanted."""
JITTER = 0.035
"""Lines and points of a category are spread so far, as a share of an axis, to be told apart."""


def parallel_coordinates(
    ranked: pd.DataFrame,
    params: pd.DataFrame,
    scales: Sequence[ParameterScale],
    goal: CourseGoal,
) -> go.Figure:
    """A line for each trial, through its value of each parameter to its objective.

    A line is interrupted where its trial does not have the parameter.

    Args:
        ranked: Trials to draw (`configurations.ranked_configurations`).
        params: Parameters of trials, by their numbers.
        scales: The parameters to draw, in order.
        goal: The objective, the last axis.
    """
    made = figure(420, showlegend=True)
    own = params.loc[ranked.index]
    columns = [_share(scale.places(own[scale.name]), scale) for scale in scales]
    limits, _ = value_range(ranked["standing"], goal.maximize)
    low, high = limits or (ranked["standing"].min(), ranked["standing"].max())
    columns.append(
        (_between(ranked["standing"].clip(low, high), low, high), brief(low), brief(high))
    )
    heights = np.column_stack([share for share, _, _ in columns])
    _add_lines(made, heights, ranked)
    for place, (_, bottom, top) in enumerate(columns):
        made.add_shape(
            type="line",
            x0=place,
            x1=place,
            y0=0,
            y1=1,
            line={"color": INK, "width": 1},
            opacity=0.6,
        )
        for y, text, anchor in ((-0.01, bottom, "top"), (1.01, top, "bottom")):
            made.add_annotation(
                x=place, y=y, text=text, yanchor=anchor, showarrow=False, font={"size": 11}
            )
    names = [shown(scale.name, LONGEST_AXIS_NAME) for scale in scales]
    names.append(f"<b>{shown(goal.metric, LONGEST_AXIS_NAME)}</b>")
    called = [*(scale.name for scale in scales), goal.metric]
    _name_axes(made, names, is_long=_upright(called) is None)
    made.update_yaxes(visible=False, fixedrange=True, range=[-0.08, 1.09])
    return made


def parallel_width(names: Sequence[str]) -> int:
    """How many pixels wide parallel coordinates are at least, for the names of their axes."""
    return EDGES + round((len(names) - 0.2) * (_upright(names) or NARROWEST_AXIS))


def _upright(names: Sequence[str]) -> float | None:
    """How far apart axes are at least whose names stand side by side; None if the names are too
    long for a page."""
    longest = max(len(shortened(name, LONGEST_AXIS_NAME)) for name in names)
    apart = max(NARROWEST_AXIS, longest * LETTER)
    return apart if apart * len(names) <= PAGE else None


def _name_axes(made: go.Figure, names: Sequence[str], *, is_long: bool) -> None:
    """Put the names below the axes; slanted if they are too long to stand side by side.

    Labels of an axis would be left out where they come near an edge.
    """
    slant = {"textangle": -25, "xanchor": "right"} if is_long else {"xanchor": "center"}
    for place, name in enumerate(names):
        made.add_annotation(
            x=place, y=0, yshift=-24, text=name, yanchor="top", showarrow=False, **slant
        )
    last = len(names) - 1
    made.update_xaxes(
        axis(
            range=[-0.4, last + 0.4],
            showgrid=False,
            showline=False,
            showticklabels=False,
            automargin=False,
        )
    )
    made.update_layout(margin={"l": 96 if is_long else 12, "b": 76 if is_long else 40})


def _add_lines(made: go.Figure, heights: np.ndarray, ranked: pd.DataFrame) -> None:
    """Add the lines of each tier, the best last."""
    places = np.arange(heights.shape[1], dtype=float)
    for tier, colour in _COLOURS.items():
        chosen = (ranked["tier"] == tier.value).to_numpy()
        if not chosen.any():
            continue
        lines = np.hstack([heights[chosen], np.full((chosen.sum(), 1), np.nan)])
        x = np.tile(np.append(places, np.nan), len(lines))
        trials = np.repeat(ranked.index.to_numpy(int)[chosen], lines.shape[1])
        made.add_trace(
            plotly().Scatter(
                x=x,
                y=lines.ravel().round(4),
                customdata=trials,
                mode="lines",
                line={"color": colour, "width": 1 if tier is Tier.REST else 1.6},
                opacity=0.3 if tier is Tier.REST else 0.65,
                name=tier.value,
                hovertemplate="trial %{customdata}<extra></extra>",
            )
        )


def _share(places: pd.Series, scale: ParameterScale) -> tuple[np.ndarray, str, str]:
    """How high values lie on an axis from 0 to 1, and what stands at its ends."""
    if scale.categories is not None:
        last = max(1, len(scale.categories) - 1)
        spread = _spread(len(places)) * min(1.0, last / 4)
        share = (places.to_numpy(float) / last + spread).clip(0, 1)
        ends = scale.categories[0], scale.categories[-1]
        bottom, top = (shown(text, 10) for text in ends)
        return share, bottom, top if len(scale.categories) > 1 else ""
    known = places.dropna()
    if known.empty:
        return places.to_numpy(float), "", ""
    low, high = float(known.min()), float(known.max())
    ends_at = brief(low), brief(high)
    if scale.log:
        places = pd.Series(np.log10(places), index=places.index)
        low, high = np.log10(low), np.log10(high)
    return _between(places, low, high), *ends_at


def _between(values: pd.Series, low: float, high: float) -> np.ndarray:
    if high <= low:
        return np.where(values.isna(), np.nan, 0.5)
    return ((values - low) / (high - low)).to_numpy(float)


def _spread(amount: int) -> np.ndarray:
    """Small shifts, the same each time, that hardly repeat: multiples of the golden ratio."""
    return ((np.arange(amount) * 0.6180339887) % 1 - 0.5) * 2 * JITTER


def slice_of(
    ranked: pd.DataFrame, values: pd.Series, scale: ParameterScale, goal: CourseGoal
) -> go.Figure:
    """What trials are worth against one parameter.

    Args:
        ranked: Trials to draw.
        values: Their values of the parameter, by their numbers.
        scale: The parameter.
        goal: The objective.
    """
    made = figure(260, showlegend=False)
    for trace in _points(ranked, values, scale):
        made.add_trace(trace)
    limits, _ = value_range(ranked["standing"], goal.maximize)
    made.update_xaxes(_slice_axis(scale, scale.places(values)))
    made.update_yaxes(axis(shown(goal.metric, 20), range=limits))
    return made


def slices(
    ranked: pd.DataFrame, params: pd.DataFrame, scales: Sequence[ParameterScale], goal: CourseGoal
) -> go.Figure:
    """What trials are worth against each parameter, as one figure.

    Args:
        ranked: Trials to draw.
        params: Parameters of trials, by their numbers.
        scales: The parameters to draw.
        goal: The objective.
    """
    columns = max(1, min(3, len(scales)))
    rows = max(1, -(-len(scales) // columns))
    made = figure(60 + 260 * rows, showlegend=False)
    grid: Mapping[str, Any] = {"rows": rows, "columns": columns, "pattern": "independent"}
    made.update_layout(grid={**grid, "xgap": 0.2, "ygap": 0.45})
    limits, _ = value_range(ranked["standing"], goal.maximize)
    for place, scale in enumerate(scales):
        suffix = "" if place == 0 else str(place + 1)
        values = params.loc[ranked.index, scale.name]
        for trace in _points(ranked, values, scale):
            trace.update(xaxis=f"x{suffix}", yaxis=f"y{suffix}")
            made.add_trace(trace)
        title = shown(goal.metric) if place % columns == 0 else None
        made.update_layout({f"xaxis{suffix}": _slice_axis(scale, scale.places(values))})
        made.update_layout({f"yaxis{suffix}": axis(title, range=limits)})
    return made


def _slice_axis(scale: ParameterScale, places: pd.Series) -> dict[str, Any]:
    title = shown(scale.name)
    if scale.categories is None and scale.log:
        return axis(title, type="log", **_log_ticks(places))
    if scale.categories is None:
        return axis(title, **linear_ticks(places))
    is_level = len(scale.categories) <= MOST_LEVEL
    longest = 8 if is_level else 16
    texts = [shown(text, longest) for text in scale.categories]
    return axis(
        title,
        tickvals=list(range(len(texts))),
        ticktext=texts,
        tickangle=0 if is_level else None,
        range=[-0.6, max(0, len(texts) - 1) + 0.6],
    )


def _log_ticks(places: pd.Series) -> dict[str, Any]:
    """The ticks of a logarithmic axis: powers of ten, with 2 and 5 between them if there are few,
    at most about four."""
    known = places[places > 0]
    if known.empty:
        return {}
    low, high = 0.9 * float(known.min()), 1.1 * float(known.max())
    first, last = int(np.floor(np.log10(low))), int(np.ceil(np.log10(high)))
    tens = [10.0**power for power in range(first, last + 1)]
    ticks = [ten for ten in tens if low <= ten <= high]
    if len(ticks) < 3:
        finer = [digit * ten for ten in tens for digit in (1, 2, 5)]
        ticks = [tick for tick in finer if low <= tick <= high]
    if len(ticks) < 2:
        ticks = sorted({float(known.min()), float(known.max())})
    ticks = ticks[:: 1 + (len(ticks) - 1) // 4]
    return {"tickvals": ticks, "ticktext": [brief(tick) for tick in ticks], "tickangle": 0}


def _points(ranked: pd.DataFrame, values: pd.Series, scale: ParameterScale) -> list[Any]:
    places = scale.places(values.loc[ranked.index]).to_numpy(float)
    if scale.categories is not None:
        places = places + _spread(len(places)) * 6
    size = 6 if len(places) <= FEW_POINTS else 4
    traces = []
    for tier, colour in _COLOURS.items():
        chosen = (ranked["tier"] == tier.value).to_numpy() & np.isfinite(places)
        trace = plotly().Scatter(
            x=places[chosen],
            y=ranked["standing"].to_numpy(float)[chosen],
            customdata=ranked.index.to_numpy(int)[chosen],
            mode="markers",
            marker={"color": colour, "size": size, "symbol": _SYMBOLS[tier], "opacity": 0.75},
            name=tier.value,
            hovertemplate=_hover(scale),
        )
        traces.append(trace)
    return traces


def _hover(scale: ParameterScale) -> str:
    at = "" if scale.categories is not None else " at %{x:.4~g}"
    return "trial %{customdata}<br>%{y:.5~g}" + at + "<extra></extra>"
