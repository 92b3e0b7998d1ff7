"""A trial's budget in a study file, and the levels at which the trial reports.

A study adds its rungs to these levels.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from trials.contract import LENGTHS, ROUNDS, Budget, Problem, TaskError, Unit
from trials.settings import in_full, nearest

MOST_REPORTS = 10_000
"""The most reports of a trial: each is an evaluation, and in a study a row in the database."""
DIGITS = 6  # decimal places of a fractional level
NEAR = 0.25
"""Two levels that are at most this share of the report interval apart become one: training hardly
moves in between, and a second evaluation would cost as much as the first."""
_WHERE = "budget.per_trial"


def budget_from(per_trial: Mapping[str, Any]) -> Budget:
    """The budget of ``{epochs: 3}`` or ``{steps: 1000, report_every: 100}``. Raises TaskError if
    the unit is missing, unknown or given twice, or a number does not fit."""
    unit = _unit_of(per_trial)
    total = _positive(unit.value, per_trial[unit.value])
    stated = per_trial.get("report_every")
    every = usual_interval(unit, total) if stated is None else _positive("report_every", stated)
    problem = problem_with_interval(unit, total, every)
    if problem is not None:
        raise TaskError.at(f"{_WHERE}.report_every", problem)
    return Budget(unit, total, grid(unit, total, every))


def is_whole(unit: Unit) -> bool:
    return unit in (Unit.STEPS, Unit.SAMPLES, Unit.TOKENS, *ROUNDS)


def usual_interval(unit: Unit, total: float) -> float:
    """The default of `report_every`: 1 epoch, fold or seed, or a tenth of the total, rounded up."""
    if unit is Unit.EPOCHS or unit in ROUNDS:
        return min(1.0, total)
    tenth = total / 10
    return float(math.ceil(tenth)) if is_whole(unit) else tenth


def problem_with_interval(unit: Unit, total: float, every: float) -> str | None:
    """The problem of `report_every`, as half a sentence; None if it has none."""
    if every > total:
        whole = f"{in_full(total)} {unit.value}"
        return f"{every} is more than the whole trial ({whole}); lower it"
    if is_whole(unit) and every != int(every):
        return f"must be a whole number of {unit.value}, not {every}"
    count = total / every
    if count > MOST_REPORTS:
        return f"{count:.0f} reports a trial are more than {MOST_REPORTS}; raise report_every"
    return None


def grid(unit: Unit, total: float, every: float) -> tuple[float, ...]:
    """The multiples of `every` below `total`, and `total`. A last multiple that is near the total
    is left out: a third of 3 epochs is often written as 0.33, and 9 reports are meant."""
    # The total may be a multiple whose quotient comes out a hair too small.
    count = int(total / every * (1 + 1e-9))
    multiples = [every * number for number in range(1, count + 1)]
    if multiples and is_near(multiples[-1], total, every):
        multiples.pop()
    return ascending(multiples, unit, total)


def is_near(level: float, other: float, every: float) -> bool:
    """True if two levels become one, with reports at each multiple of `every`."""
    return abs(level - other) <= NEAR * every * (1 + 1e-9)


def ascending(levels: Iterable[float], unit: Unit, total: float) -> tuple[float, ...]:
    """Distinct levels between 0 and the total, rounded by their unit, with the total last.
    Fractions are rounded to the numbers that people write: 3 * 0.1 is 0.3."""
    if is_whole(unit):
        rounded = {float(round(level)) for level in levels}
        limit = total
    else:
        rounded = {round(level, DIGITS) for level in levels}
        limit = total - 10**-DIGITS / 2  # the total itself, rounded, is not one more level
    below = [level for level in rounded if 0 < level < limit]
    return (*sorted(below), total)


def _unit_of(per_trial: Mapping[str, Any]) -> Unit:
    units = [unit for unit in LENGTHS if unit.value in per_trial]
    names = [*(unit.value for unit in Unit), "report_every"]
    problems = []
    for key in per_trial:
        if key not in names:
            what = f"is not a part of a trial's budget; {nearest(key, names)}"
            problems.append(Problem(f"{_WHERE}.{key}", what))
    if len(units) != 1:
        found = " and ".join(unit.value for unit in units) or "none"
        what = f"needs exactly one of steps, epochs, samples, tokens or seconds, not {found}"
        problems.append(Problem(_WHERE, what))
    if problems:
        raise TaskError(problems)
    return units[0]


def _positive(key: str, value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or value <= 0:
        what = f"must be a number above 0, not {value!r}"
        raise TaskError.at(f"{_WHERE}.{key}", what)
    return float(value)
