"""The micro-batches of a run, gathered ahead of the steps that train them.

If the samples are not on the device, threads gather the next micro-batches while the device trains
this one. The step determines them (`trials.data.order`), so nothing is drawn and nothing is saved.
They are only a guess, which is compared with the rows that a step asks for. After a wrong guess, as
when a micro-batch was halved for lack of memory, the gathered batches are dropped.

Threads are used and not processes (such as a DataLoader's), because torch gathers flat arrays
without holding the interpreter's lock.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np

from trials.data.batching import Ints, cut
from trials.data.order import BatchOrder
from trials.data.residence import Residence
from trials.data.samples import Samples
from trials.data.workload import Batch, Workload
from trials.devices.processes import Group, use

THREADS = 1
"""Threads for `data_workers: auto`; more do not shorten the wait (`benchmarks/feeding.py`)."""
AHEAD = 2
"""Micro-batches in line for each thread: one being gathered, and one that is ready."""


@runtime_checkable
class Sampled(Protocol):
    """A workload whose training batches come from its samples: `batch` is `samples.batch`."""

    samples: Samples


class Feed:
    """The training batches of one run. `asked`: the setting `data_workers`."""

    def __init__(
        self, workload: Workload, order: BatchOrder, group: Group, asked: int | str
    ) -> None:
        self.order = order
        self._workload = workload
        self._group = group
        self._samples: Samples | None = None
        self._line: deque[tuple[Ints, Future[Batch]]] = deque()
        """The batches in line, the next one first."""
        self._coming: Iterator[Ints] = iter(())
        """The micro-batches after those in line."""
        self._most = 0
        if isinstance(workload, Sampled):
            residence = workload.samples.residence
            count = threads_for(asked, residence)
            if count > 0:
                self._samples = workload.samples
                self._most = count * AHEAD
                self._pool = ThreadPoolExecutor(count, "feed", use, (residence.device,))

    def parts(self, rows: Ints, weight: float, size: int, step: int) -> tuple[list[Ints], float]:
        """This rank's micro-batches of `size` samples of a step, and the divisor of their losses.
        `weight`: the targets of the whole batch."""
        mine, weight = self._group.share(rows, weight)
        parts = cut(mine, size)
        if self._samples is not None and not self._is_next(parts[0]):
            self._drop()
            self._coming = self._from(step, size)
            self._fill(self._samples)
        return parts, weight

    def _from(self, step: int, size: int) -> Iterator[Ints]:
        while True:
            rows = self.order.rows(step)
            mine, _ = self._group.share(rows, 1.0)
            yield from cut(mine, size)
            step += 1

    def batch(self, part: Ints) -> Batch:
        if self._samples is None or not self._is_next(part):
            return self._workload.batch(part)
        _, gathered = self._line.popleft()
        self._fill(self._samples)
        return self._samples.deliver(gathered.result())

    def _is_next(self, rows: Ints) -> bool:
        if not self._line:
            return False
        first, _ = self._line[0]
        return np.array_equal(first, rows)

    def _fill(self, samples: Samples) -> None:
        missing = self._most - len(self._line)
        for rows in islice(self._coming, missing):
            gathered = self._pool.submit(samples.gather, rows)
            self._line.append((rows, gathered))

    def _drop(self) -> None:
        for _, gathered in self._line:
            gathered.cancel()
        self._line.clear()

    def close(self) -> None:
        if self._samples is not None:
            self._drop()
            self._pool.shutdown()


def threads_for(asked: int | str, residence: Residence) -> int:
    """The number of threads that gather samples: 0 if they are on a GPU. `asked`: a number, or
    `auto`, which is 0 on the CPU too: threads would only compete with the training."""
    if residence.resident and residence.device.type != "cpu":
        return 0
    if isinstance(asked, int):
        return asked
    return 0 if residence.resident else THREADS
