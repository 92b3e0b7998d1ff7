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
        self._epochs: dict[int, list[Ints]] = {}

    def rows(self, step: int) -> Ints:
        epoch, index = divmod(step, self._steps_per_epoch)
        return self._epoch(epoch)[index]

    def epochs(self, steps: int) -> float:
        return steps / self._steps_per_epoch

    def longest(self) -> Ints:
        return longest_batch(self._lengths, self._batch_size)

    def _epoch(self, epoch: int) -> list[Ints]:
        if epoch not in self._epochs:
            batches = epoch_batches(
                self._lengths, self._batch_size, self._seed, epoch, self._bucketing
            )
            # Two epochs are held: batches of the next one are gathered before this one ends.
            last = dict(list(self._epochs.items())[-1:])
            self._epochs = {**last, epoch: batches}
        return self._epochs[epoch]
