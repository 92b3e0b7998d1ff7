"""The losses of validation and training as evidence beside the objective, where trials are not
trained in full.

Early in training an accuracy is coarse, and how well its rank and those of the losses predict the
end differs between workloads (docs/measured/recorded-curves.md). At a share s of the full budget
the value that counts is s y + (1 - s) (sum of w q). Here y is the objective, and q of each measure
is the objective that the trial would have if its rank by objective were its rank by this measure,
among all trials with a report at that share. The weights w add up to 1, and are proportional to
(2 c - 1)², where c is the share of pairs of trials whose order by the measure was their order by
objective later: Kendall's concordance, with `ASSUMED` as `ASSUMED_PAIRS` pairs.
"""

import bisect
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

Row = tuple[float, ...]
"""The objective that a trial reported at a share, then each of the losses there, NaN for one that
was not reported. All are minimised."""
ASSUMED = (0.75, 0.75, 0.65)
"""The concordance that is assumed of the objective and of the losses of validation and training."""
ASSUMED_PAIRS = 20.0  # how many pairs of trials that is worth
LEAST_TRIALS = 3  # with fewer trials at a share, ranks say nothing


def weights_of(pairs: Iterable[tuple[float, Row, float, float]]) -> tuple[float, ...]:
    """The weight of the objective and of each loss by how well they have predicted later values.

    Args:
        pairs: A share, the row there, a later share of the same trial, and its objective there.
    """
    concordant = np.multiply(ASSUMED, ASSUMED_PAIRS)
    counts = np.full(len(ASSUMED), ASSUMED_PAIRS)
    rows = [(share, later, *row, end) for share, row, later, end in pairs]
    if rows:
        shares, laters, *columns = np.array(rows).T
        one, other = np.triu_indices(len(rows), 1)
        together = (shares[one] == shares[other]) & (laters[one] == laters[other])
        one, other = one[together], other[together]
        with np.errstate(invalid="ignore"):  # two infinite losses
            *orders, later_order = (np.sign(each[one] - each[other]) for each in columns)
        agreement = np.array(orders) * later_order
        known = np.isfinite(agreement) & (later_order != 0)
        counts += known.sum(axis=1)
        concordance = (1 + agreement) / 2
        concordant += np.where(known, concordance, 0.0).sum(axis=1)
    squares = np.maximum(0.0, 2 * concordant / counts - 1) ** 2
    return tuple(squares.tolist())


class Blend:
    """The standings of one study's trials by objective and by losses."""

    def __init__(self) -> None:
        self._standings: defaultdict[tuple[float, int], tuple[list[float], list[float]]]
        self._standings = defaultdict(lambda: ([], []))
        """By share of the full budget and loss: objectives and losses of the trials that reported
        both, each ascending."""

    def enter(self, share: float, row: Row) -> None:
        """Count what a trial reported at a share of the full budget."""
        for standing, number in self._places(share, row):
            bisect.insort(standing, number)

    def leave(self, share: float, row: Row) -> None:
        """Take back an `enter`."""
        for standing, number in self._places(share, row):
            del standing[bisect.bisect_left(standing, number)]

    def value(self, share: float, row: Row, weights: Sequence[float]) -> float:
        """The value that counts for a trial that has entered at this share."""
        own, *losses = row
        total, weight = weights[0] * own, weights[0]
        for which, loss in enumerate(losses):
            values, known = self._standings[share, which]
            if len(known) < LEAST_TRIALS or math.isnan(loss):
                continue
            rank = bisect.bisect_left(known, loss)
            total += weights[1 + which] * values[rank]
            weight += weights[1 + which]
        mean = total / weight if weight else own
        return share * own + (1.0 - share) * mean

    def _places(self, share: float, row: Row) -> Iterable[tuple[list[float], float]]:
        own, *losses = row
        for which, loss in enumerate(losses):
            if math.isfinite(loss):
                values, known = self._standings[share, which]
                yield values, own
                yield known, loss
