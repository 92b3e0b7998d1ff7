"""The layout of a packed batch, in which several short samples share a row."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trials.data.batching import Ints

TRIED = 4
"""Numbers of rows to try."""

Cells = npt.NDArray[np.int64]


def bins(lengths: Ints, capacity: int) -> list[Ints]:
    """Share samples out among rows so that the rows, padded to the longest, have few cells.

    They never have more than one sample in each row would have. Each sample, the longest first,
    goes to the row with the fewest tokens (Graham 1969). The smallest number of rows that do not
    overflow is tried, and a few more, because more rows may be shorter. Returns the numbers of the
    samples of each row.

    Args:
        lengths: Tokens of each sample, shape (n,); n is at least 1.
        capacity: The most tokens in a row, raised to the longest sample.
    """
    capacity = max(capacity, int(lengths.max()))
    order = np.argsort(-lengths, kind="stable").tolist()
    tokens = int(lengths.sum())
    count = max(math.ceil(tokens / capacity), 1)
    found: list[list[Ints]] = []
    while len(found) < TRIED and count < len(lengths):
        rows = _shared_out(lengths, order, count)
        if _longest(lengths, rows) <= capacity:
            found.append(rows)
        count += 1
    one_in_each = [np.array([sample]) for sample in order]
    found.append(one_in_each)
    return min(found, key=lambda rows: len(rows) * _longest(lengths, rows))


def _longest(lengths: Ints, rows: list[Ints]) -> int:
    totals = [int(lengths[row].sum()) for row in rows]
    return max(totals)


def _shared_out(lengths: Ints, order: list[int], count: int) -> list[Ints]:
    """The samples in `count` rows; there are at least as many samples, so that no row is empty."""
    rows: list[list[int]] = [[] for _ in range(count)]
    heap = [(0, row) for row in range(count)]
    for sample in order:
        used, row = heap[0]
        length = int(lengths[sample])
        heapq.heapreplace(heap, (used + length, row))
        rows[row].append(sample)
    return [np.array(row, dtype=np.int64) for row in rows]


@dataclass(frozen=True)
class Layout:
    """The cells of a packed batch, and the tokens in them.

    Args:
        shape: Rows and columns of the batch.
        cells: The row and the column of every token, each of shape (tokens,).
        places: Indices of these tokens in the flat array of all sequences, shape (tokens,).
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
        """The layout of some samples. `offsets`: the beginning of each sequence, and the end of the
        last, shape (n + 1,)."""
        lengths_asked = offsets[rows + 1] - offsets[rows]
        shared_out = bins(lengths_asked, capacity)
        sizes = [len(samples) for samples in shared_out]
        # From here on, one entry for each sample in the order of its row and of its place there.
        order = rows[np.concatenate(shared_out)]
        lengths = offsets[order + 1] - offsets[order]
        row = np.repeat(np.arange(len(sizes)), sizes)
        begins = np.cumsum([0, *sizes[:-1]])
        firsts = np.repeat(begins, sizes)  # the first sample of its row
        before = np.cumsum(lengths) - lengths  # the tokens of all samples before it
        columns = before - before[firsts]
        numbers = np.arange(len(order)) - firsts + 1
        # And from here on, one entry for each token.
        total = int(lengths.sum())
        positions = np.arange(total) - np.repeat(before, lengths)
        rows_of = np.repeat(row, lengths)
        columns_of = np.repeat(columns, lengths) + positions
        longest = int((columns + lengths).max())
        return Layout(
            shape=(len(sizes), longest),
            cells=(rows_of, columns_of),
            places=np.repeat(offsets[order], lengths) + positions,
            positions=positions,
            numbers=np.repeat(numbers, lengths),
        )

    def filled(self, values: npt.NDArray[np.integer], padding: int) -> Cells:
        """A value for each token, in its cell; `padding` in all others: shape `shape`."""
        array = np.full(self.shape, padding, dtype=np.int64)
        array[self.cells] = values
        return array
