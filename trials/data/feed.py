"""The micro-batches of a run, gathered ahead of the steps that train them.

If the samples are not on the device, threads gather the next micro-batches while the device trains
this one. Which ones come next follows from where the run is (`trials.data.order`), so nothing is
drawn for them and nothing is saved. They are still only a guess, which is compared with the rows
that a step asks for. If the guess was wrong, as after a micro-batch was halved for lack of memory,
the gathered batches are dropped, and no result changes.

Threads are used and not processes (such as a DataLoader's), because torch gathers flat arrays
without holding the interpreter's lock. So no batch is sent from one process to another, nothing is
forked, and no thread outlives the process.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from trials.data.batching import Ints, micro_batches
from trials.data.order import BatchOrder
from trials.data.residence import Residence
from trials.data.samples import Samples
from trials.data.workload import Batch, Workload
from trials.devices.processes import Group, use

AUTO = "auto"
THREADS = 1
"""The number that `AUTO` means. `benchmarks/feeding.py` shows that more do not shorten the wait."""
AHEAD = 2
"""Micro-batches in line for each thread: one being gathered, and one that is ready."""
PATIENCE_S = 300.0
"""How long a step waits for its batch. Gathering takes milliseconds, but minutes if it reads a
mapped file over a network that has stalled. After this time it is given up."""
GRACE_S = 1.0
"""How long closing waits for a thread that is still gathering."""

Gathered = Future[Batch]
Job = tuple[Ints, Gathered]


class FeedError(Exception):
    """No batch came: a thread that gathers batches does not answer."""


@runtime_checkable
class Sampled(Protocol):
    """A workload whose training batches are those of its samples: `batch` is `samples.batch`."""

    samples: Samples


class Feed:
    """The training batches of one run.

    Attributes:
        order: Which samples a step trains.
    """

    def __init__(
        self,
        workload: Workload,
        order: BatchOrder,
        group: Group,
        asked: int | str,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.order = order
        self._workload = workload
        self._group = group
        self._line: Line | None = None
        if isinstance(workload, Sampled):
            count = threads_for(asked, workload.samples.residence)
            if count > 0:
                self._line = Line(workload.samples, count, patience_s)

    def parts(
        self, rows: Ints, weight: float, size: int, step: int, samples: int
    ) -> tuple[list[Ints], float]:
        """This process's micro-batches of `size` samples of a step, and what to divide the sums of
        their losses by. `weight` counts the targets of the whole batch."""
        mine, weight = self._group.share(rows, weight)
        parts = micro_batches(mine, size)
        line = self._line
        if line is not None and not line.next_is(parts[0]):
            course = self._course(step, samples, size)
            line.follow(course)
        return parts, weight

    def _course(self, step: int, samples: int, size: int) -> Iterator[Ints]:
        """The micro-batches of a run that continues from here undisturbed, without an end."""
        while True:
            rows = self.order.rows(step, samples)
            mine, _ = self._group.share(rows, 1.0)
            yield from micro_batches(mine, size)
            step += 1
            samples += len(rows)

    def batch(self, part: Ints) -> Batch:
        """A micro-batch on the device.

        Raises:
            FeedError: A thread has not gathered it in time.
            Exception: Whatever gathering it raised.
        """
        if self._line is None or not self._line.next_is(part):
            return self._workload.batch(part)
        return self._line.take()

    def close(self) -> bool:
        """End the threads; whether they have ended."""
        return self._line is None or self._line.close()


class Line:
    """Batches that threads gather in order, a few at a time."""

    def __init__(self, samples: Samples, count: int, patience_s: float) -> None:
        self._samples = samples
        self._patience_s = patience_s
        self._most = count * AHEAD
        self._course: Iterator[Ints] = iter(())
        self._waiting: deque[Job] = deque()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._end = weakref.finalize(self, _end, self._jobs, count)
        # The threads do not hold this object, which ends them when it is collected.
        work = (self._jobs, samples.gather, samples.residence.device)
        for _ in range(count):
            thread = threading.Thread(target=_work, args=work, name="feed", daemon=True)
            thread.start()
            self._threads.append(thread)

    def next_is(self, rows: Ints) -> bool:
        """Whether the first batch in line is that of `rows`."""
        if not self._waiting:
            return False
        first, _ = self._waiting[0]
        return np.array_equal(first, rows)

    def follow(self, course: Iterator[Ints]) -> None:
        """Drop the batches in line, and gather those of `course`."""
        self._drop()
        self._course = course
        self._fill()

    def _drop(self) -> None:
        for _, gathered in self._waiting:
            gathered.cancel()
        self._waiting.clear()

    def _fill(self) -> None:
        waiting = len(self._waiting)
        missing = max(self._most - waiting, 0)
        for rows in islice(self._course, missing):
            job: Job = rows, Future()
            self._waiting.append(job)
            self._jobs.put(job)

    def take(self) -> Batch:
        """The first batch in line, on the device.

        Raises:
            FeedError: It did not come in time.
            Exception: Whatever gathering it raised.
        """
        rows, gathered = self._waiting.popleft()
        self._fill()
        try:
            batch = gathered.result(timeout=self._patience_s)
        except TimeoutError:
            if gathered.done():  # the timeout was raised while gathering
                raise
            raise FeedError(self._too_late(rows)) from None
        return self._samples.deliver(batch)

    def _too_late(self, rows: Ints) -> str:
        what = f"a batch of {len(rows)} samples was not gathered within {self._patience_s:g} s"
        remedy = "check whether the storage of HPSEARCH_CACHE has stalled, or set data_workers to 0"
        return f"{what}; {remedy}"

    def close(self) -> bool:
        """End the threads; whether they have ended."""
        self._drop()
        self._end()
        for thread in self._threads:
            thread.join(GRACE_S)
        return not any(thread.is_alive() for thread in self._threads)


def threads_for(asked: int | str, residence: Residence) -> int:
    """How many threads gather samples: none if they are on a GPU, which needs no time of the CPU.

    Args:
        asked: A number, or `AUTO`, which is none on the CPU too, where threads would only compete
            with the training.
        residence: Where the samples are.
    """
    if residence.resident and residence.device.type != "cpu":
        return 0
    if isinstance(asked, int):
        return asked
    return 0 if residence.resident else THREADS


def _work(
    jobs: queue.SimpleQueue[Job | None], gather: Callable[[Ints], Batch], device: torch.device
) -> None:
    while (job := jobs.get()) is not None:
        rows, gathered = job
        if gathered.set_running_or_notify_cancel():
            try:
                use(device)
                gathered.set_result(gather(rows))
            except BaseException as error:  # noqa: BLE001 - raised again where the batch is taken
                gathered.set_exception(error)
        # A thread that waits for the next job must not keep this batch in memory.
        del job, rows, gathered


def _end(jobs: queue.SimpleQueue[Job | None], count: int) -> None:
    for _ in range(count):
        jobs.put(None)
