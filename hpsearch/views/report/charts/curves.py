"""Learning curves: the reports of trials."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.queries import TrialDetail
from hpsearch.views.report.charts import style
from hpsearch.views.report.charts.style import Chart, joined, left_out, some_of
from hpsearch.views.report.configurations import ranked_configurations
from hpsearch.views.report.data import ReportData

if TYPE_CHECKING:
    pass

MOST_CURVES, MOST_POINTS = 150, 60


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
_SIDE_BY_SIDE = (style.CALM, style.WINNER, style.GOOD, style.OTHER, style.BAD, style.PALE)
"""The colours of curves side by side, in their order."""


def curves(data: ReportData, goal: GoalColumns) -> Chart | None:
    """A curve for each trial, with the winner marked; None where no trial has reported a value."""
    history = data.history
    repeats = history.trials.index[history.trials["role"] == Role.CONFIRM]
    reports = history.reports[history.reports[goal.column].notna()]
    reports = reports[~reports["trial"].isin(repeats)]
    if reports.empty:
        return None
    ranking = _ranking(data, goal, reports)
    chosen = some_of(ranking, MOST_CURVES)
    kinds = {number: _KINDS[State(state)] for number, state in history.trials["state"].items()}
    if data.winner is not None:
        kinds[data.winner.trial.number] = CurveKind.WINNER
    reports = _thinned(reports[reports["trial"].isin(chosen)])
    kind_of = reports["trial"].map(kinds)
    made = style.figure(260, showlegend=True)
    for kind in _LINES:
        own = reports[kind_of == kind]
        if not own.empty:
            made.add_trace(_trace(own, goal.column, kind))
    limits = style.value_range(reports[goal.column], maximize=goal.maximize)
    made.update_xaxes(style.axis(style.shown(data.unit), **style.ticks(reports["resource"])))
    made.update_yaxes(style.axis(style.shown(goal.metric), range=limits))
    counts = reports.groupby(kind_of)["trial"].nunique()
    parts = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    alternative = f"Learning curves of {goal.metric} by {data.unit}: {parts}."
    remarks = [left_out(len(chosen), len(ranking), "curves"), style.outside(limits)]
    return Chart(made, "Learning curves", alternative, joined(remarks))


def _ranking(data: ReportData, goal: GoalColumns, reports: pd.DataFrame) -> list[int]:
    """The numbers of the trials with a curve, the winner first, then the best."""
    winner = [] if data.winner is None else [data.winner.trial.number]
    ranked = ranked_configurations(data.history, goal).index
    with_curves = set(reports["trial"])
    order = dict.fromkeys([*winner, *ranked, *sorted(with_curves)])
    return [number for number in order if number in with_curves]


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
    return style.plotly().Scatter(
        x=np.insert(reports["resource"].to_numpy(float), ends, np.nan),
        y=np.insert(reports[column].to_numpy(float), ends, np.nan),
        customdata=np.insert(trials, ends, trials[ends - 1]),
        mode="lines+markers" if has_markers else "lines",
        marker={"size": 7 if kind is CurveKind.WINNER else 4},
        line=line,
        opacity=opacity,
        name=kind.value,
        hovertemplate="trial %{customdata}<br>%{y:.5~g} at %{x}<extra></extra>",
    )


def side_by_side(
    trials: Sequence[TrialDetail], goals: Sequence[GoalColumns], unit: str
) -> list[Chart]:
    """A chart for each objective, with a curve for each of the trials in a colour of its own.

    An objective that no trial has reported twice has no chart. The resource is in `unit`.
    """
    charts = []
    for goal in goals:
        made = style.figure(320, showlegend=len(trials) > 1)
        drawn = {each.trial.number: _points(each, goal, len(goals) == 1) for each in trials}
        for colour, (number, own) in zip(_SIDE_BY_SIDE, drawn.items(), strict=False):
            trace = style.plotly().Scatter(
                x=list(own),
                y=list(own.values()),
                mode="lines+markers" if len(own) < 100 else "lines",
                marker={"size": 6},
                line={"color": colour, "width": 2},
                name=f"trial {number}",
                hovertemplate="%{y:.5~g} at %{x}<extra></extra>",
            )
            made.add_trace(trace)
        if max(map(len, drawn.values())) < 2:
            continue
        resources = [at for own in drawn.values() for at in own]
        made.update_xaxes(style.axis(style.shown(unit), **style.ticks(resources)))
        made.update_yaxes(style.axis(style.shown(goal.metric)))
        numbers = ", ".join(str(number) for number, own in drawn.items() if own)
        alternative = f"{goal.metric} by {unit} of trial {numbers}."
        charts.append(Chart(made, goal.metric, alternative))
    return charts


def _points(trial: TrialDetail, goal: GoalColumns, is_only: bool) -> dict[float, float]:
    """The values that a trial has reported of an objective, by the resource."""
    points = {}
    for report in trial.reports:
        value = report["value"] if is_only else (report["metrics"] or {}).get(goal.metric)
        if value is not None:
            points[float(report["resource"])] = float(value)
    return points
