"""The search space: which parameters a configuration has, and the same space in Optuna's terms.

A parameter with a condition is active only while each of its parents is active and has one of the values asked for;
an inactive parameter is absent from a configuration. Conditions form no circle: `spec_checks` sees to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hpsearch.spec import CategoricalParameter, IntParameter, Parameter
from hpsearch.spec_types import Scalar, same, shown
from trials.contract import Problem, Setting
from trials.settings import nearest

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

Space = Mapping[str, Parameter]


def distribution_of(parameter: Parameter) -> BaseDistribution:
    """The Optuna distribution a parameter is drawn from."""
    # Imported here: reading a study file and asking for help need no Optuna.
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(parameter, CategoricalParameter):
        return CategoricalDistribution(parameter.choices)
    if isinstance(parameter, IntParameter):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)


def suggest(trial: optuna.trial.BaseTrial, space: Space) -> dict[str, Any]:
    """Draw a configuration, parents before children; inactive parameters are absent."""
    params: dict[str, Any] = {}
    for name in ordered(space):
        if _is_active(space[name], params):
            params[name] = _suggest_one(trial, name, space[name])
    return params


def _suggest_one(trial: optuna.trial.BaseTrial, name: str, parameter: Parameter) -> Scalar:
    if isinstance(parameter, CategoricalParameter):
        return trial.suggest_categorical(name, parameter.choices)
    if isinstance(parameter, IntParameter):
        return trial.suggest_int(name, parameter.low, parameter.high, step=parameter.step, log=parameter.log)
    return trial.suggest_float(name, parameter.low, parameter.high, step=parameter.step, log=parameter.log)


def ordered(space: Space) -> list[str]:
    """The parameters with parents before children, otherwise as they stand in the file."""
    order: dict[str, None] = {}

    def place(name: str) -> None:
        for parent in space[name].when or {}:
            place(parent)
        order.setdefault(name)

    for name in space:
        place(name)
    return list(order)


def active(space: Space, params: Mapping[str, Any]) -> list[str]:
    """The parameters that a configuration with these values has, parents before children."""
    names: list[str] = []
    for name in ordered(space):
        if _is_active(space[name], {n: params[n] for n in names if n in params}):
            names.append(name)
    return names


def _is_active(parameter: Parameter, params: Mapping[str, Any]) -> bool:
    """Whether a parameter's condition holds, given the values of the parameters that are active."""
    return all(
        parent in params and any(same(params[parent], value) for value in values)
        for parent, values in (parameter.when or {}).items()
    )


def problems_with(space: Space, params: Mapping[str, Any]) -> list[Problem]:
    """What keeps a configuration out of the space, `where` being the parameter's name.

    A configuration may be incomplete: the sampler draws what is missing.
    """
    return [
        Problem(name, what) for name, value in params.items() if (what := _problem_with(space, params, name, value))
    ]


def _problem_with(space: Space, params: Mapping[str, Any], name: str, value: Any) -> str | None:
    if name not in space:
        return f"no parameter of the space has this name; {nearest(name, space)}"
    if what := space[name].problem_with(value):
        return what
    for parent, values in (space[name].when or {}).items():
        if parent in params and not any(same(params[parent], wanted) for wanted in values):
            return f"is not active while {parent} is {shown(params[parent])}; leave it out"
    return None


def contains(space: Space, params: Mapping[str, Any]) -> list[str]:
    """What keeps a configuration out of the space, a text each; empty if it lies inside."""
    return [f"{problem.where}: {problem.what}" for problem in problems_with(space, params)]


def defaults(space: Space, settings_table: Mapping[str, Setting] | None) -> dict[str, Any] | None:
    """The task's default settings as a configuration of the space.

    A number is moved to the nearest value the space holds; a default that is no choice of the space is left to the
    sampler, like everything without a default.

    Args:
        space: The search space.
        settings_table: The task's settings with their defaults; None where the task knows none.

    Returns: A configuration, perhaps incomplete; None if no parameter has a default.
    """
    table = settings_table or {}
    params: dict[str, Any] = {}
    for name in ordered(space):
        if name not in table or not _is_active(space[name], params):
            continue
        value = _nearest_value(space[name], table[name].default)
        if space[name].problem_with(value) is None:
            params[name] = value
    return params or None


def _nearest_value(parameter: Parameter, value: Any) -> Any:
    """A number moved onto the range and grid of a numeric parameter; anything else unchanged."""
    if isinstance(parameter, CategoricalParameter) or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    value = min(max(value, parameter.low), parameter.high)
    if parameter.step is not None and not parameter.log:
        value = parameter.low + round((value - parameter.low) / parameter.step) * parameter.step
        value = min(value, parameter.high)  # 3 * 0.1 is a hair above 0.3
    return round(value) if isinstance(parameter, IntParameter) else float(value)


def completed(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """A whole configuration: the given values, and the lowest value or first choice of what is active without one."""
    whole: dict[str, Any] = {}
    for name in ordered(space):
        if not _is_active(space[name], whole):
            continue
        parameter = space[name]
        lowest = parameter.choices[0] if isinstance(parameter, CategoricalParameter) else parameter.low
        whole[name] = params.get(name, lowest)
    return whole
