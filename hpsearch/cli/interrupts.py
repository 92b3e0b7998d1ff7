"""Signals that tell a command to end: SIGTERM is heard wherever Ctrl-C is."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

EXIT_CODE = 130
"""The exit code of a command that was told to end."""


@contextmanager
def heard() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT and SIGTERM. Only the main thread handles signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, _raise) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_at_once() -> None:
    """End this process at SIGINT and SIGTERM from now on: nothing is left to do."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(EXIT_CODE))


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
