"""The orders about one attempt, from the thread that takes them to the one that trains."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Control:
    """The orders of the command thread to the training thread about one attempt."""

    until: float
    ordered: float = field(default_factory=time.monotonic)
    """The time at which the attempt was ordered, by the monotonic clock."""
    deadline: float | None = None
    stop: bool = False
    save: bool = False
    retired: bool = False  # true if the whole process is to end
    signalled: bool = False  # true if that is by a SIGTERM
    recorded: float = 0.0  # up to which resource its reports are in the database
    given: dict[str, Any] = field(default_factory=dict)
    """The parameters that it has asked for, as far as they are known."""
    changed: threading.Event = field(default_factory=threading.Event)

    def limit(self, seconds: float | None) -> None:
        """Let the attempt train for so many seconds from now on; None for no limit."""
        if seconds is not None:
            self.deadline = time.monotonic() + seconds

    def interrupts(self) -> bool:
        """True if training should return now; asked after every step."""
        return self.stop or (self.deadline is not None and time.monotonic() > self.deadline)

    def wait_for_word(self, resource: float) -> None:
        """Wait at a level until the attempt may train beyond it, or must stop."""
        self._wait(lambda: self.until > resource)

    def wait_for_value(self, name: str) -> None:
        """Wait until a parameter has its value, or the attempt must stop."""
        self._wait(lambda: name in self.given)

    def _wait(self, has_word: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not has_word() and not self.stop:
            self.changed.wait()
            self.changed.clear()
        waited_s = time.monotonic() - began
        if self.deadline is not None:
            self.deadline += waited_s
