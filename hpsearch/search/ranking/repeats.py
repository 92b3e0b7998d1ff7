"""Repeats with other seeds: the means of trials, and which of them are behind.

All repeats of a study are assumed to vary equally around the mean of their trial. With the usual
uninformative prior, the difference of two means is Student-t, with the pooled standard deviation
and the degrees of freedom of all runs (Gelman et al., *Bayesian Data Analysis*, 3rd ed., section
3.2; Box and Tiao 1973, section 2.5).
"""

import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from statistics import NormalDist
from typing import Protocol

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import sign_of

BEHIND = 0.05
"""A trial is clearly behind if it is better than the first one with less than this probability."""
REACH = NormalDist().inv_cdf(1 - BEHIND)
"""The standard deviations that a 90% interval reaches to either side."""


class RepeatedTrial(Protocol):
    """A trial that may be a repeat: a `records.Trial`, or a row that has these columns."""

    @property
    def state(self) -> State: ...
    @property
    def value(self) -> float | None: ...
    @property
    def expected(self) -> float | None: ...
    @property
    def role(self) -> Role: ...
    @property
    def repeats(self) -> int | None: ...


def runs_of(trials: Iterable[RepeatedTrial]) -> dict[int, list[float]]:
    """The ends of complete repeats (role `confirm`), by the number of the trial they repeat."""
    runs: defaultdict[int, list[float]] = defaultdict(list)
    for trial in trials:
        repeated, value = trial.repeats, worth_of(trial)
        if repeated is None or trial.state is not State.COMPLETE or value is None:
            continue
        if math.isfinite(value):
            runs[repeated].append(value)
    return dict(runs)


def expectation(trial: RepeatedTrial) -> float | None:
    """The value that is expected of a trial in full; None if it is unknown or not finite."""
    expected = trial.expected
    return expected if expected is not None and math.isfinite(expected) else None


def worth_of(trial: RepeatedTrial) -> float | None:
    """The value that is expected of a trial in full, which of a complete one is that of its end;
    where that is not known, the best one that it has shown."""
    expected = expectation(trial)
    return trial.value if expected is None else expected


def mean_of(values: Sequence[float]) -> float:
    """The mean of values, also where their sum is larger than any float."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) for value in values)


class Repeats:
    """The repeats of a study's leading trials, seen together.

    Args:
        runs: Values by the number of the trial that was repeated, at least one each.
        direction: ``minimize`` or ``maximize``.
    """

    def __init__(self, runs: Mapping[int, Sequence[float]], direction: str) -> None:
        self._sign = sign_of(direction)
        self.runs: dict[int, int] = {}  # the number of runs of each trial
        self.means: dict[int, float] = {}
        for number, values in runs.items():
            self.runs[number] = len(values)
            self.means[number] = mean_of(values)
        self.freedom = sum(self.runs.values()) - len(self.runs)
        """Degrees of freedom of the pooled deviation."""
        self.seen = [value for values in runs.values() for value in values]
        """The values of all runs."""
        away = (value - self.means[number] for number, values in runs.items() for value in values)
        largest = sys.float_info.max / max(1, len(self.seen))
        self.squares = math.fsum(min(each * each, largest) for each in away)
        """The squared deviations of all runs from the means of their trials, summed."""
        self.deviation = math.sqrt(self.squares / self.freedom) if self.freedom else None
        """Pooled standard deviation of one run; None if no trial has two."""

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
        means, runs = self.means, self.runs
        ahead = self._sign * (means[other] - means[one])
        if self.deviation is None or ahead == 0:
            return 0.5
        variances = 1 / runs[one] + 1 / runs[other]  # of the means, in those of one run
        error = self.deviation * math.sqrt(variances)
        if error == 0:
            return 1.0 if ahead > 0 else 0.0
        return t_below(self.freedom, ahead / error)

    def behind(self, number: int) -> bool:
        """True if a trial is clearly behind the first one."""
        first = self.first
        if first is None or number not in self.means or number == first:
            return False
        return self.chance(number, first) < BEHIND


HALVINGS = 64  # halvings of an interval after which its ends are the same number, or neighbours


def t_below(freedom: int, t: float) -> float:
    """The probability of a value below `t` under Student's t distribution, for whole degrees of
    freedom: scipy has it, but takes longer to import than a reading takes to run.

    Source: Abramowitz and Stegun, *Handbook of Mathematical Functions* (1964), 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    squared = math.cos(angle) ** 2
    is_odd = freedom % 2 == 1
    term = math.cos(angle) if is_odd else 1.0
    total = 0.0
    for step in range(3 if is_odd else 2, freedom + 1, 2):
        total += term
        term *= squared * (step - 1) / step
    within = math.sin(angle) * total
    if is_odd:
        within = (angle + within) * 2 / math.pi
    return (1 + within) / 2


def t_quantile(freedom: int, probability: float) -> float:
    """The value that a value is below with a probability between 0.5 and 1."""
    low, high = 0.0, 1.0
    while t_below(freedom, high) < probability:
        low, high = high, 2 * high
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if t_below(freedom, middle) < probability:
            low = middle
        else:
            high = middle
    return high
