"""Ctrl-C and SIGTERM while a study is driven."""

import os
import signal
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from hpsearch.errors import Interrupted
from hpsearch.running.driver.loop import Driver

STOPPING = b"\nstopping: workers save their state"
AGAIN = b". Press Ctrl-C again to stop at once"


@contextmanager
def stopped_by_signals(resume: str) -> Iterator[Callable[[Driver], None]]:
    """Let Ctrl-C or SIGTERM stop a driver: first with everything saved, then at once. Yields a
    function for the driver before it starts. Only the main thread handles signals. Raises
    Interrupted if the driver was stopped at once, or before it started; `resume` is the command
    that continues the study."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda driver: None
        return
    drivers: list[Driver] = []
    received = 0

    def on_signal(number: int, frame: types.FrameType | None) -> None:
        nonlocal received
        received += 1
        if received > 1 or not drivers:
            raise KeyboardInterrupt
        drivers[0].request_stop()
        with suppress(OSError):  # nobody reads it any more
            in_job = "HPSEARCH_SUBMIT" in os.environ  # nobody sits at it
            os.write(2, STOPPING + (b"" if in_job else AGAIN) + b"\n")

    def begins(driver: Driver) -> None:
        if received:  # and lost, as in code that may not raise
            raise KeyboardInterrupt
        drivers.append(driver)

    before = {each: signal.signal(each, on_signal) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield begins
    except KeyboardInterrupt:
        if not drivers:
            hint = f"start it again, or if it is in the database: {resume}"
            raise Interrupted("interrupted before the study went on", hint) from None
        message = f"interrupted at once; saved up to the last reports. Continue with: {resume}"
        raise Interrupted(message) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
