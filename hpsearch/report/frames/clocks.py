"""The compute time and the wall clock that a study had used at a moment.

The ledger charges an attempt when it ends. Here its charge is spread evenly over its time, so that
every moment between has its share. The wall clock stands still while no driver works on the study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DrivenSpan:
    """A stretch of time in which a driver worked on a study, in seconds since the epoch."""

    begin: float
    end: float


def closed(attempts: pd.DataFrame, now: float) -> pd.DataFrame:
    """The attempts with an end and a charge each.

    An attempt that is live has lasted until `now`, and is charged as much a second as the others
    were.

    Args:
        attempts: Those of a study (`HistoryFrames.attempts`).
        now: Until when the study is known.
    """
    done = attempts.copy()
    is_live = done["ended"].isna()
    ran_s = (done["ended"] - done["started"])[~is_live]
    charged = done["gpu_seconds"][~is_live]
    rate = charged.sum() / ran_s.sum() if ran_s.sum() > 0 else 1.0
    done.loc[is_live, "ended"] = np.maximum(now, done.loc[is_live, "started"])
    live_s = (done["ended"] - done["started"])[is_live]
    done.loc[is_live, "gpu_seconds"] = live_s * rate
    return done


def driven_spans(attempts: pd.DataFrame, begins: Sequence[float]) -> list[DrivenSpan]:
    """The stretches in which a study was driven: from the first attempt of each driver to the end
    of its last one.

    Args:
        attempts: Those of the study, with an end each.
        begins: When its drivers began.
    """
    if attempts.empty:
        return []
    started = attempts["started"].to_numpy(float)
    session = np.searchsorted(np.sort(np.asarray(begins, float)), started, side="right")
    spans: list[DrivenSpan] = []
    for each in np.unique(session):
        own = attempts[session == each]
        begin, end = float(own["started"].min()), float(own["ended"].max())
        if spans and begin < spans[-1].end:
            begin = spans[-1].end
        if end > begin or not spans:
            spans.append(DrivenSpan(begin, max(begin, end)))
    return spans


def wall_clock(moments: ArrayLike, spans: Sequence[DrivenSpan]) -> Floats:
    """Seconds that the study had been driven at each moment."""
    at = np.asarray(moments, float)
    total: Floats = np.zeros_like(at)
    for span in spans:
        total = total + np.clip(at, span.begin, span.end) - span.begin
    return total


def gpu_clock(moments: ArrayLike, attempts: pd.DataFrame) -> Floats:
    """GPU-seconds that the study had used at each moment.

    Args:
        moments: In seconds since the epoch.
        attempts: Those of the study, with an end each.
    """
    at = np.asarray(moments, float)
    if attempts.empty:
        return np.zeros_like(at)
    started = attempts["started"].to_numpy(float)
    ended = attempts["ended"].to_numpy(float)
    lasted = np.maximum(ended - started, 1e-9)
    rate = attempts["gpu_seconds"].to_numpy(float) / lasted
    moments_of_change = np.concatenate([started, started + lasted])
    changes = np.concatenate([rate, -rate])
    order = np.argsort(moments_of_change, kind="stable")
    knots, slopes = moments_of_change[order], np.cumsum(changes[order])
    spent = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(knots))])
    found: Floats = np.interp(at, knots, spent)
    return found
