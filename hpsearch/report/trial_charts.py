"""The pictures of single trials: the curves of one or more of them."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from hpsearch.report.charts import Chart
from hpsearch.report.figures import courses
from hpsearch.store.reading.course import CourseGoal
from hpsearch.store.reading.queries import TrialDetail


def side_by_side(
    trials: Sequence[TrialDetail], goals: Sequence[CourseGoal], unit: str
) -> list[Chart]:
    """A chart for each objective with a curve for each trial that reported it; none where no trial
    has reported it twice.

    Args:
        trials: One or more.
        goals: The objectives of their study.
        unit: The unit of the resource.
    """
    charts = []
    for goal in goals:
        frame = _reports(trials, goal, is_only=len(goals) == 1)
        if not frame.duplicated("trial").any():
            continue
        numbers = ", ".join(str(each) for each in frame["trial"].unique())
        said = f"{goal.metric} by {unit} of trial {numbers}."
        charts.append(Chart(courses.side_by_side(frame, goal, unit), goal.metric, said))
    return charts


def _reports(trials: Sequence[TrialDetail], goal: CourseGoal, *, is_only: bool) -> pd.DataFrame:
    rows = []
    for each in trials:
        for report in each.reports:
            value = report["value"] if is_only else (report["metrics"] or {}).get(goal.metric)
            if value is not None:
                rows.append((each.trial.number, report["resource"], value))
    frame = pd.DataFrame(rows, columns=["trial", "resource", goal.column])
    return frame.astype({"trial": int, "resource": float, goal.column: float})
