"""The thread that uses Ray: the main thread hears signals, and waits for Ray with a limit.

A call of Ray may wait without end for a head that is gone, and its thread hears no signals
meanwhile. So the main thread hands its calls to another one. That one lives for as long as its Ray:
Linux ends the processes of a Ray together with the thread that has started them.
"""

import math
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from queue import SimpleQueue
from typing import Any, TypeVar

from hpsearch.errors import ClusterLost

LOOK_S = 1.0  # how often a waiting thread looks whether it is to wait on

T = TypeVar("T")


class RayThread:
    """A thread for calls of Ray, which are made one after another."""

    def __init__(self) -> None:
        self._calls: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._last: Future[Any] | None = None
        _threads.append(self)
        threading.Thread(target=self._work, name="ray", daemon=True).start()

    @property
    def is_stuck(self) -> bool:
        """A call has not come back, whose caller has gone on."""
        return self._last is not None and not self._last.done()

    def call(
        self,
        function: Callable[[], T],
        limit_s: float = math.inf,
        watch: Callable[[], object] = lambda: None,
    ) -> T:
        """The result of a function.

        Args:
            limit_s: The longest that it may take. The time in which this process is stopped counts
                as a moment.
            watch: Called every now and then meanwhile; may raise.

        Raises:
            ClusterLost: It takes longer. It is not stopped.
        """
        future: Future[T] = Future()
        self._last = future
        self._calls.put((future, function))
        left_s = limit_s
        while True:
            began = time.monotonic()
            wait([future], min(LOOK_S, left_s))
            if future.done():
                return future.result()
            watch()
            left_s -= min(time.monotonic() - began, 2 * LOOK_S)
            if left_s <= 0:
                what = f"Ray has not answered for {limit_s:.0f} s"
                hint = "everything up to the last reports is saved; continue the study"
                raise ClusterLost(what, hint)

    def close(self) -> None:
        """End once all calls have come back."""
        self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            future, function = call
            try:
                future.set_result(function())
            except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
                future.set_exception(error)
            del call, future, function
        _threads.remove(self)


_threads: list[RayThread] = []


def any_is_stuck() -> bool:
    """True if the end of this process would wait for a call of Ray, or crash on it."""
    return any(thread.is_stuck for thread in _threads)
