"""How long a training step waits for its batch, gathered on demand, by threads, or by a DataLoader.

    python benchmarks/feeding.py [--steps 300] [--repeats 3] [--step-ms 5] [--quick] [--json FILE]

The step is a stand-in that sleeps: like a GPU, it takes time and leaves the processor idle. Batches
have 32 texts, padded to the longest, or 128 colour images of 64 by 64 pixels. The DataLoader is set
up as its documentation advises: persistent processes, two batches in advance each, and a data set
that gathers a whole batch at once from the same arrays.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from tables import arguments, show
from trials.data.batching import Ints, Sequences
from trials.data.feed import Feed
from trials.data.order import BatchOrder
from trials.data.residence import Residence
from trials.data.samples import LABELS, Column, Padded, Samples
from trials.data.workload import Batch
from trials.devices.processes import Group
from trials.settings import Settings

SEED = 1


class Stored:
    """A workload without a model: samples in host memory that are sent to the device."""

    def __init__(self, samples: Samples, lengths: Ints, batch_size: int) -> None:
        self.samples, self.lengths, self.batch_size = samples, lengths, batch_size

    def batch(self, rows: Ints) -> Batch:
        """The batch with these samples."""
        return self.samples.batch(rows)

    def order(self) -> BatchOrder:
        """The order of its batches, the same for every contender."""
        return BatchOrder(self.lengths, Settings(batch_size=self.batch_size), SEED)


def texts(residence: Residence) -> Stored:
    """20,000 texts of 5 to 127 tokens."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 128, 20_000)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    tokens = Sequences(rng.integers(0, 30_000, offsets[-1]).astype(np.int32), offsets)
    labels = Column(residence, LABELS, rng.integers(0, 5, len(lengths)))
    parts = [Padded(residence, "input_ids", tokens, 0, "attention_mask"), labels]
    return Stored(Samples(residence, parts, parts[:1]), lengths, 32)


def images(residence: Residence) -> Stored:
    """8,000 images."""
    rng = np.random.default_rng(0)
    pixels = rng.integers(0, 256, (8_000, 64, 64, 3), dtype=np.uint8)
    parts = [
        Column(residence, "images", pixels),
        Column(residence, LABELS, np.arange(len(pixels)) % 10),
    ]
    return Stored(
        Samples(residence, parts),
        np.ones(len(pixels), np.int64),
        128,
    )


Batches = Callable[[Stored, int], Iterator[Any]]


def fed(threads: int) -> Batches:
    """hpsearch's own way: batches gathered by this many threads."""

    def batches(data: Stored, steps: int) -> Iterator[Batch]:
        order = data.order()
        feed = Feed(data, order, Group(), threads)  # type: ignore[arg-type]  # there is no model to train
        for step in range(steps):
            rows = order.rows(step)
            (part,), _ = feed.parts(rows, 1.0, len(rows), step)
            yield feed.batch(part)
        feed.close()

    return batches


class Gathered(Dataset[Batch]):
    """A data set that gathers whole batches."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples

    def __getitem__(self, rows: Ints) -> Batch:
        return self._samples.gather(rows)


def loaded(workers: int) -> Batches:
    """A DataLoader with this many processes, which gets the order of batches from a sampler."""

    def batches(data: Stored, steps: int) -> Iterator[Any]:
        order = data.order()
        rows = [order.rows(step) for step in range(steps)]
        more: dict[str, Any] = {
            "persistent_workers": True,
            "prefetch_factor": 2,
            "multiprocessing_context": "fork",
        }
        yield from DataLoader(
            Gathered(data.samples), batch_size=None, sampler=rows, num_workers=workers, **more
        )

    return batches


CONTENDERS = {
    "on demand": fed(0),
    "1 thread": fed(1),
    "2 threads": fed(2),
    "DataLoader, 1 process": loaded(1),
    "DataLoader, 2 processes": loaded(2),
}


def waits_ms(batches: Batches, data: Stored, steps: int, step_s: float) -> tuple[float, float]:
    """How long the first step waits, and the others on average."""
    waits, began = [], time.perf_counter()
    for _ in batches(data, steps):
        waits.append(time.perf_counter() - began)
        time.sleep(step_s)
        began = time.perf_counter()
    return waits[0] * 1000, statistics.fmean(waits[1:]) * 1000


def main() -> None:
    """Measure the contenders in turn, and print medians."""
    given = arguments(__doc__, {"steps": 20, "repeats": 1}, steps=300, repeats=3, step_ms=5.0)
    residence = Residence(torch.device("cpu"), resident=False)
    rows = []
    for name, data in (("texts", texts(residence)), ("images", images(residence))):
        found: dict[str, list[tuple[float, float]]] = {contender: [] for contender in CONTENDERS}
        for _ in range(given.repeats):
            for contender, batches in CONTENDERS.items():
                found[contender].append(waits_ms(batches, data, given.steps, given.step_ms / 1000))
        for contender, waits in found.items():
            first, others = (statistics.median(each) for each in zip(*waits, strict=True))
            rows.append(
                {"data": name, "gathered by": contender, "first_wait_ms": first, "wait_ms": others}
            )
    title = f"Waiting time for a batch, {given.steps} steps of {given.step_ms:g} ms"
    show(title, rows, given.json)


if __name__ == "__main__":
    main()
