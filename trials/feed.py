"""The micro-batches of a run, gathered ahead of the steps that train them.

Where samples do not lie on the device, threads gather the next micro-batches while the device trains this one. Which
those are follows from where the run stands (`trials.order`), so that nothing is drawn for them and nothing is saved.
The line is a guess all the same, and checked against the rows that a step asks for: where the guess was wrong, as after
a micro-batch was halved for want of memory, the batches in line are lost, and never a result.

Threads and not processes (a DataLoader's, say), because torch gathers flat arrays without holding the interpreter's
lock: a batch need not be sent from one process to another, nothing is forked, and no thread outlives the process.
"""

from __future__ import annotations

import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Protocol, runtime_checkable

import numpy as np
import torch

from trials.batching import Ints, micro_batches
from trials.distributed import Group
from trials.order import Order
from trials.residence import Residence
from trials.samples import Samples
from trials.workload import Batch, Workload

AUTO = "auto"
THREADS = 1
"""What auto means: `benchmarks/feeding.py` finds that a step then waits as little as with more."""
AHEAD = 2
"""Micro-batches in line for each thread: one being made, and one that is ready."""
PATIENCE_S = 300.0
"""How long a step waits for its batch. A gather takes milliseconds; one that reads a mapped file over a network that
has stalled may take minutes, and beyond this it is given up."""
GRACE_S = 1.0
"""How long closing waits for a thread that is still gathering."""

Gathered = Future[Batch]
Job = tuple[Ints, Gathered]


class FeedError(Exception):
    """No batch came: a thread that gathers batches hangs."""


@runtime_checkable
class Sampled(Protocol):
    """A workload whose training batches are those of its samples: `batch` is `samples.batch`."""

    samples: Samples


class Feed:
    """The training batches of one run.

    Args:
        workload: What makes batches.
        order: Which samples a step trains.
        group: The processes that share a batch.
        asked: The setting `data_workers`: a number of threads, or `AUTO`.
        patience_s: How long a step waits for a batch.
    """

    def __init__(
        self, workload: Workload, order: Order, group: Group, asked: int | str, patience_s: float = PATIENCE_S
    ) -> None:
        self._workload, self._order, self._group = workload, order, group
        self._line: Line | None = None
        if isinstance(workload, Sampled) and (count := threads_for(asked, workload.samples.residence)):
            self._line = Line(workload.samples, count, patience_s)

    def parts(self, rows: Ints, weight: float, size: int, step: int, samples: int) -> tuple[list[Ints], float]:
        """This process's micro-batches of a step, and what to divide the sums of their losses by.

        Args:
            rows: The samples of the whole batch.
            weight: Its targets.
            size: Samples in a micro-batch.
            step, samples: How far the run is.
        """
        mine, weight = self._group.share(rows, weight)
        parts = micro_batches(mine, size)
        if self._line is not None and not self._line.next_is(parts[0]):
            self._line.follow(self._course(step, samples, size))
        return parts, weight

    def _course(self, step: int, samples: int, size: int) -> Iterator[Ints]:
        """The micro-batches of a run that has come so far and goes on undisturbed, without an end."""
        while True:
            rows = self._order.rows(step, samples)
            mine, _ = self._group.share(rows, 1.0)
            yield from micro_batches(mine, size)
            step, samples = step + 1, samples + len(rows)

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
    """Batches that threads gather in order, a few at a time.

    Args:
        samples: What batches are made of.
        count: How many threads.
        patience_s: How long `take` waits.
    """

    def __init__(self, samples: Samples, count: int, patience_s: float) -> None:
        self._samples, self._patience_s = samples, patience_s
        self._most = count * AHEAD
        self._course: Iterator[Ints] = iter(())
        self._waiting: deque[Job] = deque()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        work = (self._jobs, samples.gather, samples.residence.device)  # not this object, which ends them when it goes
        self._threads = [threading.Thread(target=_work, args=work, name="feed", daemon=True) for _ in range(count)]
        self._end = weakref.finalize(self, _end, self._jobs, count)
        for thread in self._threads:
            thread.start()

    def next_is(self, rows: Ints) -> bool:
        """Whether the first batch in line is that of `rows`."""
        return bool(self._waiting) and np.array_equal(self._waiting[0][0], rows)

    def follow(self, course: Iterator[Ints]) -> None:
        """Leave what is in line, and gather the batches of `course`."""
        self._leave()
        self._course = course
        self._fill()

    def _leave(self) -> None:
        for _, gathered in self._waiting:
            gathered.cancel()
        self._waiting.clear()

    def _fill(self) -> None:
        while len(self._waiting) < self._most and (rows := next(self._course, None)) is not None:
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
            if gathered.done():  # gathering it has timed out by itself
                raise
            what = f"a batch of {len(rows)} samples was not gathered within {self._patience_s:g} s"
            remedy = "see whether the storage of HPSEARCH_CACHE has stalled, or set data_workers to 0"
            raise FeedError(f"{what}; {remedy}") from None
        return self._samples.deliver(batch)

    def close(self) -> bool:
        """End the threads; whether they have ended."""
        self._leave()
        self._end()
        for thread in self._threads:
            thread.join(GRACE_S)
        return not any(thread.is_alive() for thread in self._threads)


def threads_for(asked: int | str, residence: Residence) -> int:
    """How many threads gather samples that lie there: none of those on a GPU, which need no time of the CPU's.

    Args:
        asked: A number, or `AUTO`, which on the CPU is none either: there they would take turns with the training.
        residence: Where the samples lie.
    """
    if residence.resident and residence.device.type != "cpu":
        return 0
    if isinstance(asked, int):
        return asked
    return 0 if residence.resident else THREADS


def _work(jobs: queue.SimpleQueue[Job | None], gather: Callable[[Ints], Batch], device: torch.device) -> None:
    """Gather one batch after the other, until there is a None among the jobs."""
    while (job := jobs.get()) is not None:
        rows, gathered = job
        if gathered.set_running_or_notify_cancel():
            try:
                _use(device)
                gathered.set_result(gather(rows))
            except BaseException as error:  # noqa: BLE001 - raised again where the batch is taken
                gathered.set_exception(error)
        del job, rows, gathered  # while it waits for the next one, the batch is not its own


def _use(device: torch.device) -> None:
    """Make a GPU this thread's own: pinned memory belongs to the one that the thread uses, by default the first."""
    if device.type == "cuda" and device.index is not None:
        torch.cuda.set_device(device)


def _end(jobs: queue.SimpleQueue[Job | None], count: int) -> None:
    for _ in range(count):
        jobs.put(None)
