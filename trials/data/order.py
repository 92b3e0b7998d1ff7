"""The order of a run: which samples its next step trains, and how many epochs it has trained.

The order is a function of the trial's seed and of where the run is (steps and samples). It has no
state except the epochs that it computed last, so a resumed run continues at the same batch.
"""

from __future__ import annotations

import math

import numpy as np

from trials.data.batching import (
    Ints,
    costliest_batch,
    epoch_batches,
    longest_batch,
    token_batches,
    totals,
)
from trials.settings import Settings


class BatchOrder:
    """The batches of a run, by samples (`batch_size`) or by tokens (`batch_tokens`).

    Args:
        lengths: Tokens of each sample, shape (n,), or of each of its parts, shape (n, parts).
        settings: What a batch is.
        seed: The trial's seed.
    """

    def __init__(self, lengths: Ints, settings: Settings, seed: int) -> None:
        self._lengths = lengths
        self._settings = settings
        self._seed = seed
        self._steps_per_epoch = math.ceil(len(lengths) / settings.batch_size)
        self._epochs: dict[int, tuple[list[Ints], Ints]] = {}

    def rows(self, step: int, samples: int) -> Ints:
        """The batch of a run that has taken so many steps on so many samples."""
        if self._settings.batch_tokens is None:
            epoch, index = divmod(step, self._steps_per_epoch)
            batches, _ = self._epoch(epoch)
            return batches[index]
        epoch, before = divmod(samples, len(self._lengths))
        batches, begins = self._epoch(epoch)
        index = int(np.searchsorted(begins, before))
        return batches[index]

    def epochs(self, steps: int, samples: int) -> float:
        """How many epochs so many steps on so many samples are.

        Steps are counted where all batches have one size, and samples where they have not.
        """
        if self._settings.batch_tokens is None:
            return steps / self._steps_per_epoch
        return samples / len(self._lengths)

    def step_at(self, steps: int, samples: int) -> int:
        """The step at which a run of this order has come as far through its epochs as one of
        another order, after so many steps on so many samples."""
        if self._settings.batch_tokens is not None:
            return steps
        epochs, batches = divmod(steps, self._steps_per_epoch)
        here = epochs * len(self._lengths) + batches * self._settings.batch_size
        if samples == here:
            return steps
        return round(samples / len(self._lengths) * self._steps_per_epoch)

    def longest(self) -> Ints:
        """The rows of a batch that costs as much as any."""
        settings = self._settings
        if settings.batch_tokens is not None:
            return costliest_batch(self._lengths, settings.batch_tokens)
        return longest_batch(self._lengths, settings.batch_size)

    def _epoch(self, epoch: int) -> tuple[list[Ints], Ints]:
        if epoch in self._epochs:
            return self._epochs[epoch]
        batches = self._batches(epoch)
        sizes = [len(batch) for batch in batches]
        begins = np.cumsum([0, *sizes[:-1]])
        found = batches, begins
        # Two epochs are held: batches of the next one are gathered before this one ends.
        last = dict(list(self._epochs.items())[-1:])
        self._epochs = {**last, epoch: found}
        return found

    def _batches(self, epoch: int) -> list[Ints]:
        lengths, settings, seed = self._lengths, self._settings, self._seed
        bucketing = settings.bucketing
        if settings.batch_tokens is None:
            return epoch_batches(lengths, settings.batch_size, seed, epoch, bucketing)
        return token_batches(lengths, settings.batch_tokens, seed, epoch, bucketing)


def most_samples(lengths: Ints, settings: Settings) -> int:
    """The most samples that a batch can have."""
    if settings.batch_tokens is None:
        return settings.batch_size
    shortest = max(int(totals(lengths).min()), 1)
    return max(settings.batch_tokens // shortest, 1)


def usual_samples(lengths: Ints, settings: Settings) -> float:
    """The samples in a batch: `batch_size`, or as many of mean length as `batch_tokens` allow."""
    if settings.batch_tokens is None:
        return float(settings.batch_size)
    tokens = max(int(lengths.sum()), 1)
    usual = settings.batch_tokens * len(lengths) / tokens
    return max(usual, 1.0)
