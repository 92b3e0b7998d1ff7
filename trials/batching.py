"""Which samples make a batch, in which order, and how a batch is padded.

The order of an epoch is a pure function of (seed, epoch): a resumed run recomputes it and goes on at its batch.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from trials.randomness import Use, derive

Ints = npt.NDArray[np.integer]

CHUNK_BATCHES = 50
"""Length bucketing sorts inside chunks of this many batches: padding nearly as low as with a full sort, while
neighbours in a batch still change from epoch to epoch."""


def epoch_batches(lengths: Ints, batch_size: int, seed: int, epoch: int, bucketing: bool) -> list[Ints]:
    """The batches of one epoch: every sample exactly once, the smaller last part as a batch of its own.

    Args:
        lengths: Tokens of each sample, shape (n,).
        batch_size: Samples in a batch.
        seed: The trial's seed.
        epoch: The epoch's number, from 0.
        bucketing: Batch samples of similar length together. Samples are shuffled, sorted by length inside chunks,
            cut into batches, and the batches shuffled.

    Returns: ceil(n / batch_size) arrays of row numbers.
    """
    generator = np.random.default_rng(derive(seed, Use.ORDER, epoch))
    order = generator.permutation(len(lengths))
    if not bucketing:
        return _cut(order, batch_size)
    chunks = _cut(order, batch_size * CHUNK_BATCHES)
    batches = [b for chunk in chunks for b in _cut(chunk[np.argsort(lengths[chunk], kind="stable")], batch_size)]
    return [batches[i] for i in generator.permutation(len(batches))]


def token_batches(lengths: Ints, batch_tokens: int, seed: int, epoch: int, bucketing: bool) -> list[Ints]:
    """The batches of one epoch by a budget of tokens: every sample exactly once.

    Args:
        lengths: Tokens of each sample, shape (n,).
        batch_tokens: The most tokens and padding in a batch; a sample that is longer makes a batch of its own.
        seed, epoch, bucketing: As in `epoch_batches`.
    """
    generator = np.random.default_rng(derive(seed, Use.ORDER, epoch))
    order = generator.permutation(len(lengths))
    if not bucketing:
        return _fill(order, lengths, batch_tokens)
    samples = max(int(batch_tokens * len(lengths) / max(int(lengths.sum()), 1)), 1)
    chunks = _cut(order, samples * CHUNK_BATCHES)
    batches = [b for c in chunks for b in _fill(c[np.argsort(lengths[c], kind="stable")], lengths, batch_tokens)]
    return [batches[i] for i in generator.permutation(len(batches))]


def _fill(rows: Ints, lengths: Ints, batch_tokens: int) -> list[Ints]:
    """`rows` cut, in their order, wherever one more would make a padded batch exceed the budget."""
    cuts, begin, longest = [], 0, 0
    for place, length in enumerate(lengths[rows].tolist()):
        longest = max(longest, length)
        if place > begin and (place - begin + 1) * longest > batch_tokens:
            cuts.append(place)
            begin, longest = place, length
    return list(np.split(rows, cuts))


def longest_batch(lengths: Ints, batch_size: int) -> Ints:
    """The rows that need the most memory together: the longest ones."""
    return np.argsort(-lengths, kind="stable")[:batch_size]


def micro_batches(rows: Ints, micro_batch: int | None) -> list[Ints]:
    """A batch cut into what goes through one forward pass; the last part may be smaller."""
    return [rows] if micro_batch is None else _cut(rows, micro_batch)


def _cut(rows: Ints, size: int) -> list[Ints]:
    return [rows[start : start + size] for start in range(0, len(rows), size)]


@dataclass(frozen=True)
class Sequences:
    """Token sequences of different lengths, flat: pickles without copies and is shared between processes.

    Args:
        tokens: All sequences one after the other, int32, shape (total,).
        offsets: Where each begins, and the end of the last, int64, shape (n + 1,).
    """

    tokens: npt.NDArray[np.int32]
    offsets: npt.NDArray[np.int64]

    @staticmethod
    def of(rows: list[list[int]]) -> Sequences:
        """Flatten lists of token numbers."""
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=offsets[1:])
        tokens = np.fromiter((t for row in rows for t in row), dtype=np.int32, count=int(offsets[-1]))
        return Sequences(tokens, offsets)

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """Tokens of each sequence, shape (n,)."""
        return np.diff(self.offsets)

    def padded(self, rows: Ints, padding: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The sequences of `rows`, padded on the right to the longest of them.

        Returns: Tokens and attention mask (1 for tokens, 0 for padding), both fresh arrays of shape (rows, longest).
        """
        starts = self.offsets[rows]
        lengths = self.offsets[rows + 1] - starts
        columns = np.arange(int(lengths.max()))
        mask = columns < lengths[:, None]
        places = np.where(mask, starts[:, None] + columns, 0)
        return np.where(mask, self.tokens[places], padding).astype(np.int64), mask.astype(np.int64)
