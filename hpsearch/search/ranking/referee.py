"""Whether changed code is better, by runs in pairs with the code that it changes.

A change is kept when its e-value reaches 1 / alpha_t. By e-LOND (Xu and Ramdas, "Online multiple
testing with e-values", 2024), change t has alpha_t = `LEVEL` g_t (k + 1), where k is the number of
those kept so far, and the g sum to 1: of all that a campaign keeps, at most a share of `LEVEL` is
expected to be no better, whatever the changes have to do with one another, and however many come.
Each e-value may be looked at after every pair (`evidence`).

A change is discarded once not even a standard error more of its mean would let it be kept within
`MOST` pairs: that errs on the side of too few kept.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import stdev

from hpsearch.domain.facts import Verdict
from hpsearch.domain.numbers import number
from hpsearch.search.ranking.evidence import e_value, lower_bound, needed
from hpsearch.search.ranking.repeats import mean_of

LEVEL = 0.05
FEWEST = 3  # pairs before anything is decided
MOST = 40
SUM = 2.10974  # of 1 / (n log² n) over n from 2


@dataclass(frozen=True)
class Ruling:
    """What pairs of runs say of a change.

    Attributes:
        evidence: The e-value.
    """

    verdict: Verdict
    why: str
    evidence: float = 1.0


def level_of(number: int, kept: int) -> float:
    """The alpha of a change by its number, from 1, and how many were kept before it."""
    return LEVEL * (kept + 1) / (SUM * (number + 1) * math.log(number + 1) ** 2)


def ruling(changed: Sequence[float], base: Sequence[float], sign: float, level: float) -> Ruling:
    """The ruling on a change by the values of both sides, pair by pair. `sign` makes less better,
    and `level` is its alpha."""
    gains = [sign * (before - now) for before, now in zip(base, changed, strict=True)]
    pairs = len(gains)
    if pairs < FEWEST:
        return Ruling(Verdict.OPEN, f"{pairs} of at least {FEWEST} pairs")
    if not any(gains):
        return Ruling(Verdict.DISCARD, f"it changes nothing: all {pairs} pairs are equal")
    if 2 * len(set(changed)) < len(set(base)):
        return Ruling(Verdict.DISCARD, f"it ignores its seed: {pairs} seeds give equal values")
    evidence = e_value(gains)
    if evidence >= 1 / level:
        least = number(lower_bound(gains, 1 - level))
        what = f"better by {number(mean_of(gains))} (at least {least}) over {pairs} pairs"
        return Ruling(Verdict.KEEP, what, evidence)
    error = stdev(gains) / math.sqrt(pairs)
    hoped = needed([gain + error for gain in gains], 1 - level)
    if hoped is None or pairs + hoped > MOST:
        what = f"not shown to be better: {number(mean_of(gains))} over {pairs} pairs"
        return Ruling(Verdict.DISCARD, what, evidence)
    more = needed(gains, 1 - level)
    about = "" if more is None else f"; about {more} more would decide"
    what = f"better by {number(mean_of(gains))} so far, over {pairs} pairs{about}"
    return Ruling(Verdict.OPEN, what, evidence)
