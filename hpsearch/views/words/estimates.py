"""A trial's value in words: what is expected of it, and what comes of it when it is trained again;
and what is used of a limit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import NOTHING, count, duration, number
from hpsearch.search.ranking.again import Again
from hpsearch.search.ranking.selection import Candidate, Ranked, expectation, likely_range
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.standing import BudgetLine, StudyStatus

BUDGET_WORDS = {
    "trials": "trials",
    "gpu_seconds": "compute time",
    "wall_clock_seconds": "wall clock",
    "cost": "cost",
}
"""The names of the limits of a budget on the screen."""


def expected(trial: Candidate) -> str:
    """The value that is expected of a trial in full, with its 90% interval: ``0.8123 ± 0.004``."""
    value = expectation(trial)
    return NOTHING if value is None else _within(value, *likely_range(trial))


def if_again(again: Again | None) -> str:
    """The outcome of training a trial again, with the 90% interval and the number of its
    repeats: ``0.8123 ± 0.004 (3 runs)``."""
    if again is None:
        return NOTHING
    mean, low, high = again.mean, again.low, again.high
    within = number(mean) if low is None or high is None else _within(mean, low, high)
    return f"{within} ({count(again.runs, 'run')})" if again.runs else within


def _within(value: float, low: float, high: float) -> str:
    """A value with its interval: ``0.8 ± 0.04``; ``0.8 [0.5 to 0.95]`` where its sides differ."""
    below, above = value - low, high - value
    if math.isclose(below, above, rel_tol=0.1):
        return f"{number(value)} ± {(high - low) / 2:.2g}" if low < high else number(value)
    return f"{number(value)} [{number(low)} to {number(high)}]"


def may_change(trial: Candidate) -> bool:
    """True if something is expected of a trial that it has not shown already."""
    if expectation(trial) is None:
        return False
    low, high = likely_range(trial)
    return trial.state is not State.COMPLETE or low < high


def values(row: TrialRow) -> str:
    """A trial's value, or the values of all objectives."""
    if row.values is None:
        return number(row.value)
    return ", ".join(map(number, row.values))


def score(row: Ranked[TrialRow], *, driven: bool) -> str:
    """The outcome of training a trial again, with its state where it is not complete; the
    best value that it has shown where nothing tells how far trainings vary.

    Args:
        row: The trial in its place.
        driven: Whether a driver owns the study. Without one, a trial that was running is shown as
            queued, as it will be when the study is resumed.
    """
    again, shown, current = row.again, number(row.value), row.trial.state
    if again is not None and (again.runs or again.low is not None):
        shown = f"{if_again(again)} if trained again"
    if current is State.COMPLETE or row.confirmed is not None:
        return shown
    if current is State.RUNNING and not driven:
        current = State.QUEUED
    return f"{shown} ({current.value})"


def nearest_limit(lines: Sequence[BudgetLine]) -> str:
    """The limit that is nearest: ``12 of 24 trials``, ``1 h of 4 h compute time``."""
    limits = [line for line in lines if line.most]
    if not limits:
        return NOTHING
    nearest = max(limits, key=lambda line: line.used / (line.most or 1.0))
    return f"{of_limit(nearest)} {BUDGET_WORDS[nearest.name]}"


def of_limit(line: BudgetLine) -> str:
    """The used part of a limit: ``12 of 24``, ``1 h of 4 h``; ``1 h`` where nothing limits it."""
    write = duration if line.name.endswith("seconds") else number
    return write(line.used) if line.most is None else f"{write(line.used)} of {write(line.most)}"


def by_device(status: StudyStatus) -> str | None:
    """The compute time and money of each type of device: ``A100 2 h (5), T4 1 h (no price)``; None
    where there is one type, unless it has no price though others do."""
    budget, lines = status.summary.head.budget, status.devices
    has_prices = budget is not None and budget.cost_per_gpu_hour is not None
    if len(lines) < 2 and not (has_prices and any(line.cost is None for line in lines)):
        return None
    parts = []
    for line in lines:
        price = "no price" if line.cost is None else number(line.cost)
        money = f" ({price})" if has_prices else ""
        parts.append(f"{line.device or 'unknown'} {duration(line.gpu_seconds)}{money}")
    return ", ".join(parts)
