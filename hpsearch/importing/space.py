"""The space that past runs searched: stated by a study file, or inferred from their values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hpsearch.errors import UserError
from hpsearch.importing.runs import Misfits, PastRun
from hpsearch.study_file.models import CategoricalParameter, IntParameter, Parameter
from hpsearch.study_file.reading import space_in
from hpsearch.study_file.space import Space, problems_with
from hpsearch.study_file.types import is_number, same

WIDE = 100.0
"""Positive numbers whose largest is more than so many times the smallest, two decades, are taken to
have been searched on a logarithmic scale."""


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
        UserError: A parameter is not one that a study can search.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.params))
    written: dict[str, Any] = {}
    for name in names:
        having = [run for run in runs if name in run.params]
        drawn = [run.distributions[name] for run in having if run.distributions]
        if drawn:
            written[name] = _drawn(name, drawn)
        else:
            written[name] = _seen([run.params[name] for run in having])
        if written[name]["type"] == "float":
            for run in having:
                run.params[name] = float(run.params[name])
    if not written:
        raise UserError("the runs have no parameters", "name them: --params NAME=COLUMN,...")
    space, problems = space_in(written)
    if problems:
        lines = "; ".join(f"{problem.where}: {problem.what}" for problem in problems)
        hint = "leave the parameter out with --params, or state the space with --space"
        raise UserError(f"the parameters cannot be searched as they are: {lines}", hint)
    return space


def _seen(values: Sequence[Any]) -> dict[str, Any]:
    if not all(map(is_number, values)):
        return {"type": "categorical", "choices": _different(values)}
    low, high = min(values), max(values)
    kind = "int" if all(isinstance(value, int) for value in values) else "float"
    if kind == "float":
        low, high = float(low), float(high)
    log = low > 0 and high / low > WIDE
    return {"type": kind, "low": low, "high": high} | ({"log": True} if log else {})


def _different(values: Sequence[Any]) -> list[Any]:
    different: list[Any] = []
    for value in values:
        if not any(same(value, each) for each in different):
            different.append(value)
    if all(map(is_number, different)) or all(isinstance(each, str) for each in different):
        return sorted(different)
    return different


def _drawn(name: str, drawn: Sequence[BaseDistribution]) -> dict[str, Any]:
    """A parameter that holds all distributions that it was drawn from."""
    categorical = [each for each in drawn if isinstance(each, CategoricalDistribution)]
    if categorical and len(categorical) < len(drawn):
        raise UserError(
            f"{name} is categorical in some runs and a number in others",
            "leave it out: --params names those to keep",
        )
    if categorical:
        choices = [choice for each in categorical for choice in each.choices]
        return {"type": "categorical", "choices": _different_in_order(choices)}
    ranges = [each for each in drawn if isinstance(each, FloatDistribution | IntDistribution)]
    return _range(ranges)


def _different_in_order(values: Sequence[Any]) -> list[Any]:
    different: list[Any] = []
    for value in values:
        if not any(same(value, each) for each in different):
            different.append(value)
    return different


def _range(ranges: Sequence[FloatDistribution | IntDistribution]) -> dict[str, Any]:
    low, high = min(each.low for each in ranges), max(each.high for each in ranges)
    whole = all(isinstance(each, IntDistribution) for each in ranges)
    written: dict[str, Any] = {"type": "int" if whole else "float", "low": low, "high": high}
    if all(each.log for each in ranges):
        written["log"] = True
    steps = {(each.low, each.high, each.step) for each in ranges}
    step = ranges[0].step
    if len(steps) == 1 and step is not None and not (whole and step == 1):
        written["step"] = step
    return written


def lines(space: Mapping[str, Parameter], runs: Sequence[PastRun]) -> list[str]:
    """The space for a person to check: a line for each parameter."""
    width = max(map(len, space))
    return [f"  {name:<{width}}  {_told(space[name], name, runs)}" for name in space]


def _told(parameter: Parameter, name: str, runs: Sequence[PastRun]) -> str:
    having = sum(name in run.params for run in runs)
    some = f", in {having} of {len(runs)} runs" if having < len(runs) else ""
    if isinstance(parameter, CategoricalParameter):
        choices = ", ".join(map(str, parameter.choices[:12]))
        more = ", ..." if len(parameter.choices) > 12 else ""
        return f"categorical: {choices}{more}{some}"
    scale = ", logarithmic" if parameter.log else ""
    apart = parameter.step not in (None, 1) or (parameter.step == 1 and parameter.type != "int")
    step = f", step {parameter.step:g}" if apart else ""
    low, high = _number(parameter.low), _number(parameter.high)
    return f"{parameter.type} from {low} to {high}{scale}{step}{some}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) or not math.isfinite(value) else f"{value:.6g}"
