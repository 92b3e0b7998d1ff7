"""Trials side by side: what they were, how they did, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rich.console import RenderableType

from hpsearch.result.comparison import common_levels, differences, parameter_names
from hpsearch.store.reading.queries import TrialDetail
from hpsearch.terminal.tables import NUMERIC, Head, Width, table
from hpsearch.words.estimates import expected, values
from hpsearch.words.numbers import NOTHING, cell, count, duration, number

MOST_LEVELS = 12
"""Resource levels at which values are compared, at the most."""


def comparison(trials: Sequence[TrialDetail], width: Width) -> list[RenderableType]:
    """Tables with a column for each of two or more trials: its facts, the parameters in which they
    differ, and its values at the levels that all of them reached."""
    heads: list[Head] = ["", *((f"trial {each.trial.number}", NUMERIC) for each in trials)]
    parts: list[RenderableType] = []
    facts = table(*heads, width=width)
    for name, of in _FACTS.items():
        facts.add_row(name, *(of(each) for each in trials))
    parts.append(facts)
    differing = differences(trials)
    if differing:
        params = table(*heads, width=width, title="\nparameters that differ")
        for name, found in differing.items():
            params.add_row(name, *map(cell, found))
        parts.append(params)
    alike = len(parameter_names(trials)) - len(differing)
    parts.append(f"{count(alike, 'parameter')} alike" if differing else "\nthe same parameters")
    levels = common_levels(trials)
    if levels:
        values_at = table(*heads, width=width, title="\nvalues at the same resource")
        for level in _thinned(levels):
            values_at.add_row(number(level), *(number(_value_at(each, level)) for each in trials))
        parts.append(values_at)
    return parts


def _thinned(levels: Sequence[float]) -> list[float]:
    """At most so many of them, the first and the last included."""
    if len(levels) <= MOST_LEVELS:
        return list(levels)
    step = (len(levels) - 1) / (MOST_LEVELS - 1)
    return [levels[round(place * step)] for place in range(MOST_LEVELS)]


def _value_at(of: TrialDetail, level: float) -> float | None:
    for report in of.reports:
        if report["resource"] == level:
            found: float | None = report["value"]
            return found
    return None


def _last_decision(of: TrialDetail) -> str:
    if not of.decisions:
        return NOTHING
    last = of.decisions[-1]
    return f"{last['kind']}: {last['why']}"


_FACTS: dict[str, Callable[[TrialDetail], str]] = {
    "state": lambda of: of.trial.state.value,
    "value": lambda of: values(of.trial),
    "if trained again (90%)": lambda of: expected(of.trial),
    "resource": lambda of: number(of.trial.resource),
    "compute time": lambda of: duration(of.trial.gpu_seconds),
    "attempts": lambda of: str(len(of.attempts)),
    "error": lambda of: of.trial.error_kind or NOTHING,
    "last decision": _last_decision,
}
