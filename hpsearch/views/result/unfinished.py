"""The trials that were not trained to the end and might still win, and what it takes to see."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from sqlalchemy import Connection

from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import sign_of
from hpsearch.search.ranking.selection import Ranked, expectation, likely_range, standing
from hpsearch.store.reading.best import waiting_trials
from hpsearch.store.reading.queries import TrialRow
from hpsearch.store.reading.standing import study_status
from hpsearch.study_file.models import StudySpec
from hpsearch.views.result.study_result import StudyResult

AMPLE = 1.5
"""The factor by which a limit leaves more than the trial is likely to take: a driver starts nothing
whose worst case does not fit."""
START_S = 30.0
"""Seconds that a new driver and its workers may take beside that."""


@dataclass(frozen=True)
class Unfinished:
    """The likeliest of the trials that might still win.

    Args:
        others: The number of other such trials.
        best: The best complete trial; None without one.
        options: The options that raise the limits which leave too little to train it to the end.
    """

    trial: TrialRow
    others: int
    best: Ranked[TrialRow] | None
    spec: StudySpec
    options: list[str] = field(default_factory=list)


def unfinished(connection: Connection, result: StudyResult) -> Unfinished | None:
    """The trials of a study that nobody works on which were not trained to the end, and whose 90%
    interval reaches beyond the result of the best complete one; None if there are none, and where a
    driver cannot train them."""
    study, spec = result.study, result.trust.spec
    has_task = spec is not None and study.base is not None and not study.is_asked
    if spec is None or not has_task or not study.has_best or study.driver is not None:
        return None
    complete = (place for place in result.ranked if place.trial.state is State.COMPLETE)
    best = next(complete, None)
    sign = sign_of(study.direction)
    may_win = [each for each in waiting_trials(connection, study) if _may_win(each, best, sign)]
    if not may_win:
        return None
    first = min(may_win, key=lambda row: (row.violation, sign * standing(row), row.number))
    options = _limits_to_raise(connection, result, spec, first)
    return Unfinished(first, len(may_win) - 1, best, spec, options)


def _may_win(row: TrialRow, best: Ranked[TrialRow] | None, sign: float) -> bool:
    if expectation(row) is None:
        return False
    if best is None:
        return True
    shown = best.value if best.again is None else best.again.mean
    beyond = min(sign * end for end in likely_range(row)) < sign * shown
    return beyond and row.violation <= best.trial.violation


def _limits_to_raise(
    connection: Connection, result: StudyResult, spec: StudySpec, row: TrialRow
) -> list[str]:
    """The options of `hpsearch resume` for limits that leave less than a full training takes."""
    budget = spec.budget
    if budget.gpu_hours is None and budget.cost is None and budget.wall_clock_s is None:
        return []
    lines = {line.name: line for line in study_status(connection, result.study, ()).budget}
    gpu_s = AMPLE * row.gpu_seconds * budget.per_trial.total / row.resource
    held_s = gpu_s / (spec.resources.stated_gpus or 1.0) + START_S
    gpu_s += START_S * (spec.resources.stated_gpus or 1.0)
    price = budget.most_price_of(None) or 0.0
    options = []
    for name, needed, option, unit in (
        ("gpu_seconds", gpu_s, "--gpu-hours", 3600.0),
        ("wall_clock_seconds", held_s, "--wall-clock", 1.0),
        ("cost", gpu_s / 3600.0 * price, "--cost", 1.0),
    ):
        line = lines.get(name)
        if line is None or line.most is None or line.most - line.used >= needed:
            continue
        suffix = "s" if option == "--wall-clock" else ""
        options.append(f"{option} {_rounded_up((line.used + needed) / unit)}{suffix}")
    return options


def _rounded_up(amount: float) -> str:
    """A number of three significant digits that is not below an amount."""
    scale = 10.0 ** (math.floor(math.log10(amount)) - 2)
    return f"{math.ceil(amount / scale) * scale:.12g}"
