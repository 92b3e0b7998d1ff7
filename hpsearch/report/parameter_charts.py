"""The pictures of the parameters of a story: importances, parallel coordinates and slices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from hpsearch.report.charts import MOST_POINTS, Chart, joined, outside_remark
from hpsearch.report.figures import configuration, influence
from hpsearch.report.frames.configurations import (
    ParameterScale,
    parameter_scales,
    ranked_configurations,
)
from hpsearch.report.frames.importances import Importances, parameter_importances
from hpsearch.report.frames.thinning import Thinned, evenly
from hpsearch.report.story import StudyStory
from hpsearch.store.reading.course import CourseGoal, each_row

MOST_LINES = 120
MOST_AXES = 10
MOST_SLICES = 12


@dataclass(frozen=True, slots=True)
class Configurations:
    """What the pictures of parameters are drawn from."""

    ranked: pd.DataFrame
    scales: Sequence[ParameterScale]
    """All parameters, the most important first."""
    importances: Importances


def configurations(story: StudyStory, goal: CourseGoal) -> Configurations:
    """The configurations of a story, their parameters in the order of importance."""
    course = story.course
    ranked = ranked_configurations(course, goal)
    scales = parameter_scales(course.params.loc[ranked.index], course.space)
    params = course.params.loc[ranked.index, list(scales)]
    found = parameter_importances(ranked["standing"], params)
    order = list(found.frame["parameter"])
    order += [name for name in scales if name not in order]
    return Configurations(ranked, [scales[name] for name in order], found)


def parallel_coordinates(story: StudyStory, goal: CourseGoal, of: Configurations) -> Chart | None:
    """The configurations as lines; None if fewer than two can be compared."""
    if len(of.ranked) < 2 or not of.scales:
        return None
    thinned = _thin_ranked(of.ranked, MOST_LINES)
    scales = of.scales[:MOST_AXES]
    remarks = [thinned.said("trials"), _left_out(len(scales), len(of.scales))]
    remarks.append(outside_remark(thinned.frame["standing"], goal))
    made = configuration.parallel_coordinates(thinned.frame, story.course.params, scales, goal)
    names = ", ".join(scale.name for scale in scales)
    said = f"Parallel coordinates of {len(thinned.frame)} trials: {names}, and {goal.metric}."
    called = [*(scale.name for scale in scales), goal.metric]
    narrowest = configuration.parallel_width(called)
    return Chart(made, "Configurations", said, joined(remarks), narrowest)


def _left_out(drawn: int, of: int) -> str | None:
    if drawn == of:
        return None
    return f"{drawn} of {of} parameters are drawn, the most important ones."


def _thin_ranked(ranked: pd.DataFrame, most: int) -> Thinned:
    numbers = list(ranked.index)
    chosen = evenly(numbers, most, numbers[: most // 5])
    return Thinned(ranked.loc[chosen], len(chosen), len(numbers))


def slice_charts(story: StudyStory, goal: CourseGoal, of: Configurations) -> list[Chart]:
    """A chart for each of the most important parameters."""
    if len(of.ranked) < 2:
        return []
    thinned = _thin_ranked(of.ranked, MOST_POINTS)
    charts = []
    for scale in of.scales[:MOST_SLICES]:
        values = story.course.params.loc[thinned.frame.index, scale.name]
        made = configuration.slice_of(thinned.frame, values, scale, goal)
        said = f"{goal.metric} of {int(values.notna().sum())} trials against {scale.name}."
        charts.append(Chart(made, None, said))
    return charts


def slices_remark(of: Configurations, goal: CourseGoal) -> str | None:
    """What the slices leave out."""
    thinned = _thin_ranked(of.ranked, MOST_POINTS)
    drawn = min(len(of.scales), MOST_SLICES)
    remarks = [thinned.said("trials"), _left_out(drawn, len(of.scales))]
    return joined([*remarks, outside_remark(thinned.frame["standing"], goal)])


def slices(story: StudyStory, goal: CourseGoal, of: Configurations) -> Chart | None:
    """All slices in one figure; None if fewer than two trials can be compared."""
    if len(of.ranked) < 2 or not of.scales:
        return None
    thinned = _thin_ranked(of.ranked, MOST_POINTS)
    scales = of.scales[:MOST_SLICES]
    made = configuration.slices(thinned.frame, story.course.params, scales, goal)
    said = f"{goal.metric} of {thinned.shown} trials against {len(scales)} parameters."
    return Chart(made, None, said, slices_remark(of, goal))


def importances(of: Configurations) -> Chart | None:
    """The importances; None if nothing can be said."""
    frame = of.importances.frame.head(MOST_AXES)
    if frame.empty:
        return None
    parts = ", ".join(f"{row.parameter} {row.importance:.0%}" for row in each_row(frame.head(5)))
    remark = _left_out(len(frame), len(of.importances.frame))
    said = f"Shares of the differences explained: {parts}."
    return Chart(influence.importances(frame), "What mattered", said, remark)
