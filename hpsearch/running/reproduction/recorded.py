"""The training of a trial as it is on record, as far as its results depend on it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import THINNED
from hpsearch.store.reading.queries import TrialDetail

OF_THE_MACHINE = (ErrorKind.TIMEOUT, ErrorKind.DISK_FULL, ErrorKind.LOST)
"""Failures that another training of the same configuration need not have."""


@dataclass(frozen=True)
class RecordedTraining:
    """The training of a trial."""

    parts: tuple[float, ...]
    """The resources at which it was continued from a checkpoint, rising; the first is 0."""
    end: float
    """The resource of its last report."""
    reports: Mapping[float, Mapping[str, float]]
    """Metrics, by resource."""
    must_end: bool
    """True if it ended by itself there: it used its budget, stopped early or failed."""
    error: tuple[ErrorKind, str] | None
    """The kind and the text of its failure; None if it did not fail, or the machine did."""
    thinned: bool = False
    """True if reports before its end are no longer on record."""


def recorded_training(detail: TrialDetail) -> RecordedTraining:
    """The training of a trial, without lost parts."""
    trial = detail.trial
    reports = {float(each["resource"]): each["metrics"] for each in detail.reports}
    end = max(reports, default=0.0)
    error = None
    if trial.state is State.FAILED and trial.error_kind not in (None, *OF_THE_MACHINE):
        error = trial.error_kind, trial.error_text or ""
    return RecordedTraining(
        parts=tuple(start for start in _parts(detail.attempts) if start < end or start == 0.0),
        end=end,
        reports=reports,
        must_end=trial.state is State.COMPLETE or error is not None,
        error=error,
        thinned=THINNED in trial.system_attrs,
    )


def _parts(attempts: Sequence[Mapping[str, Any]]) -> list[float]:
    """The resources at which the trial was continued. An attempt that continues from before another
    one's beginning replaces it."""
    parts: list[float] = []
    for each in attempts:
        if each["arithmetic"] is None:
            continue  # it never came to train
        start = float(each["start_resource"])
        while parts and parts[-1] >= start:
            parts.pop()
        parts.append(start)
    if not parts or parts[0] != 0.0:
        parts.insert(0, 0.0)
    return [start for start in parts if math.isfinite(start)]
