"""A `RayExecutor` on the thread that uses Ray (a `driver.loop.Executor`).

Commands go out together with the next poll, which follows at once: one call a tick.
"""

from collections.abc import Callable
from contextlib import suppress
from functools import partial

from hpsearch.domain import events as ev
from hpsearch.errors import ClusterLost
from hpsearch.running.executors.cluster.ray_cluster import GOODBYE_S, START_S, HeadNode
from hpsearch.running.executors.cluster.ray_thread import RayThread
from hpsearch.running.executors.ray import RayExecutor
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.study_file.models import Resources


class AwaitedExecutor:
    """Runs attempts on the Ray cluster that a thread is part of. Raises UserError if no node has
    the resources of a slot; all methods ClusterLost if the head is silent for too long."""

    def __init__(self, thread: RayThread, config: WorkerConfig, resources: Resources) -> None:
        self._thread = thread
        self._patience_s = resources.worker_timeout_s
        self._orders: list[Callable[[], None]] = []
        self._head = thread.call(partial(HeadNode, self._patience_s), START_S)
        make = partial(RayExecutor, config, resources, self._head)
        self._executor = thread.call(make, watch=self._head.check)
        self.gpus = self._executor.gpus  # the GPUs of a slot, of all its processes

    def launch(self, order: ev.Launch) -> None:
        self._orders.append(partial(self._executor.launch, order))

    def advance(self, order: ev.Advance) -> None:
        self._orders.append(partial(self._executor.advance, order))

    def stop(self, order: ev.Stop) -> None:
        self._orders.append(partial(self._executor.stop, order))

    def avoid(self, order: ev.Avoid) -> None:
        self._orders.append(partial(self._executor.avoid, order))

    def fill(self, order: ev.Fill) -> None:
        self._orders.append(partial(self._executor.fill, order))

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        self._orders.append(partial(self._executor.recorded, trial, attempt, resource))

    def poll(self, timeout_s: float) -> list[ev.Event]:
        orders, self._orders = self._orders, []
        poll = partial(self._carry_out, orders, timeout_s)
        return self._thread.call(poll, timeout_s + self._patience_s, self._head.check)

    def _carry_out(self, orders: list[Callable[[], None]], timeout_s: float) -> list[ev.Event]:
        for order in orders:
            order()
        return self._executor.poll(timeout_s)

    def close(self) -> None:
        """End all workers, as far as the head answers."""
        with suppress(ClusterLost):
            self._thread.call(self._executor.close, GOODBYE_S)
