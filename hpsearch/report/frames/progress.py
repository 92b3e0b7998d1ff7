"""How a study came to its best value: each report that was better than all before it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.report.frames.clocks import DrivenSpan, gpu_clock, wall_clock
from hpsearch.store.reading.course import CourseGoal, StudyCourse


def improvements(
    course: StudyCourse,
    goal: CourseGoal,
    attempts: pd.DataFrame,
    spans: Sequence[DrivenSpan],
    until: float,
) -> pd.DataFrame:
    """The best value so far, one row for each time that it changed, and a last one for the end.

    Columns `trial`, `value`, `gpu_seconds`, `wall_seconds`. Trials that break a limit and repeats
    do not count. Without attempts the clocks are NaN.

    Args:
        course: The study's.
        goal: One of its objectives.
        attempts: Its attempts, with an end each.
        spans: When it was driven.
        until: Until when it is known, in seconds since the epoch.
    """
    shown = _shown(course, goal)
    value = shown[goal.column].to_numpy(float)
    sign = -1.0 if goal.maximize else 1.0
    best = np.minimum.accumulate(sign * value) if len(value) else value
    is_better = np.r_[True, best[1:] < best[:-1]][: len(value)]
    frame = pd.DataFrame({"trial": shown["trial"], "value": value, "moment": shown["created"]})
    frame = pd.DataFrame(frame[is_better].reset_index(drop=True))
    if frame.empty:
        columns = ["trial", "value", "gpu_seconds", "wall_seconds"]
        return pd.DataFrame([], columns=columns, dtype=float)
    last = frame.iloc[[-1]].assign(moment=max(until, float(frame["moment"].iloc[-1])))
    frame = pd.DataFrame(pd.concat([frame, last], ignore_index=True))
    moments = frame.pop("moment").to_numpy(float)
    nothing = np.full(len(frame), np.nan)
    frame["gpu_seconds"] = gpu_clock(moments, attempts) if len(attempts) else nothing
    frame["wall_seconds"] = wall_clock(moments, spans) if spans else nothing
    return frame


def _shown(course: StudyCourse, goal: CourseGoal) -> pd.DataFrame:
    """What trials have shown, in order of time: their reports, or their values where there are
    none."""
    trials = course.trials
    counts = (trials["role"] != Role.CONFIRM) & (trials["violation"] == 0)
    counts &= trials["state"] != State.FAILED
    counting = trials.index[counts]
    shown = course.reports
    if shown.empty:
        ended = trials[trials["ended"].notna()].sort_values("ended")
        shown = pd.DataFrame(
            {
                "trial": ended.index,
                "created": ended["ended"].to_numpy(float),
                goal.column: ended[goal.column].to_numpy(float),
            }
        )
    return shown[shown["trial"].isin(counting) & shown[goal.column].notna()]


def known_until(course: StudyCourse, now: float, *, driven: bool) -> float:
    """Until when a study is known: now if a driver works on it, else the last thing recorded."""
    if driven:
        return now
    moments = [
        course.reports["created"].max(),
        course.attempts["started"].max(),
        course.attempts["ended"].max(),
        course.trials["ended"].max(),
    ]
    known = [float(moment) for moment in moments if pd.notna(moment)]
    return max(known, default=0.0)
