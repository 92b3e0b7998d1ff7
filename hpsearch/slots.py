"""Workers and current attempts as the brain knows them: what lives only while a driver does."""

from __future__ import annotations

from dataclasses import dataclass

from hpsearch.records import Attempt

GRACE_S = 30.0
"""How much longer than its time limit the brain waits for a worker to enforce it itself."""


@dataclass
class Slot:
    """A worker as the brain knows it."""

    name: str
    node: str
    device: str
    gpus: float
    holds: tuple[int, int] | None = None
    """The attempt it works on, current or on its way out."""


@dataclass
class Live:
    """A current attempt."""

    attempt: Attempt
    slot: Slot
    until: float
    resource: float
    """Where its last report stood."""
    heard: float
    """When it last gave word."""
    stopping: str | None = None
    """Why it was told to save and stop."""

    def overdue(self, now: float, deadline_s: float, limit_s: float | None) -> str | None:
        """Why the attempt has had its time, where it has.

        Args:
            now: The time.
            deadline_s: How long it may be silent.
            limit_s: How long it may take; None for as long as it likes.
        """
        silent, past = now - self.heard, now - self.attempt.started - (limit_s or 0.0)
        if silent > deadline_s:
            return f"no word for {silent:.0f} s (report_deadline is {deadline_s:g} s)"
        if limit_s is not None and past > GRACE_S:
            return f"still running {past:.0f} s past its time limit of {limit_s:g} s"
        return None
