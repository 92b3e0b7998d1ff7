"""A clock for drivers that nobody can set."""

from __future__ import annotations

import time
from collections.abc import Callable


class SteadyClock:
    """Seconds since the epoch at the moment it is made, plus the time that passes from then on.

    Setting the machine's clock does not move it. It stops while the machine is suspended. It starts
    at `not_before` if the machine's clock is behind that: a study's time does not run backwards
    from one driver to the next."""

    def __init__(
        self,
        not_before: float | None = None,
        wall: Callable[[], float] = time.time,
        passing: Callable[[], float] = time.monotonic,
    ) -> None:
        start = wall() if not_before is None else max(wall(), not_before)
        self._passing = passing
        self._before = start - passing()

    def __call__(self) -> float:
        """The time."""
        return self._before + self._passing()
