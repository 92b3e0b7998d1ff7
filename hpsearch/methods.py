"""The samplers and pruners a study file may name, and the arguments each one takes.

Short names and class names both work. Optuna's classes are asked for their signatures, so that what an installed
Optuna can do needs no list here; it is imported only once a study file is checked or run.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from hpsearch.levels import PROMOTION
from hpsearch.spec import Method, PerTrial, split_method
from hpsearch.spec_types import shown
from trials.contract import Problem
from trials.settings import nearest

CURVE_GP = "curve_gp"
"""This program's own sampler, built where the space and the trial budget are known; it takes no arguments."""

SAMPLERS = {
    "tpe": "TPESampler",
    "random": "RandomSampler",
    "cmaes": "CmaEsSampler",
    "gp": "GPSampler",
    "nsgaii": "NSGAIISampler",
    "nsgaiii": "NSGAIIISampler",
    "qmc": "QMCSampler",
    "brute_force": "BruteForceSampler",
}
"""Short names of Optuna's samplers."""

MULTI_OBJECTIVE = frozenset(SAMPLERS.values()) - {"CmaEsSampler"}
"""Samplers of Optuna that take several objectives."""

CONSTRAINED = frozenset({"TPESampler", "GPSampler", "NSGAIISampler", "NSGAIIISampler"})
"""Samplers of Optuna that heed constraints."""

PRUNERS = {
    "none": "NopPruner",
    "nop": "NopPruner",
    "median": "MedianPruner",
    "percentile": "PercentilePruner",
    "successive_halving": "SuccessiveHalvingPruner",
    "hyperband": "HyperbandPruner",
    "threshold": "ThresholdPruner",
    "patient": "PatientPruner",
    "wilcoxon": "WilcoxonPruner",
}
"""Short names of Optuna's pruners. `promotion` is not among them: it is this program's own."""

_PROMOTION_RANGES = {"eta": (2, 1000), "rungs": (1, 50)}
"""Whole-number arguments of `promotion`, with the least and the most they can be."""

_PACKAGES = {"CmaEsSampler": "cmaes"}
"""Packages that a class needs and Optuna does not bring."""

_WRITABLE: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "str": ((str,), "text"),
    "bool": ((bool,), "true or false"),
    "None": ((type(None),), "null"),
    "BasePruner": ((str, dict), "a pruner"),
}
"""Types in Optuna's signatures whose values a study file can write, and their names for people."""


def sampler(method: Method, seed: int) -> Any:
    """Build the Optuna sampler that a study file names.

    Raises:
        ValueError, TypeError: As the sampler's class does; `sampler_problems` tells before.
    """
    import optuna.samplers

    sampler_class = getattr(optuna.samplers, SAMPLERS.get(method.kind, method.kind))
    return _built(sampler_class, {**method.arguments, **({"seed": seed} if _is_seeded(sampler_class) else {})})


def heeds_constraints(method: Method) -> bool:
    """Whether a sampler of Optuna prefers what keeps constraints."""
    return SAMPLERS.get(method.kind, method.kind) in CONSTRAINED


@cache
def _is_seeded(sampler_class: type) -> bool:
    return "seed" in inspect.signature(sampler_class).parameters


def pruner(method: Method) -> Any:
    """Build the Optuna pruner that a study file names; `promotion` has rungs and is built where those are known.

    Raises:
        ValueError, TypeError: As the pruner's class does; `pruner_problems` tells before.
    """
    import optuna.pruners

    arguments = dict(method.arguments)
    if isinstance(wrapped := arguments.get("wrapped_pruner"), str | dict):
        arguments["wrapped_pruner"] = pruner(Method.model_validate(split_method(wrapped)))
    return _built(getattr(optuna.pruners, PRUNERS.get(method.kind, method.kind)), arguments)


def sampler_problems(method: Method) -> list[Problem]:
    """What is wrong with the `sampler` of a study file."""
    import optuna.samplers

    where = "search.sampler"
    if method.kind == CURVE_GP:
        return [Problem(f"{where}.{name}", f"{CURVE_GP} takes no arguments; drop it") for name in method.arguments]
    name = SAMPLERS.get(method.kind, method.kind)
    if name not in SAMPLERS.values():
        hint = nearest(method.kind, [CURVE_GP, *SAMPLERS])
        return [Problem(where, f"no sampler is called {shown(method.kind)}; {hint}")]
    package = _PACKAGES.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        return [Problem(where, f"{method.kind} needs the package {package}; pip install {package}, or use tpe")]
    problems = list(_argument_problems(where, method, getattr(optuna.samplers, name)))
    return problems or list(_building_problems(where, lambda: sampler(method, seed=0)))


def pruner_problems(method: Method, per_trial: PerTrial | None, where: str = "search.pruner") -> list[Problem]:
    """What is wrong with the `pruner` of a study file.

    Args:
        method: The pruner.
        per_trial: The trial budget that rungs must lie in; None where it is not known.
        where: Its dotted place.
    """
    import optuna.pruners

    if method.kind == PROMOTION:
        return list(_promotion_problems(where, method.arguments, per_trial))
    name = PRUNERS.get(method.kind, method.kind)
    if name not in PRUNERS.values():
        hint = nearest(method.kind, [PROMOTION, *PRUNERS])
        return [Problem(where, f"no pruner is called {shown(method.kind)}; {hint}")]
    problems = list(_argument_problems(where, method, getattr(optuna.pruners, name)))
    wrapped = method.arguments.get("wrapped_pruner")
    if isinstance(wrapped, str | dict) and not problems:
        inner = split_method(wrapped)
        if not isinstance(inner["kind"], str) or inner["kind"] == PROMOTION:
            return [Problem(f"{where}.wrapped_pruner", f"must be one of {', '.join(PRUNERS)}")]
        problems = pruner_problems(Method.model_validate(inner), per_trial, f"{where}.wrapped_pruner")
    return problems or list(_building_problems(where, lambda: pruner(method)))


def _promotion_problems(where: str, arguments: Mapping[str, Any], per_trial: PerTrial | None) -> Iterator[Problem]:
    known = (*_PROMOTION_RANGES, "first_rung")
    for name in (name for name in arguments if name not in known):
        yield Problem(f"{where}.{name}", f"unknown argument of {PROMOTION}; {nearest(name, known)}")
    for name, (least, most) in _PROMOTION_RANGES.items():
        value = arguments.get(name, least)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            yield Problem(f"{where}.{name}", f"must be a whole number from {least} to {most}, not {shown(value)}")
    if "first_rung" not in arguments:
        return
    first = arguments["first_rung"]
    if "rungs" in arguments:
        yield Problem(f"{where}.first_rung", "stands beside rungs; each of them says where rungs begin, keep one")
    if isinstance(first, bool) or not isinstance(first, int | float) or not first > 0:
        yield Problem(f"{where}.first_rung", f"must be a number above 0, not {shown(first)}")
    elif per_trial is not None and first > per_trial.total:
        text = f"{first} is above the trial budget ({per_trial.total:g} {per_trial.unit.value}); lower it"
        yield Problem(f"{where}.first_rung", text)


def _argument_problems(where: str, method: Method, method_class: type) -> Iterator[Problem]:
    """Arguments the class does not take, lacks, or takes in another type."""
    parameters = inspect.signature(method_class).parameters
    writable = {name: types for name, p in parameters.items() if name != "seed" and (types := _types_of(p))}
    for name, value in method.arguments.items():
        inside = f"{where}.{name}"
        if name == "seed":
            yield Problem(inside, "follows from the study's own seed; set seed at the top of the file instead")
        elif name not in writable:
            yield Problem(inside, f"unknown argument of {method.kind}; {nearest(name, [*writable])}")
        elif not any(_is_a(value, kind) for kind in writable[name]):
            kinds = " or ".join(_WRITABLE[kind][1] for kind in writable[name])
            yield Problem(inside, f"must be {kinds}, not {shown(value)}")
    for name, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in method.arguments:
            yield Problem(where, f"{method.kind} needs {name}; write {{kind: {method.kind}, {name}: ...}}")


def _types_of(parameter: inspect.Parameter) -> list[str]:
    """The writable types of a parameter, as its annotation names them."""
    names = [
        name
        for name in re.split(r"\s*\|\s*", inspect.formatannotation(parameter.annotation).strip("'"))
        if name in _WRITABLE
    ]
    return names if names != ["None"] else []


def _is_a(value: Any, kind: str) -> bool:
    return isinstance(value, _WRITABLE[kind][0]) and (kind == "bool" or not isinstance(value, bool))


def _building_problems(where: str, build: Callable[[], Any]) -> Iterator[Problem]:
    """What the class itself refuses: values out of its range, arguments that exclude each other."""
    try:
        build()
    except (ValueError, TypeError) as error:
        yield Problem(where, f"Optuna refuses it: {error}")


def _built(method_class: type, arguments: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a class is experimental is the choice of who names it
        return method_class(**arguments)
