"""The compute time that a study had used at a moment.

The ledger charges an attempt when it ends. Here its charge is spread evenly over its time, so that
every moment between has its share.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def closed(attempts: pd.DataFrame, now: float) -> pd.DataFrame:
    """The attempts with an end and a charge each.

    An attempt that is live has lasted until `now`, and is charged as much a second as the others
    were.
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


def gpu_clock(moments: ArrayLike, attempts: pd.DataFrame) -> Floats:
    """GPU-seconds that a study had used at each moment; its attempts have an end each."""
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
