"""The order of a run: which samples its next step trains, and how many epochs it has gone.

The order is a function of the trial's seed and of where the run stands (steps and samples), and holds no state but the
epochs it has worked out last: a resumed run goes on at the very batch.
"""

from __future__ import annotations

import math

import numpy as np

from trials.batching import Ints, epoch_batches, longest_batch, token_batches
from trials.settings import Settings


class Order:
    """The batches of a run, by samples (`batch_size`) or by tokens (`batch_tokens`).

    Args:
        lengths: Tokens of each sample, shape (n,).
        settings: What a batch is.
        seed: The trial's seed.
    """

    def __init__(self, lengths: Ints, settings: Settings, seed: int) -> None:
        self._lengths, self._settings, self._seed = lengths, settings, seed
        self._steps_per_epoch = math.ceil(len(lengths) / settings.batch_size)
        self._epochs: dict[int, tuple[list[Ints], Ints]] = {}

    def rows(self, step: int, samples: int) -> Ints:
        """The batch of a run that has taken so many steps on so many samples."""
        if self._settings.batch_tokens is None:
            epoch, index = divmod(step, self._steps_per_epoch)
            return self._batches(epoch)[0][index]
        epoch, behind = divmod(samples, len(self._lengths))
        batches, begins = self._batches(epoch)
        return batches[int(np.searchsorted(begins, behind))]

    def epochs(self, steps: int, samples: int) -> float:
        """How many epochs so many steps on so many samples are: counted in steps where all are of one size."""
        if self._settings.batch_tokens is None:
            return steps / self._steps_per_epoch
        return samples / len(self._lengths)

    def longest(self) -> Ints:
        """The rows of a batch that needs as much memory as any."""
        settings = self._settings
        size = settings.batch_size
        if settings.batch_tokens is not None:
            size = max(settings.batch_tokens // int(self._lengths.max()), 1)
        return longest_batch(self._lengths, size)

    def _batches(self, epoch: int) -> tuple[list[Ints], Ints]:
        """The batches of an epoch, and how many of its samples come before each."""
        if epoch not in self._epochs:
            lengths, settings = self._lengths, self._settings
            if settings.batch_tokens is None:
                batches = epoch_batches(lengths, settings.batch_size, self._seed, epoch, settings.bucketing)
            else:
                batches = token_batches(lengths, settings.batch_tokens, self._seed, epoch, settings.bucketing)
            sizes = [len(batch) for batch in batches]
            # Two of them: batches of the next epoch are gathered before this one ends.
            last = dict(list(self._epochs.items())[-1:])
            self._epochs = {**last, epoch: (batches, np.cumsum([0, *sizes[:-1]]))}
        return self._epochs[epoch]


def most_samples(lengths: Ints, settings: Settings) -> int:
    """The most samples that a batch can have."""
    if settings.batch_tokens is None:
        return settings.batch_size
    return max(settings.batch_tokens // max(int(lengths.min()), 1), 1)
