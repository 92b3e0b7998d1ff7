"""The batches of an epoch, the longest batch, and token sequences of different lengths.

The order of an epoch is a pure function of (seed, epoch). A resumed run computes it again, and
continues at its batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from trials.running.randomness import Use, derive

Ints = npt.NDArray[np.integer]  # integers, such as the numbers of rows
Lengths = Ints  # tokens of each sample, shape (n,), or of each of its parts, shape (n, parts)
CHUNK_BATCHES = 50
"""Length bucketing sorts inside chunks of this many batches. There is nearly as little padding as
with a full sort, and the samples that share a batch still change from epoch to epoch."""
ATTENTION_LENGTH = 435
"""The length of a row whose attention takes as much memory as everything else in a layer. A layer
has 34 numbers for each feature, and 5 in each head for each pair of tokens (Korthikanti et al.
2022, arXiv 2205.05198), with heads of 64 features."""


def parts_of(lengths: Lengths) -> Ints:
    """Tokens of each part of each sample, shape (n, parts). Each part of a sample, such as a source
    or a target, is padded to the longest in the batch."""
    if lengths.ndim == 1:
        return lengths[:, None]
    return lengths


def totals(lengths: Lengths) -> Ints:
    """Tokens of each sample, shape (n,)."""
    found: Ints = parts_of(lengths).sum(axis=1)
    return found


def epoch_batches(
    lengths: Lengths, batch_size: int, seed: int, epoch: int, bucketing: bool
) -> list[Ints]:
    """The batches of one epoch: every sample once, and an incomplete batch for the rest. Returns
    ceil(n / batch_size) arrays of row numbers.

    Args:
        epoch: From 0.
        bucketing: Whether samples of similar length share a batch. Then samples are shuffled,
            sorted by length inside chunks and cut into batches, and the batches are shuffled.
    """
    generator = np.random.default_rng(derive(seed, Use.ORDER, epoch))
    order = generator.permutation(len(lengths))
    if not bucketing:
        return cut(order, batch_size)
    of_samples = totals(lengths)
    batches: list[Ints] = []
    for chunk in cut(order, batch_size * CHUNK_BATCHES):
        shortest_first = np.argsort(of_samples[chunk], kind="stable")
        batches += cut(chunk[shortest_first], batch_size)
    shuffled = generator.permutation(len(batches))
    return [batches[number] for number in shuffled]


def cost(rows: Ints | int, longest: Ints) -> npt.NDArray[np.float64]:
    """The cost of batches, in tokens of rows so short that their attention costs nothing. `rows`:
    rows of each batch, shape (...). `longest`: the longest of each part in them, shape (...,
    parts)."""
    of_parts = longest * (1 + longest / ATTENTION_LENGTH)
    found: npt.NDArray[np.float64] = rows * of_parts.sum(axis=-1)
    return found


def longest_batch(lengths: Lengths, batch_size: int) -> Ints:
    """The rows that cost most together: one with the longest of each part, then the longest."""
    parts = parts_of(lengths)
    longest_first = np.argsort(-cost(1, parts), kind="stable")[:batch_size]
    if batch_size == 1:
        return longest_first
    extremes = parts.argmax(axis=0)
    different = dict.fromkeys([*extremes, *longest_first])
    return np.array(list(different), dtype=np.int64)[:batch_size]


def cut(rows: Ints, size: int) -> list[Ints]:
    """Rows in parts of `size`; the last may be smaller."""
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@dataclass(frozen=True)
class Sequences:
    """Token sequences of different lengths, flat: they pickle without copies."""

    tokens: npt.NDArray[np.int32]  # all sequences one after the other, int32, shape (total,)
    offsets: npt.NDArray[np.int64]
    """The beginning of each, and the end of the last, int64, shape (n + 1,)."""

    @staticmethod
    def of(rows: list[list[int]]) -> Sequences:
        lengths = [len(row) for row in rows]
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        total = int(offsets[-1])
        every_token = chain.from_iterable(rows)
        tokens = np.fromiter(every_token, dtype=np.int32, count=total)
        return Sequences(tokens, offsets)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each sequence, shape (n,)."""
        return np.diff(self.offsets)

    def row(self, number: int) -> npt.NDArray[np.int32]:
        begin, end = self.offsets[number], self.offsets[number + 1]
        return self.tokens[begin:end]
