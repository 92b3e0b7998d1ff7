"""When a study is hopeless: its trials all fail, and all the same way."""

from __future__ import annotations

import re

PATIENCE = {"error": 3, "lost": 3}
"""After how many failures of one kind, and nothing else, a study gives up."""

OTHERWISE = 10
"""The same for kinds that are facts about a region of the space: diverged, out_of_memory, timeout."""


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
