"""The space that past runs searched: stated by a study file, or inferred from their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hpsearch.bridges.draft import flow
from hpsearch.bridges.past_runs import Misfits, PastRun
from hpsearch.errors import UserError
from hpsearch.study_file.imported import as_written
from hpsearch.study_file.models import CategoricalParameter, IntParameter, Parameter
from hpsearch.study_file.reading import space_in
from hpsearch.study_file.space import Space, problems_with
from hpsearch.study_file.types import is_number, same

WIDE = 100.0
"""Positive numbers are taken to have been searched on a logarithmic scale where the largest is more
than so many times the smallest."""


def fit(runs: Sequence[PastRun], space: Space, misfits: Misfits) -> None:
    """Give the parameters of runs the types of a stated space, and note those that lie outside."""
    for run in runs:
        for name, value in run.params.items():
            if name in space:
                run.params[name] = _typed(space[name], value)
        for problem in problems_with(space, run.params):
            misfits.add(run.place, f"{problem.where}: {problem.what}")


def _typed(parameter: Parameter, value: Any) -> Any:
    """A value as the parameter has it: 32 for 32.0, and a choice for its text."""
    if isinstance(parameter, CategoricalParameter):
        if any(same(value, choice) for choice in parameter.choices):
            return value
        by_text = {str(choice).lower(): choice for choice in parameter.choices}
        return by_text.get(str(value).lower(), value)
    if isinstance(parameter, IntParameter) and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def inferred(runs: Sequence[PastRun]) -> dict[str, Parameter]:
    """The space that runs searched.

    A parameter is what its distributions say, where the source knows them. Else it is an int or a
    float between its smallest and largest value, or categorical if any value is not a number.
    Mixed whole and other numbers become floats, in the runs too.

    Raises:
        UserError: A study cannot search a parameter.
    """
    names = dict.fromkeys(name for run in runs for name in run.params)
    if not names:
        raise UserError("the runs have no parameters", "name them: --params NAME=COLUMN,...")
    written: dict[str, Any] = {}
    for name in names:
        having = [run for run in runs if name in run.params]
        drawn = [run.distributions[name] for run in having if run.distributions]
        written[name] = drawn_from(name, drawn) if drawn else _seen(name, having)
        if written[name]["type"] == "float":
            for run in having:
                run.params[name] = float(run.params[name])
    space, problems = space_in(written)
    if problems:
        lines = "; ".join(f"{problem.where}: {problem.what}" for problem in problems)
        hint = "leave the parameter out with --params, or state the space with --space"
        raise UserError(f"the parameters cannot be searched as they are: {lines}", hint)
    return space


def _seen(name: str, runs: Sequence[PastRun]) -> dict[str, Any]:
    values = [run.params[name] for run in runs]
    if not all(map(is_number, values)):
        choices = _different(values)
        if all(isinstance(each, str) for each in choices):
            choices = sorted(choices)
        return {"type": "categorical", "choices": choices}
    low, high = min(values), max(values)
    is_log = low > 0 and high / low > WIDE
    log = {"log": True} if is_log else {}
    if all(isinstance(value, int) for value in values):
        return {"type": "int", "low": low, "high": high, **log}
    return {"type": "float", "low": float(low), "high": float(high), **log}


def _different(values: Iterable[Any]) -> list[Any]:
    different: list[Any] = []
    for value in values:
        if not any(same(value, each) for each in different):
            different.append(value)
    return different


def drawn_from(name: str, drawn: Sequence[BaseDistribution]) -> dict[str, Any]:
    """A parameter, as a study file writes it, that holds all distributions that it was drawn from.

    Raises:
        UserError: It is categorical in some and a number in others.
    """
    categorical = [each for each in drawn if isinstance(each, CategoricalDistribution)]
    ranges = [each for each in drawn if isinstance(each, FloatDistribution | IntDistribution)]
    if categorical and ranges:
        raise UserError(
            f"{name} is categorical in some runs and a number in others",
            "leave it out: --params names those to keep",
        )
    if categorical:
        choices = _different(choice for each in categorical for choice in each.choices)
        return {"type": "categorical", "choices": choices}
    low, high = min(each.low for each in ranges), max(each.high for each in ranges)
    whole = all(isinstance(each, IntDistribution) for each in ranges)
    written: dict[str, Any] = {"type": "int" if whole else "float", "low": low, "high": high}
    if all(each.log for each in ranges):
        written["log"] = True
    step = ranges[0].step
    is_same = all(each == ranges[0] for each in ranges)
    if is_same and step is not None and not (whole and step == 1):
        written["step"] = step
    return written


def lines(space: Mapping[str, Parameter], runs: Sequence[PastRun]) -> list[str]:
    """The space as a study file states it, for a person to check: a line for each parameter."""
    found = []
    for name, parameter in space.items():
        having = sum(name in run.params for run in runs)
        some = f"  # in {having} of {len(runs)} runs" if having < len(runs) else ""
        found.append(f"  {flow(name)}: {flow(as_written(parameter))}{some}")
    return found
