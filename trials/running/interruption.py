"""Signals that ask a process to end: the first asks for it, a second one for less patience."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

BY_A_PERSON = (signal.SIGINT, signal.SIGTERM)
"""Signals that somebody sends again who does not want to wait."""
ENDING = (
    *BY_A_PERSON,
    signal.SIGHUP,  # the terminal, or the connection to it, was closed
    signal.SIGXCPU,  # the processor time that a limit allows is used up
    signal.SIGUSR1,  # schedulers send these two before they end a job
    signal.SIGUSR2,
)
"""Signals that ask for an end in order."""
TOGETHER_S = 1.0
"""Signals that come in less time are one, such as those of `timeout`, which sends its signal to a
process and then to its group."""


@contextmanager
def heard(
    on_signal: Callable[[int, int], None], clock: Callable[[], float] = time.monotonic
) -> Iterator[None]:
    """Call a function at signals that ask for an end, with the signal and how often that was asked
    for by now. What is ignored from the start stays ignored, as SIGHUP is by `nohup`. Only the main
    thread handles signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[float] = []

    def handler(number: int, frame: FrameType | None) -> None:
        now = clock()
        is_again = number in BY_A_PERSON and asked and now - asked[-1] >= TOGETHER_S
        if asked and not is_again:
            return
        asked.append(now)
        on_signal(number, len(asked))

    found = {number: signal.getsignal(number) for number in ENDING}
    before = {
        number: each
        for number, each in found.items()
        if number in BY_A_PERSON or each != signal.SIG_IGN
    }
    for number in before:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, each in before.items():
            signal.signal(number, each or signal.SIG_DFL)  # None for one that is not Python's


def take_back() -> None:
    """Handle signals again as before Ray's own handlers, which print the stack first."""
    if threading.current_thread() is threading.main_thread():
        for number in ENDING:
            if callable(handler := signal.getsignal(number)):
                signal.signal(number, handler)


@contextmanager
def interruption() -> Iterator[Callable[[], bool]]:
    """Within it, a first signal asks for an end, and a second one ends the process at once. Yields
    a function that says if it was asked."""
    asked = False

    def on_signal(number: int, times: int) -> None:
        nonlocal asked
        asked = True
        if times > 1:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    with heard(on_signal):
        yield lambda: asked
