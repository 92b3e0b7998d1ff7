"""The verdict on a report: if its trial goes on, and why."""

from __future__ import annotations

from dataclasses import dataclass

from hpsearch.domain.records import Attempt, Outcome

GOES_ON = "nothing speaks against it"

_ENDINGS = {
    Outcome.COMPLETE: "it is complete",
    Outcome.PAUSED: "it is paused",
    Outcome.PRUNED: "it is pruned",
    Outcome.FAILED: "it has failed",
}


@dataclass(frozen=True, slots=True)
class ReportVerdict:
    """The verdict on a report: true in an ``if`` where the trial goes on.

    Args:
        goes_on: True if the trial goes on. Where not, nothing more can be reported; ask for the
            next trial.
        why: The reason, in words.
    """

    goes_on: bool
    why: str

    def __bool__(self) -> bool:
        return self.goes_on


def ending_of(attempt: Attempt) -> str:
    """How an attempt has ended, in words."""
    if attempt.outcome is None:
        return "its attempt has ended"
    ending = _ENDINGS.get(attempt.outcome, "it was interrupted")
    return f"{ending}: {attempt.note}" if attempt.note else ending
