"""The compute time of a study: how much was used at a moment, and for what.

The ledger charges an attempt when it ends. Here its charge is spread evenly over its time, so that
every moment between has its share.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome
from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.history_frames import HistoryFrames, Shown
from hpsearch.store.reading.idle import idle_seconds

_PURPOSES = {
    State.COMPLETE: "finished",
    State.PAUSED: "paused or pruned",
    State.PRUNED: "paused or pruned",
    State.FAILED: "failed or lost",
    State.RUNNING: "not ended",
    State.QUEUED: "not ended",
}
LOST, REPEATS = _PURPOSES[State.FAILED], "confirmation"
START_UP, IDLE = "start-up", "idle slots"


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


def gpu_clock(moments: ArrayLike, attempts: pd.DataFrame) -> NDArray[np.float64]:
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
    return np.asarray(np.interp(at, knots, spent))


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


def spending(attempts: pd.DataFrame, begins: Sequence[float]) -> dict[str, tuple[float, int]]:
    """The compute time of each purpose and the number of its attempts, without those that took
    nothing.

    An attempt's start-up counts as such and the rest of it as its trial's, by the trial's state.
    The time of a lost attempt counts as lost, whatever became of its trial. The attempts have an
    end each; `begins` are the times at which drivers began.
    """
    charged = attempts["gpu_seconds"]
    lasted_s = np.maximum(attempts["ended"] - attempts["started"], 1e-9)
    start_up_s = attempts["start_up_seconds"].fillna(0.0)
    start_up = charged * np.clip(start_up_s / lasted_s, 0.0, 1.0)
    purpose = attempts["state"].map({state.value: name for state, name in _PURPOSES.items()})
    is_repeat = (attempts["role"] == Role.CONFIRM) & (attempts["state"] == State.COMPLETE)
    purpose = purpose.mask(is_repeat, REPEATS)
    purpose = purpose.mask(attempts["outcome"] == Outcome.LOST.value, LOST)
    trained = (charged - start_up).groupby(purpose).sum()
    counts = purpose.value_counts()
    price = charged.sum() / lasted_s.sum() if len(attempts) else 0.0
    found = {}
    for name in dict.fromkeys([*_PURPOSES.values(), REPEATS]):
        found[name] = (float(trained.get(name, 0.0)), int(counts.get(name, 0)))
    found[START_UP] = (float(start_up.sum()), int((start_up > 0).sum()))
    found[IDLE] = (price * idle(attempts, begins), 0)
    return {name: (seconds, number) for name, (seconds, number) in found.items() if seconds > 0}


def idle(attempts: pd.DataFrame, begins: Sequence[float]) -> float:
    """Seconds that slots waited while the study was driven: between their attempts, and from their
    last one to the end of the last attempt of that driver, or until they were given back."""
    driver = np.searchsorted(np.sort(begins), attempts["started"], side="right")
    waited_s = 0.0
    for _, own in attempts.groupby(driver):
        rows = own[["worker", "started", "ended"]].itertuples(index=False, name=None)
        waited_s += sum(idle_seconds(rows, float(own["ended"].max())).values())
    return waited_s
