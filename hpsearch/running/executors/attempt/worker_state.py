"""The state of a worker process that stays between attempts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hpsearch.domain import events as ev
from hpsearch.running.executors.worker_config import WorkerConfig
from trials.contract import Task
from trials.devices.memory import keep_to_share

KEPT_DATA = 2  # how many prepared data sets a worker keeps references to


class WorkerState:
    """The state of a worker process that stays between attempts: the task, and its prepared data.
    `fetch` makes the data from `launch`'s argument; `share` is its part of the device's memory, 1
    and more for all."""

    def __init__(
        self, config: WorkerConfig, fetch: Callable[[Any], Any], device: str, share: float
    ) -> None:
        self.config = config
        self.device = device
        self._share = share
        self._fetch = fetch
        self._task: Task | None = None
        self._data: dict[str, Any] = {}

    def make_ready(self) -> None:
        """Build the task, unless it is there, and keep to the share of the device."""
        _ = self.task
        keep_to_share(self.device, self._share)

    @property
    def task(self) -> Task:
        """The task; built when it is first asked for."""
        if self._task is None:
            self._task = self.config.load_task()
        return self._task

    def data_for(self, order: ev.Launch, given: Any) -> Any:
        """The prepared data for an attempt's settings, fetched by the argument of the order where
        it is not here yet; None if the task prepares none."""
        if not self.config.prepares:
            return None
        key = self.task.data_key(self.config.params(order))
        kept = self._data
        if key in kept:
            return kept[key]
        while len(kept) >= KEPT_DATA:
            oldest = next(iter(kept))
            del kept[oldest]
        kept[key] = self._fetch(given)
        return kept[key]
