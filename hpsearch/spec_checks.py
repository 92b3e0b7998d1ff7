"""Mistakes of a study file that take two of its parts to see, or what the task knows about itself.

Each check is given the parts that are right by themselves and skips what is missing, so that one mistake does not
hide another. The task's description comes in as data: nothing here reads a file or imports a training library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hpsearch import space as spaces
from hpsearch.levels import PROMOTION
from hpsearch.methods import MULTI_OBJECTIVE, PRUNERS, SAMPLERS, pruner_problems, sampler_problems
from hpsearch.spec import CategoricalParameter, Confirm, FloatParameter, IntParameter, Method, Parameter, PerTrial
from hpsearch.spec_types import shown
from trials.contract import Problem, Setting
from trials.settings import nearest
from trials.tasks.description import TaskDescription


@dataclass
class Draft:
    """The parts of a study file that are right by themselves; None for one that is missing or wrong."""

    settings: dict[str, Any] | None = None
    space: dict[str, Parameter] = field(default_factory=dict)
    """The parameters that are right by themselves."""
    names: frozenset[str] = frozenset()
    """The names of all parameters, also of the wrong ones."""
    metrics: dict[str, str] = field(default_factory=dict)
    """The metrics of objectives and constraints, by place."""
    objectives: int = 1
    """How many there are."""
    per_trial: PerTrial | None = None
    sampler: Method | None = None
    pruner: Method | None = None
    confirm: Confirm | None = None
    enqueue: list[dict[str, Any]] | None = None
    description: TaskDescription | None = None


def problems(draft: Draft) -> list[Problem]:
    """Everything the checks of this module find."""
    conditions = list(_condition_problems(draft))
    whole = draft.space.keys() == draft.names and not conditions
    return [
        *_name_problems(draft),
        *_setting_problems(draft),
        *_space_problems(draft),
        *conditions,
        *_metric_problems(draft),
        *_budget_problems(draft),
        *_search_problems(draft),
        *(_enqueue_problems(draft) if whole else ()),  # a wrong space cannot tell what lies inside it
    ]


def _name_problems(draft: Draft) -> Iterator[Problem]:
    """Names that stand in two places, or that the task does not know."""
    settings = draft.settings or {}
    for name in sorted(draft.names & settings.keys()):
        yield Problem(f"space.{name}", "is also fixed under settings; keep it in one of the two")
    known = draft.description.settings if draft.description else None
    if known is None:
        return
    for section, names in (("settings", settings), ("space", draft.names)):
        for name in sorted(name for name in names if name not in known):
            yield Problem(f"{section}.{name}", f"the task has no such setting; {nearest(name, known)}")


def _budget_problems(draft: Draft) -> list[Problem]:
    """A trial budget that the task cannot count."""
    if draft.per_trial is None or draft.description is None:
        return []
    return draft.description.problems_with_budget(draft.per_trial.unit)


def _known_settings(draft: Draft) -> Mapping[str, Setting]:
    return (draft.description.settings if draft.description else None) or {}


def _setting_problems(draft: Draft) -> Iterator[Problem]:
    """Fixed values outside what the task allows."""
    known = _known_settings(draft)
    for name, value in (draft.settings or {}).items():
        if name in known and (what := known[name].problem_with(value)):
            yield Problem(f"settings.{name}", what)


def _space_problems(draft: Draft) -> Iterator[Problem]:
    """Bounds and choices outside what the task allows."""
    known = _known_settings(draft)
    for name, parameter in draft.space.items():
        if name not in known:
            continue
        where, setting = f"space.{name}", known[name]
        if isinstance(parameter, CategoricalParameter):
            values = [(f"{where}.choices[{i}]", choice) for i, choice in enumerate(parameter.choices)]
        elif setting.type not in (int, float):
            yield Problem(f"{where}.type", "the setting is not a number; use type: categorical")
            continue
        elif setting.type is int and not isinstance(parameter, IntParameter):
            yield Problem(f"{where}.type", "the setting is a whole number; use type: int")
            continue
        else:
            values = [(f"{where}.low", parameter.low), (f"{where}.high", parameter.high)]
        for place, value in values:
            if what := setting.problem_with(value):
                yield Problem(place, what)


def _condition_problems(draft: Draft) -> Iterator[Problem]:
    """Conditions that can never hold or never be judged."""
    space, names = draft.space, draft.names
    for name, parameter in space.items():
        for parent, values in (parameter.when or {}).items():
            where = f"space.{name}.when.{parent}"
            if parent == name:
                yield Problem(where, "a parameter cannot depend on itself; name another one")
            elif parent not in names and parent in (draft.settings or {}):
                yield Problem(where, f"{parent} is fixed under settings; drop the condition, or search {parent} too")
            elif parent not in names:
                yield Problem(where, f"no parameter of the space has this name; {nearest(parent, names - {name})}")
            elif not values:
                yield Problem(where, "names no value, so that the parameter is never active; give at least one")
            elif parent in space:
                yield from _value_problems(where, space[parent], values)
    for cycle in _cycles(space):
        around = " -> ".join([*cycle, cycle[0]])
        yield Problem(f"space.{cycle[0]}.when", f"the conditions form a circle ({around}); remove one of them")


def _value_problems(where: str, parent: Parameter, values: tuple[Any, ...]) -> Iterator[Problem]:
    for value in values:
        if what := parent.problem_with(value):
            yield Problem(where, f"the condition {what}")


def _cycles(space: Mapping[str, Parameter]) -> list[list[str]]:
    """The circles among conditions, each once, from its first parameter on; self-conditions are not counted."""
    found: dict[frozenset[str], list[str]] = {}

    def walk(name: str, path: list[str]) -> None:
        if name in path:
            cycle = path[path.index(name) :]
            found.setdefault(frozenset(cycle), cycle)
            return
        for parent in space[name].when or {}:
            if parent in space and parent != name and name not in done:
                walk(parent, [*path, name])
        done.add(name)

    done: set[str] = set()
    for name in space:
        walk(name, [])
    return [cycle for cycle in found.values() if len(cycle) > 1]


def _metric_problems(draft: Draft) -> Iterator[Problem]:
    known = draft.description.metrics if draft.description else None
    seen: dict[str, str] = {}
    for where, metric in draft.metrics.items():
        if where.startswith("objective") and seen.setdefault(metric, where) != where:
            yield Problem(where, f"is the metric of {seen[metric].split('.')[0]} already; name another one")
        if known is not None and metric not in known:
            yield Problem(where, f"the task does not report {shown(metric)}; {nearest(metric, sorted(known))}")


def _search_problems(draft: Draft) -> Iterator[Problem]:
    if draft.sampler is not None:
        yield from sampler_problems(draft.sampler)
        yield from _endless_problems(draft.sampler, draft.space)
    if draft.pruner is not None:
        yield from pruner_problems(draft.pruner, draft.per_trial)
    if draft.objectives > 1:
        yield from _several_problems(draft)


def _several_problems(draft: Draft) -> Iterator[Problem]:
    """What can only tell trials apart by one value."""
    sampler, pruner = draft.sampler, draft.pruner
    if sampler is not None and SAMPLERS.get(sampler.kind, sampler.kind) not in MULTI_OBJECTIVE:
        able = ", ".join(name for name in SAMPLERS if SAMPLERS[name] in MULTI_OBJECTIVE)
        yield Problem("search.sampler", f"{sampler.kind} takes one objective; use one of {able}")
    if pruner is not None and PRUNERS.get(pruner.kind) != "NopPruner" and pruner.kind not in (PROMOTION, "NopPruner"):
        yield Problem("search.pruner", f"{pruner.kind} takes one objective; use none, or promotion")
    if draft.confirm is not None:
        yield Problem("search.confirm", "repeats the best by one objective, and there are several; drop it")


def _endless_problems(sampler: Method, space: Mapping[str, Parameter]) -> Iterator[Problem]:
    """A sampler that tries every configuration needs a space with an end."""
    if SAMPLERS.get(sampler.kind, sampler.kind) != "BruteForceSampler":
        return
    for name, parameter in space.items():
        if isinstance(parameter, FloatParameter) and parameter.step is None:
            what = f"{sampler.kind} tries every value, and this has no end of them; add a step, or use another sampler"
            yield Problem(f"space.{name}", what)


def _enqueue_problems(draft: Draft) -> Iterator[Problem]:
    """Known-good configurations that the space does not hold."""
    for i, configuration in enumerate(draft.enqueue or []):
        for problem in spaces.problems_with(draft.space, configuration):
            yield Problem(f"enqueue[{i}].{problem.where}", problem.what)
