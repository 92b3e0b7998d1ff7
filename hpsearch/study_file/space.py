"""The search space: the parameters of a configuration, and the space in Optuna's terms.

A parameter with a condition is active only while each of its parents is active and has one of the
required values, or while its expression holds; an inactive parameter is absent from a
configuration. Conditions form no cycle.

A requirement holds in every configuration in which all parameters that it names are active.

A space may be *open*: then trials may also ask for parameters that it does not name, as objectives
of Optuna do.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from hpsearch.domain.plugins.door import offers_of
from hpsearch.domain.plugins.offers import LibraryPlugin
from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.parameters import (
    CategoricalParameter,
    Confidence,
    IntParameter,
    Parameter,
    grid_point,
)
from hpsearch.study_file.types import is_number, is_one_of
from hpsearch.study_file.validation import shown
from trials.contract import Problem, Setting
from trials.settings import as_scalar, nearest

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

    from hpsearch.study_file.models import StudySpec

MOST_DRAWS = 10_000
"""The most random configurations among which one that keeps all requirements is looked for."""
MOST_DIMENSIONS = 2_000  # the most features of a configuration that the model of curves takes
MOST_WORK = 2_000_000
"""The most parameters and terms of requirements that are looked at in doing so: some seconds."""

Space = Mapping[str, Parameter]


class WrittenChoice(str):
    """A choice that is a list or a mapping, in Optuna's terms: its JSON text. Optuna's storages,
    samplers and pictures take numbers, texts, true, false and null."""

    choice: Any


def in_optuna(value: Any) -> Any:
    """A value of a parameter in Optuna's terms."""
    text = as_scalar(value)
    if text is value:
        return value
    written = WrittenChoice(text)
    written.choice = value
    return written


def from_optuna(value: Any) -> Any:
    return copy.deepcopy(value.choice) if isinstance(value, WrittenChoice) else value


def distribution_of(parameter: Parameter) -> BaseDistribution:
    # Imported here: reading a study file and asking for help need no Optuna.
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(parameter, CategoricalParameter):
        return CategoricalDistribution(list(map(in_optuna, parameter.choices)))
    kind: Any = IntDistribution if isinstance(parameter, IntParameter) else FloatDistribution
    distribution: BaseDistribution = kind(
        parameter.low, parameter.high, log=parameter.log, step=parameter.step
    )
    return distribution


def value_of(distribution: BaseDistribution, internal: float) -> Any:
    """The value that Optuna keeps as a number, as people write it."""
    from optuna.distributions import FloatDistribution

    value = from_optuna(distribution.to_external_repr(internal))
    if isinstance(distribution, FloatDistribution) and distribution.step is not None:
        low, step = distribution.low, distribution.step
        return grid_point(low, step, (value - low) / step)
    return value


def distribution_in(text: str) -> BaseDistribution:
    """The distribution in a JSON text as Optuna writes it, in which choices may be lists and
    mappings. Raises ValueError if it is not one."""
    from optuna.distributions import CategoricalDistribution, json_to_distribution

    content = json.loads(text)
    if content.get("name") != CategoricalDistribution.__name__:
        return json_to_distribution(text)
    return CategoricalDistribution(list(map(in_optuna, content["attributes"]["choices"])))


def is_open(task: Mapping[str, Any]) -> bool:
    """True if trials may ask for parameters that the space does not name, by their library."""
    library = offers_of(LibraryPlugin).get(task.get("library", ""))
    return library is not None and library.asks


class Prior(NamedTuple):
    """A value of one parameter that the user believes to be good."""

    value: Any
    confidence: Confidence


def priors(space: Space) -> dict[str, Prior]:
    believed = {name: each for name, each in space.items() if each.has_prior}
    return {name: Prior(each.prior, each.confidence) for name, each in believed.items()}


def suggest(trial: optuna.trial.BaseTrial, space: Space) -> dict[str, Any]:
    """Draw a configuration, parents before children; inactive parameters are absent."""
    return _configured(space, lambda name: _suggest_one(trial, name, space[name]))


def _configured(space: Space, value_of: Callable[[str], Any]) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for name in ordered(space):
        if is_active(space[name], params):
            params[name] = value_of(name)
    return params


def _suggest_one(trial: optuna.trial.BaseTrial, name: str, parameter: Parameter) -> Any:
    if isinstance(parameter, CategoricalParameter):
        choices = list(map(in_optuna, parameter.choices))
        return parameter.choices[choices.index(trial.suggest_categorical(name, choices))]
    of_kind: Any = trial.suggest_int if isinstance(parameter, IntParameter) else trial.suggest_float
    drawn: float = of_kind(
        name, parameter.low, parameter.high, step=parameter.step, log=parameter.log
    )
    return parameter.value_at(parameter.index_of(drawn))


def parents(parameter: Parameter) -> Collection[str]:
    when = parameter.when
    return when.names if isinstance(when, Expression) else tuple(when or ())


def dimensions_of(parameter: Parameter) -> int:
    """The number of features that a parameter is modelled by: one for numbers, else its choices."""
    if not isinstance(parameter, CategoricalParameter):
        return 1
    return 1 if all(map(is_number, parameter.choices)) else len(parameter.choices)


def ordered(space: Space) -> list[str]:
    """The parameters with parents before children, otherwise in the order of the file."""
    order: dict[str, None] = {}
    for name in space:
        waiting = [name]
        while waiting:
            ahead = [each for each in parents(space[waiting[-1]]) if each not in order]
            if ahead:
                waiting.append(ahead[0])
            else:
                order.setdefault(waiting.pop())
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
    when = parameter.when
    if isinstance(when, Expression):
        return when.holds(params)
    return all(
        parent in params and is_one_of(params[parent], values)
        for parent, values in (when or {}).items()
    )


def broken(requires: Sequence[Expression], params: Mapping[str, Any]) -> Expression | None:
    """The first requirement that a configuration, perhaps incomplete, breaks, if any."""
    for requirement in requires:
        if params.keys() >= set(requirement.names) and not requirement.holds(params):
            return requirement
    return None


def most_draws(space: Space, requires: Sequence[Expression]) -> int:
    """The number of random configurations that are tried: fewer where each takes long."""
    terms = sum(len(each.text) for each in requires) // 8
    return min(MOST_DRAWS, max(100, MOST_WORK // (1 + len(space) + terms)))


def draws(
    space: Space, requires: Sequence[Expression], seed: int, given: Mapping[str, Any] | None = None
) -> Iterator[dict[str, Any]]:
    """Random configurations with given values: of `most_draws`, those that keep requirements."""
    import numpy as np  # here: few study files need it, and it takes long to import

    rng = np.random.default_rng(seed)
    fixed = given or {}

    def value_of(name: str) -> Any:
        return fixed[name] if name in fixed else space[name].at(rng.random())

    for _ in range(most_draws(space, requires)):
        params = _configured(space, value_of)
        if broken(requires, params) is None:
            yield params


def drawn(
    space: Space, requires: Sequence[Expression], seed: int, given: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """The first of the `draws`; None if there is none."""
    return next(draws(space, requires, seed, given), None)


def problems_with(
    space: Space,
    params: Mapping[str, Any],
    *,
    is_open: bool = False,
    requires: Sequence[Expression] = (),
) -> list[Problem]:
    """The reasons why a configuration does not lie in the space, or breaks a requirement; `where`
    is the parameter's name, or empty. It may be incomplete, and have other parameters where the
    space is open."""
    problems = []
    given = as_written(space, params)
    for name, value in params.items():
        if is_open and name not in space:
            continue
        what = _problem_with(space, given, name, value)
        if what is not None:
            problems.append(Problem(name, what))
    if problems or not requires:
        return problems
    if (requirement := broken(requires, given)) is not None:
        return [Problem("", f"breaks the requirement {requirement.text}")]
    if drawn(space, requires, 0, given) is None:
        count = most_draws(space, requires)
        what = f"of {count} configurations with these values none keeps all requirements"
        return [Problem("", f"{what}; leave some of them out")]
    return []


def _problem_with(space: Space, params: Mapping[str, Any], name: str, value: Any) -> str | None:
    if name not in space:
        return f"no parameter of the space has this name; {nearest(name, space)}"
    if what := space[name].problem_with(value):
        return what
    when = space[name].when
    if isinstance(when, Expression):
        decided = params.keys() >= set(when.names)
        if decided and not when.holds(params):
            return f"is only active when {when.text}; leave it out"
        return None
    for parent, values in (when or {}).items():
        if parent not in params:
            continue
        given = params[parent]
        if not is_one_of(given, values):
            return f"is not active while {parent} is {shown(given)}; leave it out"
    return None


def as_written(space: Space, params: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as people write it: of a grid 0.3 and not 0.30000000000000004."""
    found = dict(params)
    for name in params.keys() & space.keys():
        parameter: Any = space[name]
        if parameter.problem_with(params[name]) is None:
            found[name] = parameter.value_at(parameter.index_of(params[name]))
    return found


def contains(spec: StudySpec, params: Mapping[str, Any]) -> list[str]:
    """The reasons why a study cannot try a configuration, as texts; empty if it can."""
    problems = problems_with(spec.space, params, is_open=is_open(spec.task), requires=spec.requires)
    return [f"{each.where}: {each.what}" if each.where else each.what for each in problems]


def defaults(
    space: Space, settings_table: Mapping[str, Setting] | None, requires: Sequence[Expression] = ()
) -> dict[str, Any] | None:
    """The task's default settings as a configuration of the space, perhaps incomplete; None if no
    parameter has a default. A number is moved to the nearest value. A default that is not among the
    choices is left to the sampler, and so are the parameters of a requirement that the defaults
    break."""
    table = settings_table or {}
    params: dict[str, Any] = {}
    for name in ordered(space):
        parameter = space[name]
        if name not in table or not is_active(parameter, params):
            continue
        value = _nearest_value(parameter, table[name].default)
        if parameter.problem_with(value) is None:
            params[name] = value
    params = _keeping(requires, params)
    if requires and drawn(space, requires, 0, params) is None:
        return None
    return params or None


def _keeping(requires: Sequence[Expression], params: dict[str, Any]) -> dict[str, Any]:
    """A configuration without the parameters of the requirements that it breaks."""
    while (requirement := broken(requires, params)) is not None:
        params = {name: params[name] for name in params if name not in requirement.names}
    return params


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
    inside = min(max(value, parameter.low), parameter.high)
    on_grid = parameter.value_at(parameter.index_of(inside))
    return round(on_grid) if isinstance(parameter, IntParameter) else float(on_grid)


def completed(
    space: Space, params: Mapping[str, Any], requires: Sequence[Expression] = ()
) -> dict[str, Any]:
    """A whole configuration: active parameters without a value get their lowest or first one.
    Where a requirement would break, they get random ones, and so does what breaks it already."""
    params = as_written(space, params)

    def value_of(name: str) -> Any:
        first = space[name]
        lowest = first.choices[0] if isinstance(first, CategoricalParameter) else first.low
        return params.get(name, lowest)

    found = _configured(space, value_of)
    if broken(requires, found) is None:
        return found
    random = drawn(space, requires, 0, _keeping(requires, dict(params)))
    random = random or drawn(space, requires, 0)
    assert random is not None, "as many were drawn when the study file was read"
    return random
