"""Repeats with other seeds: the true values of trials, and their uncertainty.

All repeats of a study are assumed to vary equally around the true value of their trial. With the
usual uninformative prior, that value is Student-t around the mean of its runs, with the pooled
standard deviation and the degrees of freedom of all runs; so is the difference of two (Gelman et
al., *Bayesian Data Analysis*, 3rd ed., section 3.2; Box and Tiao 1973, section 2.5).

The best of several means is again partly luck. Among m trials that might all have come out first,
each interval must leave a probability of `1 - 0.9**(1/m)` above it (Šidák 1967). `python
benchmarks/confirm.py` shows what intervals cover.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import sign_of
from hpsearch.ranking import student
from hpsearch.ranking.ranges import range_of

CONFIDENCE = 0.90
"""The probability of the interval of a confirmed mean."""
BEHIND = 0.05
"""A trial is clearly behind if it is better than the first one with less than this probability."""
RIVAL = 0.01
"""The least probability of being better than the first one that a rival of it has."""


class RepeatedTrial(Protocol):
    """A trial that may be a repeat: a `records.Trial`, or a row that has these columns."""

    @property
    def state(self) -> State: ...
    @property
    def value(self) -> float | None: ...
    @property
    def role(self) -> Role: ...
    @property
    def repeats(self) -> int | None: ...


@dataclass(frozen=True)
class Confirmed:
    """The result of a trial's repeats with other seeds."""

    mean: float
    low: float | None
    """The lower end of the 90% interval of the true mean; None, as `high`, if no trial of the study
    was repeated twice, so that the spread of values is not known."""
    high: float | None
    runs: int


def runs_of(trials: Iterable[RepeatedTrial]) -> dict[int, list[float]]:
    """The values of complete repeats (role `confirm`), by the number of the trial they repeat."""
    runs: defaultdict[int, list[float]] = defaultdict(list)
    for trial in trials:
        repeated, value = trial.repeats, trial.value
        is_complete_repeat = trial.role is Role.CONFIRM and trial.state is State.COMPLETE
        if not is_complete_repeat or repeated is None:
            continue
        if value is not None and math.isfinite(value):
            runs[repeated].append(value)
    return dict(runs)


class Repeats:
    """The repeats of a study's leading trials, seen together.

    Args:
        runs: Values by the number of the trial that was repeated, at least one each.
        direction: ``minimize`` or ``maximize``.
    """

    def __init__(self, runs: Mapping[int, Sequence[float]], direction: str) -> None:
        self._sign = sign_of(direction)
        self._runs: dict[int, int] = {}
        self.means: dict[int, float] = {}
        for number, values in runs.items():
            count = len(values)
            self._runs[number] = count
            self.means[number] = math.fsum(values) / count
        self.freedom = sum(self._runs.values()) - len(self._runs)
        """Degrees of freedom of the pooled deviation."""
        self._seen = [value for values in runs.values() for value in values]
        self.deviation = self._pooled_deviation(runs)
        """Pooled standard deviation of one run; None if no trial has two."""

    def _pooled_deviation(self, runs: Mapping[int, Sequence[float]]) -> float | None:
        if not self.freedom:
            return None
        squares = []
        for number, values in runs.items():
            mean = self.means[number]
            squares += [(value - mean) ** 2 for value in values]
        total = math.fsum(squares)
        return math.sqrt(total / self.freedom)

    @cached_property
    def first(self) -> int | None:
        """The trial with the best mean; None without repeats."""
        means = self.means
        if not means:
            return None
        return min(means, key=lambda number: (self._sign * means[number], number))

    def chance(self, one: int, other: int) -> float:
        """The probability that the true value of `one` is better than the one of `other`; 0.5 where
        the spread of values is not known, and where both have the same mean."""
        means, runs = self.means, self._runs
        ahead = self._sign * (means[other] - means[one])
        if self.deviation is None or ahead == 0:
            return 0.5
        variances = 1 / runs[one] + 1 / runs[other]  # of the means, in those of one run
        error = self.deviation * math.sqrt(variances)
        if error == 0:
            return 1.0 if ahead > 0 else 0.0
        return student.below(self.freedom, ahead / error)

    def behind(self, number: int) -> bool:
        """True if a trial is clearly behind the first one."""
        first = self.first
        if first is None or number not in self.means or number == first:
            return False
        return self.chance(number, first) < BEHIND

    def confirmed(self, metric: str = "") -> dict[int, Confirmed]:
        """Mean and 90% interval of each trial, inside the range of the metric with this name."""
        low, high = range_of(metric, self._seen)
        return {number: self._interval(number, low, high) for number in self.means}

    def _interval(self, number: int, lowest: float, highest: float) -> Confirmed:
        mean, runs = self.means[number], self._runs[number]
        if self.deviation is None:
            return Confirmed(mean, None, None, runs)
        half = self._quantile * self.deviation / math.sqrt(runs)
        return Confirmed(mean, max(mean - half, lowest), min(mean + half, highest), runs)

    @cached_property
    def _quantile(self) -> float:
        """The standard errors that an interval reaches to either side."""
        first = self.first
        assert first is not None
        chances = [self.chance(number, first) for number in self.means]
        rivals = sum(chance >= RIVAL for chance in chances)
        level = 0.5 + CONFIDENCE / 2 if rivals == 1 else CONFIDENCE ** (1 / rivals)
        return student.quantile(self.freedom, level)
