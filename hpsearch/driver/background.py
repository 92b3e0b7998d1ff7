"""Work on checkpoints beside a driver's loop: a slow disk or store does not hold the driver up."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

from hpsearch.brain.study import Study

PATIENCE_S = 30.0
"""The seconds that the end of a driver waits for removals. The next driver does what is left."""

T = TypeVar("T")


class Background(Generic[T]):
    """A thread that carries out orders one after another. `carry_out` is called with each order and
    must not raise; `finish` is called after the last one."""

    def __init__(
        self, name: str, carry_out: Callable[[T], None], finish: Callable[[], None]
    ) -> None:
        self._carry_out = carry_out
        self._finish = finish
        self._orders: SimpleQueue[T | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    def order(self, order: T) -> None:
        """Carry this out, after all orders before it."""
        self._orders.put(order)

    def close(self) -> None:
        """Carry out what was ordered, and end; wait for that for a while."""
        self._orders.put(None)
        self._thread.join(PATIENCE_S)

    def _work(self) -> None:
        while (order := self._orders.get()) is not None:
            self._carry_out(order)
        self._finish()


def held_by_workers(study: Study) -> set[int]:
    """The numbers of the trials that workers train, or have not let go of yet."""
    return {slot.holds[0] for slot in study.slots.values() if slot.holds is not None}
