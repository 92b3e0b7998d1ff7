"""The ends of a study that may go on, as errors with the reason."""

from hpsearch.domain.facts import Interruption
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import DiskFull, HpsearchError, Interrupted, StoppedOnRequest


def interruption_of(study: StudyRecord, resume: str) -> HpsearchError:
    """The error that says why a study was interrupted, and how it goes on: with `resume`."""
    how = f"Continue with: {resume}"
    match study.interruption:
        case Interruption.REQUEST:
            return StoppedOnRequest(f"{study.reason}; everything is saved. {how}")
        case Interruption.DISK_FULL:
            return DiskFull(f"interrupted: {study.reason}; what was saved before stays. {how}")
        case Interruption.SIGNAL:
            return Interrupted(f"interrupted: {study.reason}; everything is saved. {how}")
    return Interrupted(f"interrupted; everything is saved. {how}")
