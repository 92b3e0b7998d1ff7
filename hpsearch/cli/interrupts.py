"""Signals that tell a command to end: all are handled as Ctrl-C is."""

import os
import signal
from contextlib import AbstractContextManager

from trials.running import interruption

EXIT_CODE = 130  # the exit code of a command that was told to end


def handled() -> AbstractContextManager[None]:
    """Raise KeyboardInterrupt at signals that ask for an end. Only the main thread handles them."""
    return interruption.heard(_raise)


def end_at_once() -> None:
    """End this process at such a signal from now on: nothing is left to do."""
    for number in interruption.ENDING:
        if number in interruption.BY_A_PERSON or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda *_: os._exit(EXIT_CODE))


def _raise(number: int, times: int) -> None:
    raise KeyboardInterrupt
