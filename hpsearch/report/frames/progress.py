"""The progress of a study: each report that was better than all before it."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.report.frames.clocks import gpu_clock
from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.history_frames import HistoryFrames


def improvements(
    history: HistoryFrames, goal: GoalColumns, attempts: pd.DataFrame, until: float
) -> pd.DataFrame:
    """The best value so far, one row for each time that it changed, and a last one for the end.

    Columns `trial`, `value` and `gpu_seconds`. Trials that break a limit and repeats do not count.
    The attempts have an end each, and the study is known `until` then, in seconds since the epoch.
    """
    shown = _shown(history, goal)
    frame = pd.DataFrame(
        {"trial": shown["trial"], "value": shown[goal.column], "moment": shown["created"]}
    )
    if frame.empty:
        return frame.assign(gpu_seconds=[])
    cost = -frame["value"] if goal.maximize else frame["value"]
    is_better = cost < cost.cummin().shift(fill_value=np.inf)
    frame = frame[is_better]
    last = frame.iloc[[-1]].assign(moment=max(until, float(frame["moment"].iloc[-1])))
    frame = pd.concat([frame, last], ignore_index=True)
    return frame.assign(gpu_seconds=gpu_clock(frame["moment"], attempts))


def _shown(history: HistoryFrames, goal: GoalColumns) -> pd.DataFrame:
    """The reports of trials in order of time, or their values where there are no reports."""
    trials = history.trials
    counts = (trials["role"] != Role.CONFIRM) & (trials["violation"] == 0)
    counts &= trials["state"] != State.FAILED
    shown = history.reports
    if shown.empty:
        ended = trials[trials["ended"].notna()].sort_values("ended")
        shown = ended.assign(trial=ended.index, created=ended["ended"])
    return shown[shown["trial"].isin(trials.index[counts]) & shown[goal.column].notna()]


def known_until(history: HistoryFrames, now: float, *, driven: bool) -> float:
    """The time until which a study is known: now if it is driven, else its last record."""
    if driven:
        return now
    moments = [
        history.reports["created"].max(),
        history.attempts["started"].max(),
        history.attempts["ended"].max(),
        history.trials["ended"].max(),
    ]
    known = [float(moment) for moment in moments if pd.notna(moment)]
    return max(known, default=0.0)
