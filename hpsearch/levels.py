"""Where on its way a trial measures itself, and where it is compared with others.

Levels are resources in the unit of the trial budget. The report grid and the rungs together make the budget's
`report_at`, so that every comparison is between measurements at exactly the same level.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from hpsearch.spec import PerTrial, StudySpec
from trials.contract import Budget

PROMOTION = "promotion"
"""The pruner with rungs of its own; all others compare at every report."""

ETA = 3
"""Of the trials at a rung, one in so many goes on."""

RUNGS = 2
"""How many rungs stand below the full budget, where the study file does not say."""

FINE = 17
"""A trial that reports so often has its first rung after that share of its budget. Lower rungs were measured to
mislead, higher ones to cost more than they tell; where reports are rarer, a rung that low would be noise."""

DIGITS = 6
"""Decimal places of a fractional level: enough to tell levels apart, few enough to read."""

SCALES = (10, 100, 1000, 10_000, 100_000, 1_000_000)
"""Factors from levels to whole steps; the last one keeps all `DIGITS`."""


def trial_budget(spec: StudySpec) -> Budget:
    """The trial budget with every level at which a trial reports: its grid and the rungs."""
    per_trial = spec.budget.per_trial
    levels = _ascending({*_report_grid(per_trial), *rung_levels(spec)}, per_trial)
    return Budget(per_trial.unit, per_trial.total, levels)


def rung_levels(spec: StudySpec) -> tuple[float, ...]:
    """The levels at which trials are compared, ascending, the full budget last.

    The promotion pruner takes arguments `eta` and either `rungs` (how many stand below the full budget R) or
    `first_rung` (the lowest level wanted): its levels are R, R/eta, R/eta**2 and so on. With neither, and reports often
    enough, the first rung is the report nearest R/17, and each next one eta times as far: 3, 9 and 27 of 52 epochs.
    Any other pruner compares at every report.
    """
    per_trial, pruner = spec.budget.per_trial, spec.search.pruner
    if pruner.kind != PROMOTION:
        return _report_grid(per_trial)
    eta = pruner.arguments.get("eta", ETA)
    first = pruner.arguments.get("first_rung")
    often = per_trial.report_interval <= per_trial.total / FINE
    if often and not pruner.arguments.keys() & {"first_rung", "rungs"}:
        lowest = round(per_trial.total / FINE / per_trial.report_interval) * per_trial.report_interval
        above = itertools.takewhile(lambda level: level < per_trial.total * 0.9, _multiplied(lowest, eta))
        return _ascending(above, per_trial)
    below = _divided(per_trial.total, eta)
    if first is None:
        return _ascending(itertools.islice(below, pruner.arguments.get("rungs", RUNGS)), per_trial)
    slack = 1 - 1e-9  # 9 / 3**2 may come out a hair below a first rung of 1
    return _ascending(itertools.takewhile(lambda level: level >= first * slack, below), per_trial)


def step_scale(spec: StudySpec) -> int:
    """What levels are multiplied by to become Optuna's steps, which are whole numbers.

    1 where all levels are whole, else the smallest power of ten that keeps them apart and above zero after rounding.
    """
    levels = trial_budget(spec).report_at
    if all(level == int(level) for level in levels):
        return 1
    return next((scale for scale in SCALES if _apart(levels, scale)), SCALES[-1])


def _divided(level: float, eta: int) -> Iterator[float]:
    """level/eta, level/eta**2 and so on, without end."""
    while True:
        level /= eta
        yield level


def _multiplied(level: float, eta: int) -> Iterator[float]:
    """level, level*eta, level*eta**2 and so on, without end."""
    while True:
        yield level
        level *= eta


def _report_grid(per_trial: PerTrial) -> tuple[float, ...]:
    every = per_trial.report_interval
    count = int(per_trial.total / every * (1 + 1e-9))
    return _ascending((every * k for k in range(1, count + 1)), per_trial)


def _ascending(levels: Iterable[float], per_trial: PerTrial) -> tuple[float, ...]:
    """Levels rounded as the unit asks, each once, between 0 and the total, with the total itself last."""
    rounded = {float(round(level)) if per_trial.whole else round(level, DIGITS) for level in levels}
    total = per_trial.total
    nearly = total if per_trial.whole else total - 10**-DIGITS / 2  # the total itself, rounded, is not one more level
    return (*sorted(level for level in rounded if 0 < level < nearly), total)


def _apart(levels: tuple[float, ...], scale: int) -> bool:
    steps = [round(level * scale) for level in levels]
    return steps[0] > 0 and len(set(steps)) == len(steps)
