"""The best value so far, against compute time; and with several objectives the Pareto front."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import duration, number
from hpsearch.search.ranking.again import Again
from hpsearch.store.reading.best import GoalColumns
from hpsearch.views.report.charts.style import (
    CALM,
    PALE,
    WINNER,
    Chart,
    axis,
    figure,
    plotly,
    shown,
    time_scale,
)
from hpsearch.views.report.compute_time import improvements
from hpsearch.views.report.data import ReportData

if TYPE_CHECKING:
    import plotly.graph_objects as go


def best_so_far(data: ReportData, goal: GoalColumns) -> Chart | None:
    """The best value that any trial had shown, as a staircase, and the winner's confirmed mean.

    None before there is a value, and where no attempt is recorded.
    """
    if data.attempts.empty:
        return None
    frame = improvements(data.history, goal, data.attempts, data.until)
    if frame.empty:
        return None
    spent_s = frame["gpu_seconds"]
    unit_s, unit = time_scale(float(spent_s.max()))
    winner = data.winner
    confirmed = None if winner is None else winner.confirmed
    made = figure(260, showlegend=confirmed is not None)
    hover = "%{y:.5~g} after %{x:.3~g} " + unit
    made.add_trace(
        plotly().Scatter(
            x=(spent_s / unit_s).to_numpy(float),
            y=frame["value"].to_numpy(float),
            customdata=frame["trial"].to_numpy(int),
            mode="lines+markers",
            line={"shape": "hv", "color": CALM, "width": 2},
            marker={"size": 6, "color": CALM},
            hovertemplate=f"{hover}<br>trial %{{customdata}}<extra></extra>",
            name="best shown so far",
            showlegend=False,
        )
    )
    if confirmed is not None:
        _mark_confirmed(made, confirmed)
    made.update_xaxes(axis(f"compute time ({unit})", rangemode="tozero"))
    made.update_yaxes(axis(shown(goal.metric)))
    first, last = frame.iloc[0], frame.iloc[-1]
    alternative = (
        f"The best {goal.metric} shown went from {number(first['value'])} "
        f"to {number(last['value'])} in {duration(last['gpu_seconds'])} of compute time."
    )
    title = f"Best {goal.metric} so far" if len(data.history.goals) > 1 else "Best value so far"
    return Chart(made, title, alternative)


def _mark_confirmed(made: go.Figure, confirmed: Again) -> None:
    """Mark the mean of the winner's repeats, and the interval of one more training."""
    low, high = confirmed.low, confirmed.high
    if low is not None and high is not None:
        made.add_hrect(y0=low, y1=high, fillcolor=WINNER, opacity=0.14, line_width=0, layer="below")
    line = {"color": WINNER, "width": 2, "dash": "dot"}
    made.add_hline(y=confirmed.mean, line=line)
    name = "mean of repeats" if low is None else "mean of repeats, one more training (90%)"
    made.add_trace(plotly().Scatter(x=[None], y=[None], mode="lines", line=line, name=name))


def front(data: ReportData) -> Chart | None:
    """All trials by the first two objectives, the front marked; None with one objective, and
    without trials that have both values."""
    if len(data.history.goals) < 2:
        return None
    across, up = data.history.goals[:2]
    trials = data.history.trials
    is_drawn = trials[across.column].notna() & trials[up.column].notna()
    is_drawn &= (trials["role"] != Role.CONFIRM) & (trials["state"] != State.FAILED)
    trials = trials[is_drawn]
    if trials.empty:
        return None
    on_front = trials.index.isin([each.trial.number for each in data.ranked])
    made = figure(400, showlegend=True)
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
    made.update_xaxes(axis(_title(across)))
    made.update_yaxes(axis(_title(up)))
    alternative = f"{on_front.sum()} of {len(trials)} trials are beaten by none in all objectives."
    more = "The picture shows the first two objectives." if len(data.history.goals) > 2 else None
    return Chart(made, "The front", alternative, more)


def _title(goal: GoalColumns) -> str:
    better = "more" if goal.maximize else "less"
    return f"{shown(goal.metric)} ({better} is better)"
