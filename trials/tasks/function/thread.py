"""Threads that call one job after another: making one costs more than a short trial."""

from __future__ import annotations

import threading
from collections.abc import Callable

Job = Callable[[], threading.Lock]
"""A call for a thread. It returns a lock, which is released once the thread is free again."""


def taken_lock() -> threading.Lock:
    """A lock that somebody else releases."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class JobThread:
    """A thread that calls one job after another."""

    def __init__(self) -> None:
        self._wake = taken_lock()
        self._job: Job | None = None
        # A daemon: a function that never reports again must not keep the process alive.
        threading.Thread(target=self._work, name="training-function", daemon=True).start()

    def run(self, job: Job) -> None:
        """Call `job` in the thread, and release the lock it returns once the thread is free
        again."""
        self._job = job
        self._wake.release()

    def _work(self) -> None:
        while True:
            self._wake.acquire()
            job, self._job = self._job, None
            assert job is not None
            done = job()
            del job  # it holds the run, and with it whatever the function left behind
            _idle.append(self)
            done.release()


_idle: list[JobThread] = []


def idle_thread() -> JobThread:
    """A thread that has nothing to do: one that is free again, or a new one."""
    try:
        return _idle.pop()
    except IndexError:
        return JobThread()
