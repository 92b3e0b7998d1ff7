"""What the samples behind an accuracy tell of the luck in it.

An accuracy is a share of n samples, so that the accuracies of a study lie on a grid, which tells n.
Trained with another seed, a model answers some of them otherwise: the share then deviates by about
`ANSWERED_ANEW` of what it would among other samples, sqrt(p (1 - p) / n). Of the m trials that end
within twice that of the best one, the best is the luckiest: by the expected largest of m standard
normals (Blom, "Statistical Estimates and Transformed Beta-Variables", 1958).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

ANSWERED_ANEW = 0.6
FEWEST_SHARES = 3  # the fewest different shares that tell the number of samples
FEWEST, MOST = 30, 5_000
"""Samples: fewer say little of their own number, and those of more do not matter."""
AS_PRINTED = (100, 1_000)  # values with so many places only look like shares of so many samples
ROUNDED = 5e-8  # what a value is off by as a float of 32 bits
ENDS = 16  # the best ends that are looked at


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The validation samples of a study, and the luck of its best trial."""

    samples: int
    luck: float = 0.0

    def deviation(self, share: float) -> float:
        """The standard deviation of a share of the samples from one training to another."""
        likely = (min(1.0, abs(share)) * self.samples + 1) / (self.samples + 2)
        return ANSWERED_ANEW * math.sqrt(likely * (1 - likely) / self.samples)


def evaluation_of(ends: Sequence[float]) -> Evaluation | None:
    """The evaluation behind the ends of a study's best trials, the best first, of either sign; None
    where they are no shares of samples."""
    if not (all(0 <= end <= 1 for end in ends) or all(-1 <= end <= 0 for end in ends)):
        return None
    shares = {abs(end) for end in ends} - {0.0, 1.0}
    fractions = {share: Fraction(share).limit_denominator(MOST) for share in shares}
    is_off = any(abs(share - fraction) > ROUNDED for share, fraction in fractions.items())
    if len(shares) < FEWEST_SHARES or is_off:
        return None
    samples = math.lcm(*(each.denominator for each in fractions.values()))
    if not FEWEST <= samples <= MOST or samples in AS_PRINTED:
        return None
    found = Evaluation(samples)
    deviation = found.deviation(ends[0])
    near = sum(abs(end - ends[0]) <= 2 * deviation for end in ends)
    largest = NormalDist().inv_cdf((near - 0.375) / (near + 0.25))
    return Evaluation(samples, largest * deviation)
