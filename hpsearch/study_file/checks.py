"""Mistakes in a study file that take two of its parts, or the task's description, to see.

Each check is given the parts that are right by themselves and skips what is missing, so that one
mistake does not hide another. The task's description is plain data: nothing here reads a file or
imports a training library.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any

from hpsearch.domain.plugins.door import offers_of
from hpsearch.domain.plugins.offers import SamplerPlugin
from hpsearch.study_file import space as spaces
from hpsearch.study_file.expressions.meaning import Expression, Values, error_text
from hpsearch.study_file.expressions.parsing import ExpressionError
from hpsearch.study_file.methods import (
    CURVE_GP,
    LAID_OUT,
    MULTI_OBJECTIVE,
    PROMOTION,
    SAMPLERS,
    class_name,
)
from hpsearch.study_file.models import PerTrial, Resources, Search, StudyBudget
from hpsearch.study_file.parameters import (
    CategoricalParameter,
    FloatParameter,
    IntParameter,
    Parameter,
)
from hpsearch.study_file.types import AUTO, SHARE, is_number
from hpsearch.study_file.validation import shown
from trials.contract import ROUNDS, Problem, Setting, Unit
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND
from trials.descriptions.command_line import FOLD, OF_FOLDS, SEED
from trials.descriptions.description import ASK, IN_FOLDS, TaskDescription
from trials.settings import in_full, nearest

MOST_LISTED = 10  # mistakes of one kind that are looked for where each takes long to find
MOST_VALUES = 10_000  # the most values of one parameter for a sampler that lists them all in memory


@dataclass
class Draft:
    """The parts of a study file that are right by themselves; None for missing and wrong ones."""

    study: str | None = None
    task: dict[str, Any] | None = None
    settings: dict[str, Any] | None = None
    requires: tuple[Expression, ...] = ()
    budget: StudyBudget | None = None
    search: Search | None = None
    resources: Resources | None = None
    enqueue: list[dict[str, Any]] | None = None
    space: dict[str, Parameter] = field(default_factory=dict)
    names: frozenset[str] = frozenset()  # of all parameters, including the wrong ones
    metrics: dict[str, str] = field(default_factory=dict)  # of objectives and constraints, by place
    objectives: int = 1  # the number of objectives that are right
    description: TaskDescription | None = None

    @property
    def is_open(self) -> bool:
        """True if trials may ask for parameters that the space does not name."""
        return self.task is not None and spaces.is_open(self.task)

    @property
    def known_settings(self) -> Mapping[str, Setting] | None:
        """The settings that the task has; None if only its own code knows them."""
        return None if self.description is None else self.description.settings


def problems(draft: Draft) -> list[Problem]:
    conditions = list(_condition_problems(draft))
    found = [
        *_name_problems(draft),
        *_placeholder_problems(draft),
        *_setting_problems(draft),
        *conditions,
        *_metric_problems(draft),
        *_resource_problems(draft),
    ]
    if draft.budget is not None and draft.description is not None:
        found += draft.description.problems_with_budget(draft.budget.per_trial.of_one.unit)
        found += _round_problems(draft, draft.budget.per_trial, draft.task or {})
    if draft.search is not None:
        found += _search_problems(draft, draft.search)
    # A configuration can be checked only in a space without mistakes.
    if draft.space.keys() == draft.names and not conditions:
        wrong = list(_requirement_problems(draft))
        found += wrong or _enqueue_problems(draft)
    return found


def _round_problems(
    draft: Draft, per_trial: PerTrial, task: Mapping[str, Any]
) -> Iterator[Problem]:
    unit, kind = per_trial.unit, task.get("kind")
    if unit not in ROUNDS:
        return
    where, told = f"budget.per_trial.{unit.value}", FOLD if unit is Unit.FOLDS else SEED
    if kind == COMMAND.kind and f"{{{told}}}" not in str(task.get("run")):
        what = f"the command does not use {{{told}}}, so that all {unit.value} are alike"
        yield Problem(where, f"{what}; write it where the program takes it")
    if kind == ASK.kind or "library" in task:
        whose = "the program that asks for trials" if kind == ASK.kind else str(task["library"])
        hint = "leave it out, and report the mean of what it trains"
        yield Problem(where, f"{whose} decides itself what a trial trains; {hint}")
    if draft.resources is not None and draft.resources.processes > 1:
        yield Problem("resources.processes", f"{unit.value} are trained by one process; use 1")
    if kind in BUILT_IN and per_trial.folds and IN_FOLDS not in str(task["validation"]):
        what = "the folds of task.train are what trials are measured on"
        yield Problem("task.validation", f"{what}; remove it, or put its rows into task.train")


def _name_problems(draft: Draft) -> Iterator[Problem]:
    settings = draft.settings or {}
    for name in sorted(draft.names):
        if not name or not name.isprintable() or name.startswith("$"):
            what = "is not a name; use letters, digits and marks such as _ or /"
            yield Problem(f"space.{name}", what)
    for name in sorted(draft.names & settings.keys()):
        yield Problem(f"space.{name}", "is also fixed under settings; keep it in one of the two")
    known = draft.known_settings
    if known is None:
        return
    for section, names in (("settings", settings.keys()), ("space", draft.names)):
        for name in sorted(names - known.keys()):
            what = f"the task has no such setting; {nearest(name, known)}"
            yield Problem(f"{section}.{name}", what)


def _placeholder_problems(draft: Draft) -> list[Problem]:
    if draft.task is None or draft.description is None or draft.settings is None:
        return []
    has_values = {name: _always_has_a_value(draft, name) for name in sorted(draft.names)}
    if draft.budget is None or draft.budget.per_trial.folds:
        used = [name for name in OF_FOLDS if f"{{{name}}}" in str(draft.task.get("run"))]
        has_values |= dict.fromkeys(used, True)
    return draft.description.problems_with_names(draft.task, draft.settings, has_values)


def _always_has_a_value(draft: Draft, name: str) -> bool:
    parameter = draft.space.get(name)
    if parameter is None:
        return True
    is_nullable = isinstance(parameter, CategoricalParameter) and None in parameter.choices
    return not parameter.when and not is_nullable


def _resource_problems(draft: Draft) -> Iterator[Problem]:
    if draft.resources is not None and draft.resources.processes > 1:
        yield from _process_problems(draft, draft.resources)
        return
    gpu = AUTO if draft.resources is None else draft.resources.gpu
    kind = (draft.task or {}).get("kind")
    if gpu == SHARE and kind == ASK.kind:
        what = "the program that asks for trials puts them on GPUs"
        yield Problem("resources.gpu", f"{what}; write the share of each, such as 0.25")
    if draft.known_settings is not None and isinstance(gpu, float) and gpu > 1:
        what = f"a trial of this task trains on one GPU, and {gpu:g} would be reserved"
        hint = "use 1 or a share of one, and more workers for more GPUs"
        yield Problem("resources.gpu", f"{what}; {hint}")


def _process_problems(draft: Draft, resources: Resources) -> Iterator[Problem]:
    kind = str((draft.task or {}).get("kind"))
    hints = {
        COMMAND.kind: "let the command start them, such as with torchrun --standalone",
        ASK.kind: "let the program that asks for trials start them",
    }
    if kind in hints:
        what = f"a trial of {kind} is trained by one process here"
        yield Problem("resources.processes", f"{what}; {hints[kind]}")
    if kind in BUILT_IN:
        yield from _rank_problems(draft, resources.processes)
    if resources.gpu not in (AUTO, 0.0, 1.0):
        what = f"each of several processes trains on a GPU of its own, not {shown(resources.gpu)}"
        yield Problem("resources.gpu", f"{what}; use 1, or 0 for CPUs")


def _rank_problems(draft: Draft, processes: int) -> Iterator[Problem]:
    for where, value in _values_of(draft, "batch_size"):
        if is_number(value) and value < processes:
            what = f"a batch of {value} leaves some of {processes} processes without a sample"
            yield Problem(where, f"{what}; use at least {processes}, or lower resources.processes")


def _values_of(draft: Draft, name: str) -> Iterator[tuple[str, Any]]:
    """The places and values of a setting: a fixed one, choices, or the ends of a range."""
    if name in (draft.settings or {}):
        yield f"settings.{name}", (draft.settings or {})[name]
    if name in draft.space:
        yield from _values_at(f"space.{name}", draft.space[name]).items()


def _setting_problems(draft: Draft) -> Iterator[Problem]:
    known = draft.known_settings or {}
    for name, value in (draft.settings or {}).items():
        if name in known and (what := known[name].problem_with(value)):
            yield Problem(f"settings.{name}", what)
    for name, parameter in draft.space.items():
        if name in known:
            yield from _parameter_problems(f"space.{name}", parameter, known[name])


def _parameter_problems(where: str, parameter: Parameter, setting: Setting) -> Iterator[Problem]:
    is_range = not isinstance(parameter, CategoricalParameter)
    if is_range and setting.type not in (int, float):
        yield Problem(f"{where}.type", "the setting is not a number; use type: categorical")
    elif is_range and setting.type is int and not isinstance(parameter, IntParameter):
        yield Problem(f"{where}.type", "the setting is a whole number; use type: int")
    else:
        for place, value in _values_at(where, parameter).items():
            if what := setting.problem_with(value):
                yield Problem(place, what)


def _values_at(where: str, parameter: Parameter) -> dict[str, Any]:
    """The choices of a parameter, or the ends of its range, by their places."""
    if isinstance(parameter, CategoricalParameter):
        return {f"{where}.choices[{i}]": choice for i, choice in enumerate(parameter.choices)}
    return {f"{where}.low": parameter.low, f"{where}.high": parameter.high}


def _condition_problems(draft: Draft) -> Iterator[Problem]:
    for name, parameter in draft.space.items():
        if isinstance(parameter.when, Expression):
            if not draft.space.keys() >= draft.names & set(parameter.when.names):
                continue  # it is checked once they are right
            others = {each: draft.space[each] for each in draft.space if each != name}
            what = _problem_with_expression(parameter.when, others, "other parameter")
            if what is not None:
                yield Problem(f"space.{name}.when", what)
            continue
        for parent, values in (parameter.when or {}).items():
            where = f"space.{name}.when.{parent}"
            searched = draft.space.get(parent)
            if what := _problem_with_parent(draft, name, parent, values):
                yield Problem(where, what)
            elif searched is not None:
                wrong = filter(None, map(searched.problem_with, values))
                yield from (Problem(where, f"the condition {what}") for what in wrong)
    parents = {
        name: draft.space.keys() & set(spaces.parents(parameter)) - {name}
        for name, parameter in draft.space.items()
    }
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        cycle = error.args[1]
        what = f"the conditions form a cycle ({' -> '.join(cycle)}); remove one of them"
        yield Problem(f"space.{cycle[0]}.when", what)


def _problem_with_expression(
    expression: Expression, parameters: Mapping[str, Parameter], sought: str
) -> str | None:
    known: dict[str, Values] = {name: (each,) for name, each in expression.settings.items()}
    for name, each in parameters.items():
        known[name] = each.choices if isinstance(each, CategoricalParameter) else None
    try:
        expression.check(known, sought)
    except ExpressionError as error:
        return error_text(error)
    if not expression.names:
        return "names no parameter of the space; name one, or remove it"
    return None


def _requirement_problems(draft: Draft) -> Iterator[Problem]:
    if not draft.requires:
        return
    wrong = False
    for i, requirement in enumerate(draft.requires):
        what = _problem_with_expression(requirement, draft.space, "parameter or fixed setting")
        if what is not None:
            wrong = True
            yield Problem(f"requires[{i}]", what)
    if wrong or spaces.drawn(draft.space, draft.requires, 0) is not None:
        return
    for i, requirement in enumerate(draft.requires[:MOST_LISTED]):
        if spaces.drawn(draft.space, [requirement], 0) is None:
            wrong = True
            count = spaces.most_draws(draft.space, [requirement])
            what = f"none of {count} random configurations keeps it; loosen it"
            yield Problem(f"requires[{i}]", what)
    if not wrong:
        count = spaces.most_draws(draft.space, draft.requires)
        what = f"none of {count} random configurations keeps all of them"
        yield Problem("requires", f"{what}; loosen one")


def _problem_with_parent(
    draft: Draft, name: str, parent: str, values: tuple[Any, ...]
) -> str | None:
    if parent == name:
        return "a parameter cannot depend on itself; name another one"
    if parent not in draft.names:
        if parent in (draft.settings or {}):
            fixed = f"{parent} is fixed under settings"
            return f"{fixed}; remove the condition, or search {parent} too"
        hint = nearest(parent, draft.names - {name})
        return f"no parameter of the space has this name; {hint}"
    if not values:
        return "lists no value, so the parameter is never active; give at least one"
    return None


def _metric_problems(draft: Draft) -> Iterator[Problem]:
    known = draft.description.metrics if draft.description else None
    places: dict[str, str] = {}
    for where, metric in draft.metrics.items():
        first = places.setdefault(metric, where) if where.startswith("objective") else where
        if first != where:
            other = first.split(".")[0]
            yield Problem(where, f"is already the metric of {other}; name another one")
        if known is not None and metric not in known:
            hint = nearest(metric, sorted(known))
            yield Problem(where, f"the task does not report {shown(metric)}; {hint}")
    yield from _token_problems(draft)


def _token_problems(draft: Draft) -> Iterator[Problem]:
    if draft.description is None or draft.description.per_token is None:
        return
    if len(dict(_values_of(draft, "model"))) < 2:
        return
    incomparable, comparable = draft.description.per_token
    for where, metric in draft.metrics.items():
        if metric in incomparable:
            what = f"{metric} is a mean over tokens, and the models of space.model may have others"
            yield Problem(where, f"{what}, so it does not compare them; use {comparable}")


def _search_problems(draft: Draft, search: Search) -> Iterator[Problem]:
    yield from _sampler_problems(draft, search)
    yield from _dimension_problems(draft, search)
    yield from _warm_start_problems(draft, search)
    if draft.objectives > 1:
        yield from _several_problems(search)
    if search.certify:
        yield from _certify_problems(draft, search)
    if draft.budget is None:
        return
    if draft.objectives > 1 and draft.budget.worth is not None:
        what = "is a gain of one objective, and there are several; remove it"
        yield Problem("budget.worth", what)
    first = search.pruner.arguments.get("first_rung") or 0
    per_trial = draft.budget.per_trial
    if first > per_trial.total:
        budget = f"{in_full(per_trial.total)} {per_trial.unit.value}"
        what = f"{first} is above the trial budget ({budget}); lower it"
        yield Problem("search.pruner.first_rung", what)


def _sampler_problems(draft: Draft, search: Search) -> Iterator[Problem]:
    kind, name = search.sampler.kind, class_name(search.sampler)
    if draft.is_open and not draft.names and name in LAID_OUT:
        what = f"{kind} needs the whole space in advance, and the objective names it as it runs"
        yield Problem("search.sampler", f"{what}; use another, or write parameters under space")
    able = f"use {CURVE_GP}, or " if draft.objectives == 1 else ""
    for parameter_name, parameter in draft.space.items():
        where = f"space.{parameter_name}"
        if parameter.has_prior and name != CURVE_GP:
            what = f"the sampler {kind} does not take priors into account"
            yield Problem(f"{where}.prior", f"{what}; {able}remove prior")
        if name == "BruteForceSampler" and not isinstance(parameter, CategoricalParameter):
            yield from _endless_problems(kind, where, parameter)


def _dimension_problems(draft: Draft, search: Search) -> Iterator[Problem]:
    if search.sampler.kind != CURVE_GP:
        return
    dimensions = sum(map(spaces.dimensions_of, draft.space.values()))
    if dimensions > spaces.MOST_DIMENSIONS:
        what = f"{CURVE_GP} models at most {spaces.MOST_DIMENSIONS} parameters and choices in all"
        hint = "use another sampler, such as tpe, or type: int and type: float for numbers"
        yield Problem("search.sampler", f"{what}, not {dimensions}; {hint}")


def _endless_problems(
    kind: str, where: str, parameter: FloatParameter | IntParameter
) -> Iterator[Problem]:
    what = f"{kind} tries every value, and this parameter has"
    if parameter.step is None:
        hint = "infinitely many; add a step, or use another sampler"
        yield Problem(where, f"{what} {hint}")
    elif (parameter.high - parameter.low) / parameter.step > MOST_VALUES:
        hint = f"over {MOST_VALUES}; raise step, or use another sampler"
        yield Problem(where, f"{what} {hint}")


def _warm_start_problems(draft: Draft, search: Search) -> Iterator[Problem]:
    if search.warm_start is None:
        return
    if draft.objectives > 1:
        what = "compares results by one objective, and there are several; remove it"
        yield Problem("search.warm_start", what)
    elif draft.is_open and not draft.names:
        what = "compares parameters that both studies name under space, and this one names none"
        yield Problem("search.warm_start", f"{what}; name them, or remove warm_start")
    elif search.sampler.kind != CURVE_GP:
        what = f"the sampler {search.sampler.kind} does not take earlier studies into account"
        yield Problem("search.warm_start", f"{what}; use {CURVE_GP}, or remove warm_start")
    if draft.study is not None and search.warm_start != AUTO and draft.study in search.warm_start:
        place = search.warm_start.index(draft.study)
        what = "is the name of this study; name earlier ones"
        yield Problem(f"search.warm_start[{place}]", what)


def _certify_problems(draft: Draft, search: Search) -> Iterator[Problem]:
    if draft.objectives > 1:
        what = "compares the best trial by one objective, and there are several; remove it"
        yield Problem("search.certify", what)
    if search.confirm is not None:
        what = "repeats the best trial and the defaults, and confirm the best trials"
        yield Problem("search.certify", f"{what}; keep one of them")
    is_known = draft.space.keys() == draft.names
    settings, requires = draft.known_settings, draft.requires
    if is_known and not draft.enqueue and not spaces.defaults(draft.space, settings, requires):
        what = "compares with the default settings, and none are known of the parameters of space"
        hint = "write the configuration that you use today as the first one under enqueue"
        yield Problem("search.certify", f"{what}; {hint}")


def _several_problems(search: Search) -> Iterator[Problem]:
    sampler, pruner = search.sampler, search.pruner
    able = {name: long in MULTI_OBJECTIVE for name, long in SAMPLERS.items()}
    able |= {name: each.several for name, each in offers_of(SamplerPlugin).items()}
    if not {CURVE_GP: False, **able}.get(sampler.kind, True):
        others = ", ".join(name for name, takes_several in able.items() if takes_several)
        what = f"{sampler.kind} supports only one objective; use one of {others}"
        yield Problem("search.sampler", what)
    if pruner.kind not in (PROMOTION, "none"):
        what = f"{pruner.kind} supports only one objective; use none or promotion"
        yield Problem("search.pruner", what)
    if search.confirm is not None:
        what = "repeats the best trials by one objective, and there are several; remove it"
        yield Problem("search.confirm", what)


def _enqueue_problems(draft: Draft) -> Iterator[Problem]:
    wrong = 0
    for i, configuration in enumerate(draft.enqueue or []):
        if wrong == MOST_LISTED:
            return
        problems = spaces.problems_with(
            draft.space, configuration, is_open=draft.is_open, requires=draft.requires
        )
        wrong += bool(problems)
        for problem in problems:
            where = f"enqueue[{i}].{problem.where}".removesuffix(".")
            yield Problem(where, problem.what)
