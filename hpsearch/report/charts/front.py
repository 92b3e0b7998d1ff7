"""The Pareto front of a study with several objectives, among all of its trials."""

from __future__ import annotations

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.report.charts.chart import Chart
from hpsearch.report.charts.style import PALE, WINNER, axis, figure, plotly, shown
from hpsearch.report.data import ReportData
from hpsearch.store.reading.best import GoalColumns


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
