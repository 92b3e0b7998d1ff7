"""The search space: the parameters of a configuration, and the space in Optuna's terms.

A parameter with a condition is active only while each of its parents is active and has one of the
required values; an inactive parameter is absent from a configuration. Conditions form no cycle.

A space may be *open*: then trials may also ask for parameters that it does not name, as objectives
of Optuna do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from hpsearch.study_file.parameters import (
    CategoricalParameter,
    Confidence,
    IntParameter,
    Parameter,
)
from hpsearch.study_file.types import Scalar, is_number, is_one_of
from hpsearch.study_file.validation import shown
from trials.contract import Problem, Setting
from trials.descriptions.function import OPTUNA
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
    kind: Any = IntDistribution if isinstance(parameter, IntParameter) else FloatDistribution
    distribution: BaseDistribution = kind(
        parameter.low, parameter.high, log=parameter.log, step=parameter.step
    )
    return distribution


def is_open(task: Mapping[str, Any]) -> bool:
    """True if trials of a task, the `task` part of a study file, may ask for parameters that the
    space does not name."""
    return task.get("library") == OPTUNA


class Prior(NamedTuple):
    """A value of one parameter that the user believes to be good."""

    value: Any
    confidence: Confidence


def priors(space: Space) -> dict[str, Prior]:
    """The priors of those parameters that have one."""
    believed = {name: each for name, each in space.items() if each.prior is not None}
    return {name: Prior(each.prior, each.confidence) for name, each in believed.items()}


def suggest(trial: optuna.trial.BaseTrial, space: Space) -> dict[str, Any]:
    """Draw a configuration, parents before children; inactive parameters are absent."""
    return _configured(space, lambda name: _suggest_one(trial, name, space[name]))


def _configured(space: Space, value_of: Callable[[str], Any]) -> dict[str, Any]:
    """The configuration in which each active parameter has its value."""
    params: dict[str, Any] = {}
    for name in ordered(space):
        if is_active(space[name], params):
            params[name] = value_of(name)
    return params


def _suggest_one(trial: optuna.trial.BaseTrial, name: str, parameter: Parameter) -> Scalar:
    if isinstance(parameter, CategoricalParameter):
        return trial.suggest_categorical(name, parameter.choices)
    of_kind: Any = trial.suggest_int if isinstance(parameter, IntParameter) else trial.suggest_float
    drawn: float = of_kind(
        name, parameter.low, parameter.high, step=parameter.step, log=parameter.log
    )
    return drawn


def ordered(space: Space) -> list[str]:
    """The parameters with parents before children, otherwise in the order of the file."""
    order: dict[str, None] = {}

    def place(name: str) -> None:
        for parent in space[name].when or {}:
            place(parent)
        order.setdefault(name)

    for name in space:
        place(name)
    return list(order)


def distributions(space: Space) -> dict[str, BaseDistribution]:
    """The whole space in Optuna's terms, parents before children."""
    return {name: distribution_of(space[name]) for name in ordered(space)}


def active(space: Space, params: Mapping[str, Any]) -> list[str]:
    """The parameters that a configuration with these values has, parents before children."""
    names: list[str] = []
    for name in ordered(space):
        known = {each: params[each] for each in names if each in params}
        if is_active(space[name], known):
            names.append(name)
    return names


def is_active(parameter: Parameter, params: Mapping[str, Any]) -> bool:
    """True if a parameter's condition holds, by the values of the active parameters."""
    condition = parameter.when or {}
    return all(
        parent in params and is_one_of(params[parent], values)
        for parent, values in condition.items()
    )


def problems_with(
    space: Space, params: Mapping[str, Any], *, is_open: bool = False
) -> list[Problem]:
    """The reasons why a configuration does not lie in the space; `where` is the parameter's name.

    A configuration may be incomplete: the sampler draws the rest. It may have other parameters
    where the space is open.
    """
    problems = []
    for name, value in params.items():
        if is_open and name not in space:
            continue
        what = _problem_with(space, params, name, value)
        if what is not None:
            problems.append(Problem(name, what))
    return problems


def _problem_with(space: Space, params: Mapping[str, Any], name: str, value: Any) -> str | None:
    if name not in space:
        return f"no parameter of the space has this name; {nearest(name, space)}"
    if what := space[name].problem_with(value):
        return what
    condition = space[name].when or {}
    for parent, values in condition.items():
        if parent not in params:
            continue
        given = params[parent]
        if not is_one_of(given, values):
            return f"is not active while {parent} is {shown(given)}; leave it out"
    return None


def contains(space: Space, params: Mapping[str, Any], *, is_open: bool = False) -> list[str]:
    """The reasons why a configuration does not lie in the space, as texts; empty if it does."""
    problems = problems_with(space, params, is_open=is_open)
    return [f"{problem.where}: {problem.what}" for problem in problems]


def defaults(space: Space, settings_table: Mapping[str, Setting] | None) -> dict[str, Any] | None:
    """The task's default settings as a configuration of the space, perhaps incomplete; None if no
    parameter has a default.

    A number is moved to the nearest value in the space. A default that is not among the choices is
    left to the sampler, like everything without a default.
    """
    table = settings_table or {}
    params: dict[str, Any] = {}
    for name in ordered(space):
        parameter = space[name]
        if name not in table or not is_active(parameter, params):
            continue
        value = _nearest_value(parameter, table[name].default)
        if parameter.problem_with(value) is None:
            params[name] = value
    return params or None


def largest(
    space: Space, settings: Mapping[str, Any], settings_table: Mapping[str, Setting] | None
) -> dict[str, Any]:
    """The settings that make all trials measure alike: those with the largest value that another
    setting, which is searched, can have. Fixed settings are left as they are."""
    table = settings_table or {}
    found = {}
    for name, setting in table.items():
        searched = setting.largest_of
        if searched is None or searched not in space:
            continue
        if name in settings or name in space:
            continue
        most = largest_value(space[searched])
        if space[searched].when:  # while it is inactive, its default counts
            most = max(most, table[searched].default)
        found[name] = most
    return found


def largest_value(parameter: Parameter) -> Any:
    """The largest number that a parameter can be; None if no choice is a number."""
    if isinstance(parameter, CategoricalParameter):
        return max(filter(is_number, parameter.choices), default=None)
    return parameter.high


def _nearest_value(parameter: Parameter, value: Any) -> Any:
    if isinstance(parameter, CategoricalParameter) or not is_number(value):
        return value
    low, high, step = parameter.low, parameter.high, parameter.step
    value = min(max(value, low), high)
    if step is not None and not parameter.log:
        steps = round((value - low) / step)
        on_grid = low + steps * step
        value = min(on_grid, high)  # 3 * 0.1 is slightly above 0.3
    return round(value) if isinstance(parameter, IntParameter) else float(value)


def completed(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """A whole configuration: active parameters without a value get their lowest or first one."""

    def value_of(name: str) -> Any:
        first = space[name]
        lowest = first.choices[0] if isinstance(first, CategoricalParameter) else first.low
        return params.get(name, lowest)

    return _configured(space, value_of)
