"""The trust in the rungs of a study: the correlation of the standing at a rung with the end.

A trial's *end* is the best value that it reported after the rung. The measure is Spearman's rank
correlation of the value at the rung with the end, among the trials that were trained in full. Most
of them went on because they did well at the rung (range restriction). The correlation among all
that reached the rung follows by Thorndike's case 2, from the spread of the normal scores of all of
them against that of the finished ones. The interval holds nine times in ten: Fisher's z with Bonett
and Wright's variance, its ends corrected like the correlation.

Sources: Thorndike, *Personnel Selection* (1949), case 2; Bonett and Wright, "Sample size
requirements for estimating Pearson, Kendall and Spearman correlations", Psychometrika 65 (2000).
"""

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.repeats import mean_of

QUANTILE = 1.6448536269514722
"""The standard deviations that a 90% interval of a normal variable reaches to either side."""
FEWEST = 4
"""The fewest trials that a correlation is taken from; Fisher's z has no interval for fewer."""
WEAK = 0.3  # the correlation below which a rung tells little about the end


@dataclass(frozen=True, slots=True)
class TrialCurve:
    """The curve of one trial that reached a rung and is not a repeat."""

    number: int
    state: State
    rung: int | None  # the index of the highest rung that it has reached
    scores: Mapping[float, float]
    """By resource; less is better. Reports below the lowest rung may be left out."""


class RungVerdict(StrEnum):
    """The meaning of a rung's correlation."""

    UNKNOWN = "unknown"  # too few trials were trained in full
    TELLS = "tells"  # the whole interval is at or above `WEAK`
    UNCLEAR = "unclear"  # the interval has `WEAK` inside
    LITTLE = "little"  # the whole interval is below `WEAK`


@dataclass(frozen=True, slots=True)
class Correlation:
    """A rank correlation with its 90% interval."""

    value: float
    low: float
    high: float
    trials: int  # the number of finished trials that it is from


@dataclass(frozen=True, slots=True)
class RungTrust:
    """The trust in a rung."""

    level: float  # its resource
    reached: int  # trials that reached it with a value
    paused: int  # trials that wait there
    pruned: int  # trials that ended there
    finished: int  # trials that were trained in full
    correlation: Correlation | None  # None if too few were trained in full to tell

    @property
    def verdict(self) -> RungVerdict:
        """The meaning of the correlation."""
        correlation = self.correlation
        if correlation is None:
            return RungVerdict.UNKNOWN
        if correlation.low >= WEAK:
            return RungVerdict.TELLS
        return RungVerdict.LITTLE if correlation.high < WEAK else RungVerdict.UNCLEAR

    def as_plain(self) -> dict[str, Any]:
        """Its fields and its verdict, as plain values."""
        return {**asdict(self), "verdict": self.verdict}


def trust(curves: Sequence[TrialCurve], levels: Sequence[float]) -> list[RungTrust]:
    """The trust in each rung of a study, lowest first.

    Args:
        curves: Of its trials, without repeats.
        levels: Of its rungs, ascending, the full budget last
            (`hpsearch.study_file.levels.rung_levels`).
    """
    rungs = enumerate(itertools.pairwise(levels))
    return [_trust(curves, index, level, following) for index, (level, following) in rungs]


def _trust(curves: Sequence[TrialCurve], index: int, level: float, following: float) -> RungTrust:
    at: dict[int, float] = {}
    end: dict[int, float] = {}
    paused = pruned = 0
    for curve in curves:
        resource = _counting(curve.scores, level, following)
        score = curve.scores.get(resource, math.nan)
        if not math.isfinite(score):
            continue
        at[curve.number] = score
        paused += curve.rung == index and curve.state is State.PAUSED
        pruned += curve.rung == index and curve.state is State.PRUNED
        after = [score for reached, score in curve.scores.items() if reached > resource]
        best = min(filter(math.isfinite, after), default=None)
        if curve.state is State.COMPLETE and best is not None:
            end[curve.number] = best
    return RungTrust(level, len(at), paused, pruned, len(end), _correlation(at, end))


def _counting(scores: Mapping[float, float], level: float, following: float) -> float:
    """The first report at or above a rung, below the next one; NaN if there is none."""
    return min((at for at in scores if level <= at < following), default=math.nan)


def _correlation(at: Mapping[int, float], end: Mapping[int, float]) -> Correlation | None:
    count = len(end)
    if count < FEWEST:
        return None
    values = [at[number] for number in end]
    found = rank_correlation(values, list(end.values()))
    if found is None:
        return None
    scores = normal_scores(list(at.values()))
    score_of = dict(zip(at, scores, strict=True))
    selected = [score_of[number] for number in end]
    wider = _deviation(scores) / _deviation(selected)
    low, high = interval(found, count)
    value, least, most = (unrestricted(each, wider) for each in (found, low, high))
    return Correlation(value, least, most, count)


# ------------------------------------------------------------------------------------- statistics


def ranks(values: Sequence[float]) -> list[float]:
    """The places of values, from 1 for the smallest; equal ones share the mean of their places.

    numpy and scipy have this and what follows, but take longer to import than a reading to run.
    """
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for place, value in enumerate(sorted(values), start=1):
        first.setdefault(value, place)
        last[value] = place
    return [(first[value] + last[value]) / 2 for value in values]


def normal_scores(values: Sequence[float]) -> list[float]:
    """The van der Waerden scores of values: the normal quantiles of rank / (n + 1)."""
    normal = statistics.NormalDist()
    return [normal.inv_cdf(rank / (len(values) + 1)) for rank in ranks(values)]


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Spearman's rank correlation; None where all values of one side are equal."""
    if len(set(one)) == 1 or len(set(other)) == 1:
        return None
    return statistics.correlation(ranks(one), ranks(other))


def _deviation(values: Sequence[float]) -> float:
    mean = mean_of(values)
    return math.hypot(*(value - mean for value in values)) / math.sqrt(len(values))


def interval(correlation: float, n: int) -> tuple[float, float]:
    """The 90% interval of a rank correlation of n pairs, at least 4.

    A few pairs are in perfect order by chance quite often. The inner end of the interval therefore
    belongs to an order that is short of perfect by half of an exchange of two neighbours.
    """
    most = 1 - 6 / (n**3 - n)
    nearest = max(-most, min(most, correlation))
    variance = (1 + nearest**2 / 2) / (n - 3)
    half = QUANTILE * math.sqrt(variance)
    z = math.atanh(nearest)
    low, high = math.tanh(z - half), math.tanh(z + half)
    if correlation <= -most:
        low = -1.0
    if correlation >= most:
        high = 1.0
    return low, high


def unrestricted(correlation: float, wider: float) -> float:
    """The correlation among all, by the one among some that were selected by one of the variables;
    `wider` is that variable's standard deviation among all, over the one among the selected."""
    stretched = correlation * wider
    return stretched / math.sqrt(1 - correlation**2 + stretched**2)
