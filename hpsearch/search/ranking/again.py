"""The outcome of training a configuration again: for the full budget, with another seed.

It is the value at the end of the training; the interval holds that of one more training nine times
in ten. Trainings that differ only by their seeds vary by a standard deviation from two sources:
seeds make about `SHARE` of the spread among the best third of a study's trials, which stands for
the degrees of freedom that its repeats lack of `FREEDOM`; and repeats, those of earlier studies in
shares of the spread there.
Both together give a Student-t interval (Gelman et al., *Bayesian Data Analysis*, 3rd ed., sections
2.6 and 3.2). Until the study has repeats of its own, the interval of a trial is the narrower the
more surely the forecast, which knows its neighbours and its curve, expects the end that it had, but
not narrower than the validation samples make it (`evaluation`).

A trial that was repeated counts by the mean of its repeats. One that was trained once and is ahead
of the best third falls back towards their mean by the share of their variance that seeds explain
(James and Stein 1961). `python benchmarks/confirm.py` shows what intervals hold.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hpsearch.search.ranking.evaluation import Evaluation
from hpsearch.search.ranking.repeats import BEHIND, REACH, Repeats, t_quantile

SHARE = 0.65  # the share of the spread among the best third of trials that seeds make
FREEDOM = 3  # the degrees of freedom from which on repeats tell enough without it
NEUTRAL = 0.7
"""The deviation that the forecast expects of an end, as a share of the spread, at which an interval
is as wide as the spread alone tells; it grows with the root."""
NARROWEST, WIDEST = 0.4, 1.4  # the factors of an interval that follow from it
FEWEST, LEAST = 4, 3
"""The fewest trials whose spread tells of seeds, and the fewest that count as the best third."""
NEAREST, FARTHEST = 1e-150, 1e150
"""Scores that are nearer or farther apart than this have squares that no float holds."""


@dataclass(frozen=True)
class Again:
    """The outcome of training a trial's configuration again."""

    mean: float
    low: float | None
    """One more training ends between this and `high` nine times in ten; None if that is unknown."""
    high: float | None
    runs: int  # the number of repeats that this is from; 0 if the trial was trained once

    @property
    def is_measured(self) -> bool:
        """True if anything tells how this differs from what the trial has shown."""
        return self.runs > 0 or self.low is not None


@dataclass(frozen=True, slots=True)
class Spread:
    """The scores of the best third of a study's trials; less is better."""

    mean: float
    deviation: float
    worst: float = 0.0  # the worst score of all its trials


@dataclass(frozen=True, slots=True)
class EarlierRepeats:
    """The repeats of earlier studies: the sum of their squared deviations, in shares of the squared
    spread of their study, and their degrees of freedom."""

    squares: float = 0.0
    freedom: int = 0


NONE_EARLIER = EarlierRepeats()


def spread_of(
    count: int, best: Callable[[int], Iterable[float]], worst: float = 0.0
) -> Spread | None:
    """The spread of the best third of a study's trials, or of all if those are equal; None if they
    are too few, or all equal.

    Args:
        count: The number of its trials.
        best: The scores of so many of the best ones.
        worst: The worst score.
    """
    if count < FEWEST:
        return None
    third = max(LEAST, math.ceil(count / 3))
    return _deviation(best(third), worst) or _deviation(best(count), worst)


def spread_among(scores: Iterable[float]) -> Spread | None:
    """The spread of the best third of these scores, as `spread_of`."""
    ordered = sorted(scores)
    worst = ordered[-1] if ordered else 0.0
    return spread_of(len(ordered), lambda most: ordered[:most], worst)


def _deviation(scores: Iterable[float], worst: float) -> Spread | None:
    """The mean and the standard deviation of scores; None if they are equal, or too far apart."""
    known = list(scores)
    first = min(known)
    away = [score - first for score in known]
    if not NEAREST < max(away) < FARTHEST:
        return None
    return Spread(first + statistics.fmean(away), statistics.stdev(away), worst)


class Seeds:
    """How far the trainings of one study vary with their seeds.

    Args:
        repeats: The study's own.
        spread: Of the best third of its trials; None if nothing is known of it.
        earlier: The repeats of earlier studies.
        evaluation: The samples behind its values; None if they are not known.
        rounds: What is left of the folds or seeds that its values are means of; None without any.
    """

    def __init__(
        self,
        repeats: Repeats,
        spread: Spread | None,
        earlier: EarlierRepeats = NONE_EARLIER,
        evaluation: Evaluation | None = None,
        rounds: Repeats | None = None,
    ) -> None:
        self._spread = spread
        self._evaluation = evaluation
        self.worst = () if spread is None else (spread.worst,)
        """The worst score of the study's trials, if that is known."""
        measured = [repeats] if rounds is None else [repeats, rounds]
        squares = sum(each.squares for each in measured)
        freedom = sum(each.freedom for each in measured)
        self._are_measured = freedom > 0
        if spread is not None:
            assumed = max(0, FREEDOM - freedom)
            shares = assumed * SHARE**2 + earlier.squares
            squares += shares * spread.deviation**2
            freedom += assumed + earlier.freedom
        self._variance = squares / freedom if freedom else 0.0
        self._reach = t_quantile(freedom, 1 - BEHIND) if freedom else 0.0

    @property
    def known(self) -> bool:
        """True if anything tells how far trainings vary."""
        return self._variance > 0 or self._evaluation is not None

    def reach(self, variance: float) -> float:
        """How far a 90% interval reaches to either side, where a training has variance 1."""
        return self._reach * math.sqrt(self._variance * variance)

    def least_reach(self, score: float, variance: float) -> float:
        """The same as the samples alone make it, at a score; 0 where repeats measure it."""
        if self._evaluation is None or self._are_measured:
            return 0.0
        return REACH * self._evaluation.deviation(score) * math.sqrt(variance)

    def sharpness(self, deviation: float | None) -> float:
        """The factor of the reach of a complete trial without repeats, by the deviation that the
        forecast expects of its end; 1 where that or the spread is unknown, and where repeats
        measure how far trainings vary."""
        if deviation is None or self._spread is None or self._are_measured:
            return 1.0
        factor = math.sqrt(deviation / self._spread.deviation / NEUTRAL)
        return min(WIDEST, max(NARROWEST, factor))

    def without_luck(self, score: float) -> float:
        """The mean score of a configuration that was trained once, by the score of that."""
        spread, evaluation = self._spread, self._evaluation
        likely = score if evaluation is None else score + evaluation.luck
        if spread is None or score >= spread.mean:
            return likely
        luck = min(1.0, self._variance / spread.deviation**2)
        return max(likely, score + luck * (spread.mean - score))


def earlier_repeats(
    studies: Iterable[tuple[Mapping[int, Sequence[float]], Spread | None]],
) -> EarlierRepeats:
    """The repeats of studies, each with the spread of its trials, together."""
    squares, freedom = 0.0, 0
    for runs, spread in studies:
        if spread is not None:
            repeats = Repeats(runs, "minimize")
            squares += repeats.squares / spread.deviation**2
            freedom += repeats.freedom
    return EarlierRepeats(squares, freedom)
