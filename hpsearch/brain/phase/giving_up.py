"""When a study gives up because all its trials fail in the same way, and when it waits for a full
disk."""

from __future__ import annotations

import re

from hpsearch.domain.facts import ErrorKind

PATIENCE = {ErrorKind.ERROR: 3, ErrorKind.LOST: 3}
"""After how many failures of one kind, and of no other, a study gives up."""

PATIENCE_OTHERWISE = 10
"""The same for kinds that are facts about a region of the space."""

DISK_PAUSE_S = 10.0
"""How long nothing starts after a checkpoint could not be written."""

NUMBER = re.compile(r"[\d.]+(e[+-]?\d+)?")
"""The parts that may differ between the texts of two failures that are the same."""


class FailureWatch:
    """Counts failures by their kind and text, until the first trial reports.

    Args:
        worked: Whether one has already reported, under an earlier driver.
    """

    def __init__(self, worked: bool = False) -> None:
        self._counts: dict[tuple[ErrorKind, str], int] = {}
        self._examples: dict[tuple[ErrorKind, str], str] = {}
        self._worked = worked

    def worked(self) -> None:
        """A trial has reported: what fails from now on fails for a reason of its own."""
        self._worked = True

    def failed(self, kind: ErrorKind, text: str) -> None:
        """A trial failed."""
        key = (kind, NUMBER.sub("#", text))
        self._counts[key] = self._counts.get(key, 0) + 1
        self._examples[key] = text

    def hopeless(self) -> str | None:
        """Why the study should give up; None while there is hope."""
        if self._worked or len(self._counts) != 1:
            return None
        [((kind, _), count)] = self._counts.items()
        patience = PATIENCE.get(kind, PATIENCE_OTHERWISE)
        if count < patience:
            return None
        return self.summary()

    def summary(self) -> str | None:
        """The most frequent failure, in a sentence; None if nothing failed."""
        if not self._counts:
            return None
        key, count = max(self._counts.items(), key=lambda item: item[1])
        kind, _ = key
        trials = "trial" if count == 1 else "trials"
        return f"{count} {trials} failed the same way ({kind}): {self._examples[key]}"


class DiskWatch:
    """A study whose disk is full waits for room, and stops after a while, resumable.

    Args:
        patience_s: How long it waits, in seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: float | None = None
        self._until = 0.0

    def full(self, now: float) -> None:
        """A checkpoint could not be written."""
        if self._since is None:
            self._since = now
        self._until = now + DISK_PAUSE_S

    def was_away(self, seconds: float) -> None:
        """The driver was not listening for this many seconds, and could not learn of a save."""
        if self._since is not None:
            self._since += seconds

    def saved(self) -> None:
        """A checkpoint could be written."""
        self._since = None

    def waits(self, now: float) -> bool:
        """True if nothing should start now."""
        return now < self._until

    def hopeless(self, now: float) -> bool:
        """True if it has been full for too long."""
        if self._since is None:
            return False
        return now - self._since > self._patience_s
