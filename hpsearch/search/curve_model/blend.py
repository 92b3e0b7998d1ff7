"""Validation loss as evidence beside the objective, where trials are not trained in full.

Early in training an accuracy is coarse. Measured on recorded curves (docs/recorded-curves.md), the
mean of the two ranks foretells the end about as well as the better of the two on every workload.

At a share s of the full budget the value that counts is (1 - w) y + w q, with w = (1 - s) / 2. Here
y is the objective, and q the objective that the trial would have if its rank by objective were its
rank by loss, among all trials with a report at that share.
"""

from __future__ import annotations

import bisect
from collections import defaultdict

MOST = 0.5
"""The weight of the loss at the very beginning."""
LEAST_TRIALS = 3
"""With fewer trials at a share, ranks say nothing."""


class LossBlend:
    """The standings of one study by objective and by validation loss. All values are minimised."""

    def __init__(self) -> None:
        self._values: defaultdict[float, list[float]] = defaultdict(list)
        self._losses: defaultdict[float, list[float]] = defaultdict(list)
        """By share of the full budget, ascending."""

    def enter(self, share: float, value: float, loss: float) -> None:
        """Count a trial's objective and validation loss at a share of the full budget."""
        bisect.insort(self._values[share], value)
        bisect.insort(self._losses[share], loss)

    def leave(self, share: float, value: float, loss: float) -> None:
        """Take back an `enter`."""
        for known, gone in ((self._values[share], value), (self._losses[share], loss)):
            del known[bisect.bisect_left(known, gone)]

    def value(self, share: float, value: float, loss: float) -> float:
        """The value that counts for a trial that has entered at this share."""
        losses = self._losses[share]
        if len(losses) < LEAST_TRIALS:
            return value
        weight = MOST * (1.0 - share)
        rank = bisect.bisect_left(losses, loss)
        return (1.0 - weight) * value + weight * self._values[share][rank]
