"""The best value so far against compute time, the Pareto front, and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hpsearch.domain.facts import OF_SEARCH
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import duration, number
from hpsearch.search.ranking.again import Again
from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.queries import TrialDetail
from hpsearch.views.report.charts import style
from hpsearch.views.report.charts.style import Chart, axis, figure, plotly, shown
from hpsearch.views.report.data import ReportData, improvements, ranked_configurations

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_CURVES, MOST_POINTS = 150, 60


def best_so_far(data: ReportData, goal: GoalColumns) -> Chart | None:
    """The best value that any trial had shown, as a staircase, and the value that the page opens
    with, if that is another one. None before there is a value or an attempt."""
    if data.attempts.empty:
        return None
    frame = improvements(data.history, goal, data.attempts, data.until)
    if frame.empty:
        return None
    spent_s = frame["gpu_seconds"]
    unit_s, unit = style.time_scale(float(spent_s.max()))
    winner = data.result.best
    again = None if winner is None else winner.confirmed or winner.again
    made = figure(260, showlegend=again is not None)
    staircase = plotly().Scatter(
        x=(spent_s / unit_s).to_numpy(float),
        y=frame["value"].to_numpy(float),
        customdata=frame["trial"].to_numpy(int),
        mode="lines+markers",
        line={"shape": "hv", "color": style.CALM, "width": 2},
        marker={"size": 6, "color": style.CALM},
        hovertemplate=f"%{{y:.5~g}} after %{{x:.3~g}} {unit}<br>{style.OF_TRIAL}",
        name="best shown so far",
    )
    made.add_trace(staircase)
    if again is not None:
        _mark_again(made, again)
    made.update_xaxes(axis(f"compute time ({unit})", rangemode="tozero"))
    made.update_yaxes(axis(shown(goal.metric)))
    first, last = number(frame["value"].iloc[0]), number(frame["value"].iloc[-1])
    took = f"{duration(spent_s.iloc[-1])} of compute time"
    alternative = f"The best {goal.metric} shown went from {first} to {last} in {took}."
    if again is not None:
        alternative += f" Trained again, the winner is expected to end at {number(again.mean)}."
    title = f"Best {goal.metric} so far" if len(data.history.goals) > 1 else "Best value so far"
    return Chart(made, title, alternative)


def _mark_again(made: go.Figure, again: Again) -> None:
    low, high, colour = again.low, again.high, style.WINNER
    name = "mean of repeats" if again.runs else "the winner if trained again"
    if low is not None and high is not None:
        made.add_hrect(y0=low, y1=high, fillcolor=colour, opacity=0.14, line_width=0, layer="below")
        name += ", one more training (90%)"
    line = {"color": colour, "width": 2, "dash": "dot"}
    made.add_hline(y=again.mean, line=line)
    made.add_trace(plotly().Scatter(x=[None], y=[None], mode="lines", line=line, name=name))


def front(data: ReportData) -> Chart | None:
    """All trials by the first two objectives; None with one, and where no trial has both."""
    if len(data.history.goals) < 2:
        return None
    across, up = data.history.goals[:2]
    trials = data.history.trials
    is_drawn = trials[across.column].notna() & trials[up.column].notna()
    is_drawn &= trials["role"].isin(OF_SEARCH) & (trials["state"] != State.FAILED)
    trials = trials[is_drawn]
    if trials.empty:
        return None
    on_front = trials.index.isin([each.trial.number for each in data.ranked])
    made = figure(400, showlegend=True)
    for name, chosen, colour, symbol in (
        ("other trials", ~on_front, style.PALE, "circle-open"),
        ("front", on_front, style.WINNER, "diamond"),
    ):
        own = trials[chosen]
        points = plotly().Scatter(
            x=own[across.column].to_numpy(float),
            y=own[up.column].to_numpy(float),
            customdata=own.index.to_numpy(int),
            mode="markers",
            marker={"color": colour, "size": 8, "symbol": symbol},
            name=name,
            hovertemplate="trial %{customdata}<br>%{x:.5~g}, %{y:.5~g}<extra></extra>",
        )
        made.add_trace(points)
    for update, goal in ((made.update_xaxes, across), (made.update_yaxes, up)):
        better = "more" if goal.maximize else "less"
        update(axis(f"{shown(goal.metric)} ({better} is better)"))
    alternative = f"{on_front.sum()} of {len(trials)} trials are beaten by none in all objectives."
    more = "The picture shows the first two objectives." if len(data.history.goals) > 2 else None
    return Chart(made, "The front", alternative, more)


class CurveKind(StrEnum):
    """The kind of a curve, by the state of its trial."""

    PAUSED = "paused or pruned"
    FAILED = "failed"
    RUNNING = "not ended"
    COMPLETE = "complete"
    WINNER = "winner"


_KINDS = {
    State.COMPLETE: CurveKind.COMPLETE,
    State.PAUSED: CurveKind.PAUSED,
    State.PRUNED: CurveKind.PAUSED,
    State.FAILED: CurveKind.FAILED,
    State.RUNNING: CurveKind.RUNNING,
    State.QUEUED: CurveKind.RUNNING,
}
_LINES = {
    CurveKind.PAUSED: ({"color": style.PALE, "width": 1}, 0.6),
    CurveKind.FAILED: ({"color": style.BAD, "width": 1.2, "dash": "dot"}, 0.8),
    CurveKind.RUNNING: ({"color": style.GOOD, "width": 1.2}, 0.8),
    CurveKind.COMPLETE: ({"color": style.CALM, "width": 1.4}, 0.75),
    CurveKind.WINNER: ({"color": style.WINNER, "width": 3}, 1.0),
}
"""The line of each kind and its opacity, in the order of drawing."""


def curves(data: ReportData, goal: GoalColumns) -> Chart | None:
    """A curve for each trial, with the winner marked; None where no trial has reported a value."""
    history, winner = data.history, data.result.best
    searched = history.trials.index[history.trials["role"].isin(OF_SEARCH)]
    reports = history.reports[history.reports[goal.column].notna()]
    reports = reports[reports["trial"].isin(searched)]
    if reports.empty:
        return None
    kinds = {trial: _KINDS[State(state)] for trial, state in history.trials["state"].items()}
    ranking = list(ranked_configurations(history, goal).index)
    if winner is not None:
        kinds[winner.trial.number] = CurveKind.WINNER
        ranking.insert(0, winner.trial.number)
    with_curves = sorted(set(reports["trial"]))
    order = dict.fromkeys([*ranking, *with_curves])
    ranking = [trial for trial in order if trial in with_curves]
    chosen = style.some_of(ranking, MOST_CURVES)
    reports = _thinned(reports[reports["trial"].isin(chosen)])
    kind_of = reports["trial"].map(kinds)
    made = figure(260, showlegend=True)
    for kind in _LINES:
        own = reports[kind_of == kind]
        if not own.empty:
            made.add_trace(_trace(own, goal.column, kind))
    limits = style.value_range(reports[goal.column], maximize=goal.maximize)
    made.update_xaxes(axis(shown(data.unit), **style.ticks(reports["resource"])))
    made.update_yaxes(axis(shown(goal.metric), range=limits))
    counts = reports.groupby(kind_of)["trial"].nunique()
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    alternative = f"Learning curves of {goal.metric} by {data.unit}: {parts}."
    remarks = [style.left_out(len(chosen), len(ranking), "curves"), style.outside(limits)]
    return Chart(made, "Learning curves", alternative, style.joined(remarks))


def _thinned(reports: pd.DataFrame) -> pd.DataFrame:
    """Curves of at most about `MOST_POINTS` points, the first and the last one of each kept."""
    reports = reports.sort_values(["trial", "resource"], kind="stable")
    place = reports.groupby("trial").cumcount()
    length = reports.groupby("trial")["trial"].transform("size")
    stride = np.ceil(length / MOST_POINTS).astype(int)
    is_kept = (place % stride == 0) | (place == length - 1)
    return pd.DataFrame(reports[is_kept])


def _trace(reports: pd.DataFrame, column: str, kind: CurveKind) -> object:
    """The curves of one kind, as one line that is interrupted between them."""
    line, opacity = _LINES[kind]
    trials = reports["trial"].to_numpy(int)
    ends = np.flatnonzero(np.diff(trials)) + 1
    has_single_points = not reports.duplicated("trial", keep=False).all()
    has_markers = kind is CurveKind.WINNER or has_single_points
    return plotly().Scatter(
        x=np.insert(reports["resource"].to_numpy(float), ends, np.nan),
        y=np.insert(reports[column].to_numpy(float), ends, np.nan),
        customdata=np.insert(trials, ends, trials[ends - 1]),
        mode="lines+markers" if has_markers else "lines",
        marker={"size": 7 if kind is CurveKind.WINNER else 4},
        line=line,
        opacity=opacity,
        name=kind.value,
        hovertemplate=style.TRIAL_AND_POINT,
    )


def side_by_side(
    trials: Sequence[TrialDetail], goals: Sequence[GoalColumns], unit: str
) -> list[Chart]:
    """A chart for each objective, with a curve for each of the trials; an objective that no trial
    has reported twice has none."""
    charts = []
    for goal in goals:
        made = figure(320, showlegend=len(trials) > 1)
        drawn = {each.trial.number: _points(each, goal, len(goals) == 1) for each in trials}
        for colour, (trial, own) in zip(style.SIDE_BY_SIDE, drawn.items(), strict=False):
            trace = plotly().Scatter(
                x=list(own),
                y=list(own.values()),
                mode="lines+markers" if len(own) < 100 else "lines",
                marker={"size": 6},
                line={"color": colour, "width": 2},
                name=f"trial {trial}",
                hovertemplate="%{y:.5~g} at %{x}<extra></extra>",
            )
            made.add_trace(trace)
        if max(map(len, drawn.values())) < 2:
            continue
        resources = [at for own in drawn.values() for at in own]
        made.update_xaxes(axis(shown(unit), **style.ticks(resources)))
        made.update_yaxes(axis(shown(goal.metric)))
        numbers = ", ".join(str(trial) for trial, own in drawn.items() if own)
        charts.append(Chart(made, goal.metric, f"{goal.metric} by {unit} of trial {numbers}."))
    return charts


def _points(trial: TrialDetail, goal: GoalColumns, is_only: bool) -> dict[float, float]:
    """The values that a trial has reported of an objective, by the resource."""
    points = {}
    for report in trial.reports:
        value = report["value"] if is_only else (report["metrics"] or {}).get(goal.metric)
        if value is not None:
            points[float(report["resource"])] = float(value)
    return points
