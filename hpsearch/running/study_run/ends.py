"""The ends of a study that may go on, as errors with the reason."""

from hpsearch.brain.requests import INTERRUPTED, STOPPED_BY, was_asked_to_stop
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import DiskFull, HpsearchError, Interrupted, StoppedOnRequest


def interruption_of(study: StudyRecord, resume: str) -> HpsearchError:
    """The error that says why a study was interrupted, and how it goes on: with `resume`."""
    reason = study.reason or INTERRUPTED
    how = f"Continue with: {resume}"
    if reason.startswith(STOPPED_BY):
        return StoppedOnRequest(f"{reason}; everything is saved. {how}")
    if not was_asked_to_stop(reason):
        return DiskFull(f"interrupted: {reason}; what was saved before stays. {how}")
    why = "" if reason == INTERRUPTED else f": {reason}"
    return Interrupted(f"interrupted{why}; everything is saved. {how}")
