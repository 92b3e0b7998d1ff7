"""The order of a run's batches: a function of the trial's seed and of the step."""

import math

from trials.data.batching import Ints, Lengths, epoch_batches, longest_batch
from trials.settings import Settings


class BatchOrder:
    """The batches of a run, by its settings `batch_size` and `bucketing` and its trial's seed."""

    def __init__(self, lengths: Lengths, settings: Settings, seed: int) -> None:
        self._lengths = lengths
        self._batch_size = settings.batch_size
        self._bucketing = settings.bucketing
        self._seed = seed
        self._steps_per_epoch = math.ceil(len(lengths) / settings.batch_size)
        self._begun = -1
        self._batches: list[Ints] = []

    def rows(self, step: int) -> Ints:
        epoch, index = divmod(step, self._steps_per_epoch)
        if epoch != self._begun:
            self._begun = epoch
            self._batches = epoch_batches(
                self._lengths, self._batch_size, self._seed, epoch, self._bucketing
            )
        return self._batches[index]

    def epochs(self, steps: int) -> float:
        return steps / self._steps_per_epoch

    def longest(self) -> Ints:
        return longest_batch(self._lengths, self._batch_size)
