"""Ctrl-C, SIGTERM and the like while a study is driven."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hpsearch.errors import Interrupted
from hpsearch.running.driver.loop import Driver
from trials.running import interruption

STOPPING = b"\nstopping: workers save their state"
AGAIN = b". Press Ctrl-C again to stop at once"
AT_ONCE = 2  # the times that somebody asks who does not want to wait for trials to save
IN_ANY_CASE = 3  # the same for the last commit


@contextmanager
def stopped_by_signals(resume: str) -> Iterator[Callable[[Driver], None]]:
    """Let signals stop a driver: the first with everything saved, the second at once, unless all is
    saved by then. Yields a function for the driver before it starts. Only the main thread handles
    signals. Raises Interrupted if the driver was stopped at once, or before it started; `resume` is
    the command that continues the study."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda driver: None
        return
    drivers: list[Driver] = []
    received = 0

    def on_signal(number: int, times: int) -> None:
        nonlocal received
        received = times
        if not drivers or times >= IN_ANY_CASE:
            raise KeyboardInterrupt
        if times >= AT_ONCE:
            if not drivers[0].study.finished:
                raise KeyboardInterrupt
            return
        drivers[0].request_stop(signal.Signals(number).name)
        with suppress(OSError):  # nobody reads it any more
            in_job = "HPSEARCH_SUBMIT" in os.environ  # nobody sits at it
            os.write(2, STOPPING + (b"" if in_job else AGAIN) + b"\n")

    def begins(driver: Driver) -> None:
        if received:  # and lost, as in code that may not raise
            raise KeyboardInterrupt
        drivers.append(driver)

    try:
        with interruption.heard(on_signal):
            yield begins
    except KeyboardInterrupt:
        if not drivers:
            hint = f"start it again, or if it is in the database: {resume}"
            raise Interrupted("interrupted before the study went on", hint) from None
        message = f"interrupted at once; saved up to the last reports. Continue with: {resume}"
        raise Interrupted(message) from None
