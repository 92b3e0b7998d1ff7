"""The use of the compute time: trials, starting up, and waiting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import pandas as pd

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome
from hpsearch.report.frames.clocks import DrivenSpan
from hpsearch.store.reading.idle import idle_seconds


class SpentOn(StrEnum):
    """A purpose of the time of the slots, as the page names it."""

    FINISHED = "finished"
    """Search trials that were trained in full."""
    PAUSED = "paused or pruned"
    FAILED = "failed or lost"
    CONFIRMED = "confirmation"
    RUNNING = "not ended"
    """Trials that run or wait for a slot."""
    OVERHEAD = "start-up"
    """Libraries, data and models, before training."""
    IDLE = "idle slots"
    """Not charged: slots that waited."""


_OF_STATE = {
    State.COMPLETE: SpentOn.FINISHED,
    State.PAUSED: SpentOn.PAUSED,
    State.PRUNED: SpentOn.PAUSED,
    State.FAILED: SpentOn.FAILED,
    State.RUNNING: SpentOn.RUNNING,
    State.QUEUED: SpentOn.RUNNING,
}


def spending(attempts: pd.DataFrame, spans: Sequence[DrivenSpan]) -> pd.DataFrame:
    """The compute time of each purpose: columns `part`, `gpu_seconds` and `attempts`, without those
    that took nothing.

    An attempt's start-up counts as overhead and the rest of it as its trial's, by the trial's
    state. The time of a lost attempt counts as lost, whatever became of its trial. The attempts
    have an end each, and `spans` are the stretches in which the study was driven.
    """
    charged = attempts["gpu_seconds"]
    lasted_s = np.maximum(attempts["ended"] - attempts["started"], 1e-9)
    start_up_s = attempts["start_up_seconds"].fillna(0.0)
    overhead = charged * np.clip(start_up_s / lasted_s, 0.0, 1.0)
    purposes = _purposes(attempts)
    spent = dict((charged - overhead).groupby(purposes).sum())
    counts = dict(purposes.value_counts())
    spent[SpentOn.OVERHEAD], counts[SpentOn.OVERHEAD] = overhead.sum(), (overhead > 0).sum()
    rate = charged.sum() / lasted_s.sum() if len(attempts) else 0.0
    spent[SpentOn.IDLE] = rate * sum(idle(attempts, spans).values())
    rows = [
        (each.value, float(spent[each]), int(counts.get(each, 0)))
        for each in SpentOn
        if spent.get(each, 0.0) > 0
    ]
    return pd.DataFrame(rows, columns=["part", "gpu_seconds", "attempts"])


def _purposes(attempts: pd.DataFrame) -> pd.Series:
    purpose = attempts["state"].map({state.value: part.value for state, part in _OF_STATE.items()})
    is_confirmed = (attempts["role"] == Role.CONFIRM) & (purpose == SpentOn.FINISHED)
    purpose = purpose.mask(is_confirmed, SpentOn.CONFIRMED.value)
    return purpose.mask(attempts["outcome"] == Outcome.LOST.value, SpentOn.FAILED.value)


def idle(attempts: pd.DataFrame, spans: Sequence[DrivenSpan]) -> dict[str, float]:
    """Seconds that each slot waited while the study was driven: between its attempts, and from its
    last one to the end of the span, or until it was given back."""
    waited: Counter[str] = Counter()
    for span in spans:
        inside = (attempts["started"] >= span.begin - 1e-6) & (attempts["started"] <= span.end)
        own = attempts.loc[inside, ["worker", "started", "ended"]]
        waited.update(idle_seconds(own.itertuples(index=False, name=None), span.end))
    return dict(waited)
