"""Where the time of a study went: into which trials, into starting up, and into waiting."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
import pandas as pd

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Outcome
from hpsearch.report.frames.clocks import DrivenSpan


class SpentOn(StrEnum):
    """What a part of the time of the slots was for, as the page names it."""

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


def spending(
    attempts: pd.DataFrame, trials: pd.DataFrame, spans: Sequence[DrivenSpan]
) -> pd.DataFrame:
    """The compute time of each purpose: columns `part`, `gpu_seconds` and `attempts`, without those
    that took nothing.

    An attempt's start-up counts as overhead and the rest of it as its trial's, by how the trial
    stands. What a lost attempt took counts as lost, whatever became of its trial.

    Args:
        attempts: Those of the study, with an end each.
        trials: Its trials.
        spans: When it was driven.
    """
    part = purposes(attempts, trials)
    charged = attempts["gpu_seconds"].to_numpy(float)
    lasted = np.maximum((attempts["ended"] - attempts["started"]).to_numpy(float), 1e-9)
    start_up = np.nan_to_num(attempts["start_up_seconds"].to_numpy(float))
    overhead = charged * np.clip(start_up / lasted, 0.0, 1.0)
    idle_s = sum(idle(attempts, spans).values())
    rate = charged.sum() / lasted.sum() if len(attempts) else 0.0
    rows = []
    for each in SpentOn:
        chosen = part == each
        seconds, number = float((charged - overhead)[chosen].sum()), int(chosen.sum())
        if each is SpentOn.OVERHEAD:
            seconds, number = float(overhead.sum()), int((overhead > 0).sum())
        elif each is SpentOn.IDLE:
            seconds, number = idle_s * rate, 0
        if seconds > 0:
            rows.append((each.value, seconds, number))
    return pd.DataFrame(rows, columns=["part", "gpu_seconds", "attempts"])


def purposes(attempts: pd.DataFrame, trials: pd.DataFrame) -> np.ndarray:
    """What each attempt was for, by the name of a `SpentOn`."""
    states = trials["state"].to_dict()
    roles = trials["role"].to_dict()
    found = []
    for trial, outcome in zip(attempts["trial"], attempts["outcome"], strict=True):
        part = _OF_STATE[State(states[trial])]
        if outcome == Outcome.LOST.value:
            part = SpentOn.FAILED
        elif roles[trial] == Role.CONFIRM and part is SpentOn.FINISHED:
            part = SpentOn.CONFIRMED
        found.append(part.value)
    return np.asarray(found, dtype=object)


def idle(attempts: pd.DataFrame, spans: Sequence[DrivenSpan]) -> dict[str, float]:
    """Seconds that each slot waited while the study was driven: between its attempts, and from its
    last one to the end of the span."""
    waited: dict[str, float] = {}
    for span in spans:
        inside = (attempts["started"] >= span.begin - 1e-6) & (attempts["started"] <= span.end)
        for worker, own in attempts[inside].groupby("worker", sort=False):
            there_s = span.end - float(own["started"].min())
            busy_s = float((own["ended"] - own["started"]).sum())
            waited[str(worker)] = waited.get(str(worker), 0.0) + max(0.0, there_s - busy_s)
    return waited
