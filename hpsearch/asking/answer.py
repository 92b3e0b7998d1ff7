"""The answer to a report: whether its trial goes on, and why."""

from __future__ import annotations

from dataclasses import dataclass

from hpsearch.domain.records import Attempt, Outcome

GOES_ON = "nothing speaks against it"

_SAID = {
    Outcome.COMPLETE: "it is complete",
    Outcome.PAUSED: "it is paused",
    Outcome.PRUNED: "it is pruned",
    Outcome.FAILED: "it has failed",
}
"""How attempts end that nobody was taken for dead in."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a trial goes on after a report: true in an ``if`` where it does.

    Args:
        goes_on: Whether it does. Where not, nothing more can be reported; ask for the next trial.
        why: The reason, in words.
    """

    goes_on: bool
    why: str

    def __bool__(self) -> bool:
        return self.goes_on


def said_of(attempt: Attempt) -> str:
    """How an attempt has ended, in words."""
    if attempt.outcome is None:
        return "its attempt has ended"
    said = _SAID.get(attempt.outcome, "it was interrupted")
    return f"{said}: {attempt.note}" if attempt.note else said
