"""The evidence that the mean of paired differences is above a value, valid at any time.

The evidence is a Bayes factor: that of a mean above `beyond`, in standard deviations half-normal
with scale `SCALE`, against a mean at it; of the standard deviation nothing is assumed. For n
differences less `beyond`, with s their sum over the root of the sum of their squares, and
l = n + 1 / SCALE², it is

    2 / sqrt(1 + n SCALE²) * (1 - s² / l)^(-n/2) * T(s sqrt(n / (l - s²)))

where T is the distribution function of Student's t with n degrees of freedom. If the differences
are normal and their mean is at most `beyond`, it ever reaches 1 / alpha with a probability of at
most alpha, however often it is looked at: at a mean of `beyond` it is a test martingale of what
their scale leaves (Lai, "On confidence sequences", 1976; Wang and Ramdas, "Anytime-valid t-tests
and confidence sequences for Gaussian means with unknown variance", 2024), and it falls where all
differences fall by as much. Differences that are all equal tell nothing of a deviation; they count
as their signs would, as 2^n at most.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence

from hpsearch.search.ranking.repeats import HALVINGS, mean_of, t_below

SCALE = 2.0
"""It decides after 4 pairs on a mean of 3 standard deviations, after 7 on one of 1.4 and after 18
on one of 0.7, in half of all cases."""
MOST = 1_000  # pairs, after which nothing is expected to decide
EQUAL = 1e-12
"""The share of their squares by which differences vary that are equal but for rounding."""
LARGEST = 700.0  # the largest logarithm whose number a float holds


def e_value(differences: Sequence[float], beyond: float = 0.0) -> float:
    """The evidence that the mean of `differences` is above `beyond`; 1 without any differences."""
    return _evidence(len(differences), _scaled_sum([each - beyond for each in differences]))


def lower_bound(differences: Sequence[float], level: float) -> float:
    """The value that the mean of `differences` is above with the probability `level`, at any time;
    minus infinity where there are too few of them to show any."""

    def shows(beyond: float) -> bool:
        return e_value(differences, beyond) >= 1 / (1 - level)

    if not differences:
        return -math.inf
    mean = mean_of(differences)
    step = max(abs(each - mean) for each in differences) or 1e-9 * abs(mean) or 1e-9
    steps = (step * 2.0**doublings for doublings in range(HALVINGS))
    low = next((mean - each for each in steps if shows(mean - each)), None)
    if low is None:
        return -math.inf
    high = mean
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if shows(middle):
            low = middle
        else:
            high = middle
    return low


def needed(differences: Sequence[float], level: float) -> int | None:
    """How many more pairs are expected to show at this level that the mean is above 0, if the mean
    and the deviation stay what they are; None where they never would, and with fewer than two."""
    pairs = len(differences)
    if pairs < 2:
        return None
    share = _scaled_sum(differences) / math.sqrt(pairs)

    def decides(count: int) -> bool:
        return _evidence(count, share * math.sqrt(count)) >= 1 / (1 - level)

    more = bisect_left(range(pairs, MOST), True, key=decides)
    return more if share > 0 and decides(pairs + more) else None


def _scaled_sum(differences: Sequence[float]) -> float:
    """The sum of differences over the root of the sum of their squares; 0 if all are 0."""
    largest = max(map(abs, differences), default=0.0)
    if largest == 0:
        return 0.0
    shares = [each / largest for each in differences]
    return math.fsum(shares) / math.sqrt(math.fsum(share**2 for share in shares))


def _evidence(pairs: int, scaled_sum: float) -> float:
    if not pairs:
        return 1.0
    precision = pairs + 1 / SCALE**2
    squared = min(scaled_sum**2, pairs)
    below = t_below(pairs, scaled_sum * math.sqrt(pairs / (precision - squared)))
    if below <= 0:
        return 0.0
    log_evidence = math.log(2 * below) - math.log1p(pairs * SCALE**2) / 2
    log_evidence -= pairs / 2 * math.log1p(-squared / precision)
    if squared > pairs * (1 - EQUAL):
        log_evidence = min(log_evidence, pairs * math.log(2))
    return math.exp(min(log_evidence, LARGEST))
