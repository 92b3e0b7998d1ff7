"""Validation loss as evidence beside the objective, where trials are not trained in full.

Early in training an accuracy is coarse. Measured on recorded curves (docs/recorded-curves.md), the
mean of the two ranks foretells the end about as well as the better of the two on every workload.

At a share s of the full budget the value that counts is (1 - w) y + w q, with w = (1 - s) / 2. Here
y is the objective, and q the objective that the trial would have if its rank by objective were its
rank by loss, among all trials with a report at that share.
"""

from __future__ import annotations

import bisect
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

MOST = 0.5
"""The weight of the loss at the very beginning."""
LEAST_TRIALS = 3
"""With fewer trials at a share, ranks say nothing."""


@dataclass
class _Standing:
    values: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)


class LossBlend:
    """The standings of one study by objective and by validation loss. All values are minimised."""

    def __init__(self) -> None:
        self._standings: defaultdict[float, _Standing] = defaultdict(_Standing)

    def enter(
        self, shares: Sequence[float], values: Sequence[float], losses: Sequence[float]
    ) -> None:
        """A trial takes part wherever it has a loss that is a number.

        Args:
            shares: Of the full budget.
            values: (shares,) The objective there.
            losses: (shares,) The validation loss there; NaN where there is none.
        """
        for share, value, loss in zip(shares, values, losses, strict=True):
            if math.isfinite(loss):
                standing = self._standings[share]
                bisect.insort(standing.values, value)
                bisect.insort(standing.losses, loss)

    def leave(
        self, shares: Sequence[float], values: Sequence[float], losses: Sequence[float]
    ) -> None:
        """Take back what `enter` was given."""
        for share, value, loss in zip(shares, values, losses, strict=True):
            if math.isfinite(loss):
                standing = self._standings[share]
                _remove(standing.values, value)
                _remove(standing.losses, loss)

    def value(self, share: float, value: float, loss: float) -> float:
        """The value that counts of a trial that has entered at this share."""
        standing = self._standings[share]
        if not math.isfinite(loss) or len(standing.losses) < LEAST_TRIALS:
            return value
        weight = MOST * (1.0 - share)
        rank = bisect.bisect_left(standing.losses, loss)
        return (1.0 - weight) * value + weight * standing.values[rank]


def _remove(ascending: list[float], number: float) -> None:
    place = bisect.bisect_left(ascending, number)
    del ascending[place]
