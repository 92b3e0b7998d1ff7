"""A short ladder of padded lengths, so that the shapes of batches repeat.

Each batch is padded to the next rung. The rungs are as few as add at most `GROWTH`, and those of
them that add the least. Where `MOST_RUNGS` would add more, the ladder ends below the longest
batches, which keep their own lengths.
"""

import numpy as np
import numpy.typing as npt

from trials.data.batching import Ints, epoch_batches

MOST_RUNGS = 8
GROWTH = 0.1  # the padding that a ladder may add, as a share of the cells without it
MOST_SAMPLES = 20_000  # samples whose lengths are looked at


def of_training(lengths: Ints, batch_size: int, bucketing: bool, most: int = MOST_RUNGS) -> Ints:
    """The ladder of the batches of epochs. Returns rising lengths. `lengths`: tokens of each
    sample, shape (n,). `most`: rungs."""
    some = lengths
    if len(lengths) > MOST_SAMPLES:
        some = np.random.default_rng(0).choice(lengths, MOST_SAMPLES, replace=False)
    batches = epoch_batches(some, batch_size, seed=0, epoch=0, bucketing=bucketing)
    longest = [int(some[rows].max()) for rows in batches]
    return rungs(np.array([*longest, lengths.max()]), most)


def of_evaluation(lengths: Ints, batch_size: int, most: int = MOST_RUNGS) -> Ints:
    """The ladder of batches of samples that are sorted by length."""
    longest_first = np.sort(lengths)[::-1]
    return rungs(longest_first[::batch_size], most)


def rungs(longest: Ints, most: int = MOST_RUNGS) -> Ints:
    """The ladder of batches whose longest samples have these lengths, shape (batches,)."""
    values, counts = np.unique(longest, return_counts=True)
    padding = _padding(values, counts)
    allowed = GROWTH * np.cumsum(values * counts)
    # The least padding of the values up to each, by so many rungs, and the value before the last.
    least = padding[0]
    splits: list[npt.NDArray[np.intp]] = []
    while least[-1] > allowed[-1] and len(splits) + 1 < most:
        total = least[:-1, None] + padding[1:]
        place = np.arange(len(values))
        total[place[:-1, None] >= place] = np.inf
        splits.append(total.argmin(axis=0))
        least = np.minimum(least, total.min(axis=0))
    places = [int(np.flatnonzero(least <= allowed)[-1])]
    for split in reversed(splits):
        if places[0] > 0:
            places.insert(0, int(split[places[0]]))
    return values[sorted(set(places))]


def _padding(values: Ints, counts: Ints) -> npt.NDArray[np.float64]:
    """The padding of batches from one value up to another under one rung, shape (n, n)."""
    batches = np.concatenate([[0], np.cumsum(counts)])
    cells = np.concatenate([[0], np.cumsum(values * counts)])
    covered = batches[None, 1:] - batches[:-1, None]
    filled = cells[None, 1:] - cells[:-1, None]
    padding: npt.NDArray[np.float64] = (values[None, :] * covered - filled).astype(np.float64)
    return padding


def fitted(ladder: Ints, longest: int) -> int | None:
    """The rung for a batch whose longest sample has so many tokens; None above the ladder."""
    place = int(np.searchsorted(ladder, longest))
    return int(ladder[place]) if place < len(ladder) else None
