"""The time that a trial trains."""

from __future__ import annotations

import time


class Stopwatch:
    """Seconds trained, over all attempts of a trial, without those in which it waits.

    Args:
        before_s: The seconds of its attempts before. It counts on with `go_on`.
    """

    def __init__(self, before_s: float) -> None:
        self._before_s = before_s
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Until now."""
        if self._since is None:
            return self._before_s
        return self._before_s + time.perf_counter() - self._since

    def go_on(self) -> None:
        """Count from now on."""
        if self._since is None:
            self._since = time.perf_counter()

    def pause(self) -> None:
        """Count no further."""
        self._before_s = self.seconds
        self._since = None
