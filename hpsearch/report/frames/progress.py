"""The progress of a study: each value that was better than all before it."""

from __future__ import annotations

import pandas as pd

from hpsearch.report.frames.clocks import gpu_clock
from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.history_frames import HistoryFrames, Shown


def improvements(
    history: HistoryFrames, goal: GoalColumns, attempts: pd.DataFrame, until: float
) -> pd.DataFrame:
    """The best value so far, one row for each time that it changed, and a last one for the end.

    Columns `trial`, `value`, `moment` and `gpu_seconds`. The attempts have an end each, and the
    study is known `until` then, in seconds since the epoch.
    """
    bests = list(history.bests[goal.column])
    if bests:
        bests.append(bests[-1]._replace(moment=max(until, bests[-1].moment)))
    frame = pd.DataFrame(bests, columns=list(Shown._fields))
    return frame.assign(gpu_seconds=gpu_clock(frame["moment"], attempts))
