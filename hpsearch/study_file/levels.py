"""The levels at which a trial reports, and those at which it is compared with others.

A level is an amount of training in the unit of the trial budget. The report grid and the rungs
together make the budget's `report_at`, so that every comparison is between measurements at exactly
the same level. A rung that lies near a level of the grid is that level: one evaluation serves both.
"""

import itertools
import operator
from collections.abc import Iterable, Iterator

from hpsearch.study_file.methods import PROMOTION, PromotionArguments
from hpsearch.study_file.models import PerTrial, StudySpec
from trials.contract import ROUNDS, Budget
from trials.running import report_grid

RUNGS = 2  # the number of rungs below the full budget where trials report rarely
FINE = 17
"""A trial with at least this many reports has its first rung after 1/17 of its budget: by
measurements, lower rungs mislead, and higher ones cost more than they are worth."""
SCALES = (10, 100, 1000, 10_000, 100_000, 1_000_000)
"""Factors from levels to whole steps; the last one keeps all `report_grid.DIGITS` of a level."""


def trial_budget(spec: StudySpec) -> Budget:
    """The trial budget with every level at which a trial reports: its grid and the rungs."""
    per_trial = spec.budget.per_trial
    both = {*_report_grid(per_trial), *rung_levels(spec)}
    levels = _ascending(both, per_trial)
    if per_trial.unit not in ROUNDS:
        return Budget(per_trial.unit, per_trial.total, levels)
    one = per_trial.of_one
    each = Budget(one.unit, one.total, _report_grid(one))
    return Budget(per_trial.unit, per_trial.total, levels, each)


def rung_levels(spec: StudySpec) -> tuple[float, ...]:
    """The levels at which trials are compared, ascending, the full budget last.

    The promotion pruner has the arguments `eta` and `first_rung` (the lowest level wanted): its
    levels are the full budget R, R/eta, R/eta**2 and so on. Without `first_rung`, and with enough
    reports, the first rung is the report nearest to R/17, and each next one is eta times as far: 3,
    9 and 27 of 52 epochs. Other pruners compare at every report.

    A rung above the first report is at a report, the nearest one, and so is a rung within a quarter
    of the report interval (`report_grid.NEAR`) of the first. A lower one costs a report of its own,
    which is worth it (docs/measured/search.md). With `first_rung` rungs stay where they are stated
    unless a report is as near as that.
    """
    per_trial, pruner = spec.budget.per_trial, spec.search.pruner
    grid = _report_grid(per_trial)
    if pruner.kind != PROMOTION:
        return grid
    arguments = PromotionArguments.model_validate(pruner.arguments)
    stated = _promotion_levels(per_trial, arguments)
    is_stated = arguments.first_rung is not None
    moved = [_moved(level, grid, per_trial.report_interval, is_stated) for level in stated]
    return _ascending(moved, per_trial)


def _moved(level: float, grid: tuple[float, ...], every: float, is_stated: bool) -> float:
    nearest = min(grid[:-1] or grid, key=lambda reported: abs(reported - level))
    is_above = level > grid[0] and not is_stated
    return nearest if is_above or report_grid.is_near(level, nearest, every) else level


def _promotion_levels(per_trial: PerTrial, arguments: PromotionArguments) -> Iterator[float]:
    total, interval = per_trial.total, per_trial.report_interval
    first = arguments.first_rung
    if first is None and interval <= total / FINE:
        lowest = round(total / FINE / interval) * interval
        above = itertools.accumulate(itertools.repeat(arguments.eta), operator.mul, initial=lowest)
        return itertools.takewhile(lambda level: level < total * 0.9, above)
    divided = itertools.accumulate(itertools.repeat(arguments.eta), operator.truediv, initial=total)
    below = itertools.islice(divided, 1, None)
    if first is None:
        return itertools.islice(below, RUNGS)
    # 9 / 3**2 may be slightly below a first rung of 1.
    lowest = first * (1 - 1e-9)
    return itertools.takewhile(lambda level: level >= lowest, below)


def step_scale(spec: StudySpec) -> int:
    """The factor that turns levels into Optuna's steps, which are whole numbers: 1 where all levels
    are whole, else the smallest power of ten that keeps them apart and above zero."""
    levels = trial_budget(spec).report_at
    if all(level == int(level) for level in levels):
        return 1
    for scale in SCALES:
        steps = [round(level * scale) for level in levels]
        if steps[0] > 0 and len(set(steps)) == len(steps):
            return scale
    return SCALES[-1]


def _report_grid(per_trial: PerTrial) -> tuple[float, ...]:
    return report_grid.grid(per_trial.unit, per_trial.total, per_trial.report_interval)


def _ascending(levels: Iterable[float], per_trial: PerTrial) -> tuple[float, ...]:
    return report_grid.ascending(levels, per_trial.unit, per_trial.total)
