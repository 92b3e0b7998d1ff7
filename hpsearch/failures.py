"""When a study is hopeless: its trials all fail, and all the same way; and when it waits: the disk is full."""

from __future__ import annotations

import re

PATIENCE = {"error": 3, "lost": 3}
"""After how many failures of one kind, and nothing else, a study gives up."""

OTHERWISE = 10
"""The same for kinds that are facts about a region of the space: diverged, out_of_memory, timeout."""

FACTS = ("diverged", "out_of_memory", "timeout")
"""Failures that tell of the configuration's region of the space, not of the machine or the code."""

DISK_FULL = "disk_full"
"""The kind of failure that is told to `DiskWatch`."""

DISK_PAUSE_S = 10.0
"""How long nothing starts after a checkpoint could not be written."""


class FailureWatch:
    """Counts failures by what they say, until the first trial works."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], int] = {}
        self._examples: dict[tuple[str, str], str] = {}
        self._worked = False

    def worked(self) -> None:
        """A trial has reported: whatever fails from now on is that trial's own."""
        self._worked = True

    def failed(self, kind: str, text: str) -> None:
        """A trial failed."""
        key = (kind, re.sub(r"[\d.]+(e[+-]?\d+)?", "#", text))
        self._counts[key] = self._counts.get(key, 0) + 1
        self._examples[key] = text

    def hopeless(self) -> str | None:
        """Why the study should give up; None while there is hope."""
        if self._worked or len(self._counts) != 1:
            return None
        ((kind, _), count) = next(iter(self._counts.items()))
        return self.summary() if count >= PATIENCE.get(kind, OTHERWISE) else None

    def summary(self) -> str | None:
        """What failed most, in a sentence; None if nothing did."""
        if not self._counts:
            return None
        key = max(self._counts, key=lambda k: self._counts[k])
        count = self._counts[key]
        trials = "trial" if count == 1 else "trials"
        return f"{count} {trials} failed the same way ({key[0]}): {self._examples[key]}"


class DiskWatch:
    """A full disk is no trial's fault: the study waits for room, and after a while it stops until someone made some.

    Args:
        patience_s: How long it waits, in seconds.
    """

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._since: float | None = None
        self._until = 0.0

    def full(self, now: float) -> None:
        """A checkpoint could not be written."""
        self._since = now if self._since is None else self._since
        self._until = now + DISK_PAUSE_S

    def saved(self) -> None:
        """A checkpoint could be written."""
        self._since = None

    def waits(self, now: float) -> bool:
        """Whether nothing should start now."""
        return now < self._until

    def hopeless(self, now: float) -> bool:
        """Whether it has been full for too long."""
        return self._since is not None and now - self._since > self._patience_s
