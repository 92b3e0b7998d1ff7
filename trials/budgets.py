"""The trial budget as a study file states it, turned into the levels at which a trial reports."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from trials.contract import Budget, Problem, TaskError, Unit
from trials.settings import nearest

MOST_REPORTS = 10_000
"""More reports than this on the way to one trial's total are taken for a slip."""


def budget_from(per_trial: Mapping[str, Any]) -> Budget:
    """The budget that ``{epochs: 3}`` or ``{steps: 1000, report_every: 100}`` stands for.

    Without `report_every` a trial reports after each epoch, or at every tenth of its steps (rounded up), samples,
    tokens or seconds.

    Raises:
        TaskError: The unit is missing, unknown or given twice, or a number does not fit.
    """
    units = [unit for unit in Unit if unit.value in per_trial]
    names = [*(unit.value for unit in Unit), "report_every"]
    problems = [
        Problem(f"budget.per_trial.{key}", f"is no part of a trial's budget; {nearest(key, names)}")
        for key in per_trial
        if key not in names
    ]
    if len(units) != 1:
        found = " and ".join(unit.value for unit in units) or "none"
        problems.append(
            Problem("budget.per_trial", f"needs exactly one of steps, epochs, samples, tokens or seconds, not {found}")
        )
    if problems:
        raise TaskError(problems)
    unit = units[0]
    total = _positive(unit.value, per_trial[unit.value])
    stated = per_trial.get("report_every")
    every = _usual_interval(unit, total) if stated is None else _positive("report_every", stated)
    if total / every > MOST_REPORTS:
        raise TaskError(
            [
                Problem(
                    "budget.per_trial.report_every",
                    f"{every} makes {total / every:.0f} reports a trial; at most {MOST_REPORTS} are possible",
                )
            ]
        )
    return Budget(unit, total, levels(total, every))


def levels(total: float, every: float) -> tuple[float, ...]:
    """The multiples of `every` below `total`, and `total`."""
    # Rounded, so that the levels are the numbers people write: 3 * 0.1 is 0.3.
    inner = (round(i * every, 9) for i in range(1, math.ceil(total / every) + 1))
    return (*(level for level in inner if level < total), total)


def _usual_interval(unit: Unit, total: float) -> float:
    if unit is Unit.EPOCHS:
        return min(1.0, total)
    return total / 10 if unit is Unit.SECONDS else float(math.ceil(total / 10))


def _positive(key: str, value: Any) -> float:
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
    if not fits:
        raise TaskError([Problem(f"budget.per_trial.{key}", f"must be a number above 0, not {value!r}")])
    return float(value)
