"""What repeats with other seeds say: how good trials really are, how sure that is, and who is behind.

All repeats of a study are taken to scatter alike around their own trial's true value: two or three runs of a trial tell
little of their spread, those of all repeated trials together tell it well. With the usual uninformative prior, the true
value of a trial is then Student-t around the mean of its runs, with the pooled standard deviation and the degrees of
freedom of all runs; so is the difference of two (Gelman et al., *Bayesian Data Analysis*, 3rd ed., section 3.2; Box and
Tiao 1973, section 2.5).

The best mean of several is lucky once more: among m trials that might all have come out first, the interval must leave
each one `1 - 0.9**(1/m)` of room above (Šidák 1967), so that the first one's still holds nine times in ten. `python
benchmarks/confirm.py` shows what intervals cover.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from hpsearch.lifecycle import State

CONFIDENCE = 0.90
"""Of the interval of a confirmed mean."""
BEHIND = 0.05
"""A trial whose probability of being better than the first one is smaller than this is clearly behind."""
RIVAL = 0.01
"""With less than this probability it never might have come out first."""


class Run(Protocol):
    """What is read of a repeat: a `records.Trial`, or a row that has these columns."""

    @property
    def state(self) -> State: ...
    @property
    def value(self) -> float | None: ...
    @property
    def role(self) -> str: ...
    @property
    def repeats(self) -> int | None: ...


@dataclass(frozen=True)
class Confirmed:
    """What the repeats of a trial with other seeds came to.

    `low` and `high` bound the 90% interval of the true mean; None where no trial was repeated twice, so that nothing
    tells how values scatter.
    """

    mean: float
    low: float | None
    high: float | None
    runs: int


def runs_of(trials: Iterable[Run]) -> dict[int, list[float]]:
    """The values of complete repeats (role `confirm`), by the number of the trial they repeat."""
    runs: defaultdict[int, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.role != "confirm" or trial.repeats is None or trial.state is not State.COMPLETE:
            continue
        if trial.value is not None and math.isfinite(trial.value):
            runs[trial.repeats].append(trial.value)
    return dict(runs)


class Repeats:
    """The repeats of a study's leading trials, seen together.

    Args:
        runs: Values by the number of the trial that was repeated, at least one each.
        direction: ``minimize`` or ``maximize``.
    """

    def __init__(self, runs: Mapping[int, Sequence[float]], direction: str) -> None:
        self._sign = -1.0 if direction == "maximize" else 1.0
        self._runs = {number: len(values) for number, values in runs.items()}
        self.means = {number: math.fsum(values) / len(values) for number, values in runs.items()}
        self.freedom = sum(self._runs.values()) - len(self._runs)
        """Degrees of freedom of the pooled deviation."""
        squares = math.fsum((v - self.means[number]) ** 2 for number, values in runs.items() for v in values)
        self.deviation = math.sqrt(squares / self.freedom) if self.freedom else None
        """Pooled standard deviation of one run; None where no trial has two."""

    @cached_property
    def first(self) -> int | None:
        """The trial with the best mean; None without repeats."""
        return min(self.means, key=lambda number: (self._sign * self.means[number], number), default=None)

    def chance(self, one: int, other: int) -> float:
        """The probability that the true value of `one` is better than that of `other`; 0.5 where nothing tells."""
        ahead = self._sign * (self.means[other] - self.means[one])
        if self.deviation is None or ahead == 0:
            return 0.5
        error = self.deviation * math.sqrt(1 / self._runs[one] + 1 / self._runs[other])
        if error == 0:
            return 1.0 if ahead > 0 else 0.0
        from scipy.special import stdtr  # here, because it takes longer to import than most readings take to run

        return float(stdtr(self.freedom, ahead / error))

    def behind(self, number: int) -> bool:
        """Whether a trial is clearly behind the first one."""
        if self.first is None or number not in self.means:
            return False
        return number != self.first and self.chance(number, self.first) < BEHIND

    def confirmed(self) -> dict[int, Confirmed]:
        """Mean and 90% interval of each trial."""
        return {number: self._interval(number) for number in self.means}

    def _interval(self, number: int) -> Confirmed:
        mean, runs = self.means[number], self._runs[number]
        if self.deviation is None:
            return Confirmed(mean, None, None, runs)
        half = self._quantile * self.deviation / math.sqrt(runs)
        return Confirmed(mean, mean - half, mean + half, runs)

    @cached_property
    def _quantile(self) -> float:
        """How many standard errors an interval reaches to either side."""
        from scipy.special import stdtrit

        assert self.first is not None
        rivals = sum(self.chance(number, self.first) >= RIVAL for number in self.means)
        level = 0.5 + CONFIDENCE / 2 if rivals == 1 else CONFIDENCE ** (1 / rivals)
        return float(stdtrit(self.freedom, level))
