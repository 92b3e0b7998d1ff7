"""Studies as plain values."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from hpsearch.ranking.selection import expectation_of
from hpsearch.store.reading.standing import StudyStatus, StudySummary
from hpsearch.store.reading.trust import StudyTrust
from hpsearch.words.requests import as_plain


def study_document(summary: StudySummary) -> dict[str, Any]:
    """A study in a line."""
    best: dict[str, Any] | None = None
    if summary.best is not None:
        trial = summary.best.trial
        best = {"number": trial.number, "value": summary.best.value}
        best |= expectation_of(summary.best.again)
    return {
        "study": summary.head.name,
        "state": summary.state,
        "driver": summary.driver,
        "reason": summary.head.reason,
        "trials": {state.value: n for state, n in sorted(summary.trials.items())},
        "best": best,
        "gpu_seconds": summary.gpu_seconds,
        "created": summary.head.created,
        "ended": summary.head.ended,
    }


def status_document(status: StudyStatus, trust: StudyTrust, disk: int | None) -> dict[str, Any]:
    """The status of a study, with the trust in its rungs, and the bytes that its checkpoints take
    on the disk if that is known."""
    head = status.summary.head
    return {
        **study_document(status.summary),
        "stop_requested": head.stop_requested,
        "budget": {line.name: {"used": line.used, "limit": line.most} for line in status.budget},
        "devices": [asdict(line) for line in status.devices],
        "reserved_gpu_seconds": status.reserved_gpu_seconds,
        "checkpoints": head.checkpoints,
        "checkpoint_bytes": disk,
        "checkpoint_limit_bytes": head.checkpoint_limit_bytes,
        "trials_per_hour": status.trials_per_hour,
        "seconds_left": status.seconds_left(time.time()),
        "idle_share": status.idle_share(time.time()),
        "running": [asdict(each) for each in status.running],
        "failures": [asdict(each) for each in status.failures],
        "rungs": [rung.as_plain() for rung in trust.rungs],
        "requests": [as_plain(each) for each in status.requests],
    }
