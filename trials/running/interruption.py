"""Requests to stop: the first signal asks for it, the second one ends the process at once."""

from __future__ import annotations

import signal
from types import FrameType


class Interruption:
    """A context that notes a SIGINT or SIGTERM in `asked`."""

    def __init__(self) -> None:
        self.asked = False

    def __enter__(self) -> Interruption:
        self._before = {
            number: signal.signal(number, self._ask) for number in (signal.SIGINT, signal.SIGTERM)
        }
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        self.asked = True
