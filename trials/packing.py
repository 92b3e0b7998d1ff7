"""Where the tokens of short samples lie that share the rows of a batch, so that few of its cells are no tokens."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trials.batching import Ints

TRIED = 4
"""How many numbers of rows are tried."""

Cells = npt.NDArray[np.int64]


def bins(lengths: Ints, capacity: int) -> list[Ints]:
    """Samples shared out among rows, so that the rows, padded to the longest, have few cells: never more than the
    samples have, padded one a row.

    Each sample, the longest first, goes to the row with the fewest tokens (Graham 1969). The fewest rows of which none
    overflows are tried, and a few more, since more rows may be shorter.

    Args:
        lengths: Tokens of each sample, shape (n,); n is at least 1.
        capacity: The most tokens in a row; that of the longest sample where this is more.

    Returns: For each row, the numbers of its samples.
    """
    capacity = max(capacity, int(lengths.max()))
    order = np.argsort(-lengths, kind="stable").tolist()
    count = max(math.ceil(int(lengths.sum()) / capacity), 1)
    found: list[list[Ints]] = []
    while len(found) < TRIED and count < len(lengths):
        rows = _shared_out(lengths, order, count)
        if max(int(lengths[row].sum()) for row in rows) <= capacity:
            found.append(rows)
        count += 1
    found.append([np.array([sample]) for sample in order])
    return min(found, key=lambda rows: len(rows) * max(int(lengths[row].sum()) for row in rows))


def _shared_out(lengths: Ints, order: list[int], count: int) -> list[Ints]:
    """The samples in so many rows, of which none is empty: there are at least as many samples."""
    rows: list[list[int]] = [[] for _ in range(count)]
    heap = [(0, row) for row in range(count)]
    for sample in order:
        used, row = heap[0]
        heapq.heapreplace(heap, (used + int(lengths[sample]), row))
        rows[row].append(sample)
    return [np.array(row, dtype=np.int64) for row in rows]


@dataclass(frozen=True)
class Layout:
    """Which cell of a packed batch holds which token of which sample.

    Args:
        shape: Rows and columns of the batch.
        cells: The row and the column of every token, each of shape (tokens,).
        places: Where each of these tokens is found in the flat array of all sequences, shape (tokens,).
        positions: The place of each in its sample, from 0, shape (tokens,).
        numbers: The number of its sample in its row, from 1, shape (tokens,).
    """

    shape: tuple[int, int]
    cells: tuple[Cells, Cells]
    places: Cells
    positions: Cells
    numbers: Cells

    @staticmethod
    def of(offsets: Ints, rows: Ints, capacity: int) -> Layout:
        """The layout of some samples.

        Args:
            offsets: Where each of all sequences begins, and the end of the last, shape (n + 1,).
            rows: The samples, shape (batch,).
            capacity: The most tokens in a row.
        """
        shared_out = bins(offsets[rows + 1] - offsets[rows], capacity)
        order = rows[np.concatenate(shared_out)]
        lengths = offsets[order + 1] - offsets[order]
        sizes = [len(samples) for samples in shared_out]
        firsts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)  # of each sample's row, as a place in `order`
        before = np.cumsum(lengths) - lengths
        columns, numbers = before - before[firsts], np.arange(len(order)) - firsts + 1
        positions = np.arange(int(lengths.sum())) - np.repeat(before, lengths)
        return Layout(
            shape=(len(sizes), int((columns + lengths).max())),
            cells=(
                np.repeat(np.repeat(np.arange(len(sizes)), sizes), lengths),
                np.repeat(columns, lengths) + positions,
            ),
            places=np.repeat(offsets[order], lengths) + positions,
            positions=positions,
            numbers=np.repeat(numbers, lengths),
        )

    def filled(self, values: npt.NDArray[np.integer], padding: int) -> Cells:
        """A value for each token, in its cell; `padding` in all others: shape `shape`."""
        array = np.full(self.shape, padding, dtype=np.int64)
        array[self.cells] = values
        return array
