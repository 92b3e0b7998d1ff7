"""The samplers and pruners that a study file can name, and the arguments of each.

Short names and class names both work. The arguments are read from the signatures of Optuna's
classes, so they are not listed here. Optuna is imported only when a study file is checked or run.
"""

from __future__ import annotations

import importlib.util
import inspect
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from hpsearch.study_file.levels import PROMOTION
from hpsearch.study_file.models import Method, PerTrial, split_method
from hpsearch.study_file.types import EXACT, WIDEST, is_number, is_whole_number, shown
from trials.contract import Problem
from trials.settings import nearest

CURVE_GP = "curve_gp"
"""This program's own sampler, without arguments. It is built where the trial budget is known."""

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
"""Samplers of Optuna that support several objectives."""

AVERAGING = frozenset({"GPSampler"})
"""Samplers of Optuna that average over noise: a repeat of a trial is one more measurement of it."""

CONSTRAINED = frozenset({"TPESampler", "GPSampler", "NSGAIISampler", "NSGAIIISampler"})
"""Samplers of Optuna that take constraints into account."""

LAID_OUT = frozenset({"QMCSampler", "BruteForceSampler"})
"""Samplers of Optuna that need the whole space in advance."""

BELIEVING = frozenset({CURVE_GP, "RandomSampler"})
"""Samplers that take the priors of parameters into account."""

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

PROMOTION_RANGES = {"eta": (2, 1000), "rungs": (1, 50)}
"""Whole-number arguments of `promotion`, with their smallest and largest values."""

_MANY = 2**31
_SHARE = (0.0, 1.0)

RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "TPESampler": {
        "prior_weight": (0.0, WIDEST),
        "n_startup_trials": (0, _MANY),
        "n_ei_candidates": (1, 100_000),
    },
    "CmaEsSampler": {
        "sigma0": (1e-12, WIDEST),
        "n_startup_trials": (0, _MANY),
        "popsize": (2, 100_000),
        "inc_popsize": (-1, 100_000),
    },
    "GPSampler": {"n_startup_trials": (0, _MANY)},
    "NSGAIISampler": {
        "population_size": (2, _MANY),
        "mutation_prob": _SHARE,
        "crossover_prob": _SHARE,
        "swapping_prob": _SHARE,
    },
    "NSGAIIISampler": {
        "population_size": (2, _MANY),
        "mutation_prob": _SHARE,
        "crossover_prob": _SHARE,
        "swapping_prob": _SHARE,
        "dividing_parameter": (1, 100),
    },
    "MedianPruner": {
        "n_startup_trials": (0, _MANY),
        "n_warmup_steps": (0, EXACT),
        "interval_steps": (1, EXACT),
        "n_min_trials": (1, _MANY),
    },
    "PercentilePruner": {
        "percentile": (0.0, 100.0),
        "n_startup_trials": (0, _MANY),
        "n_warmup_steps": (0, EXACT),
        "interval_steps": (1, EXACT),
        "n_min_trials": (1, _MANY),
    },
    "SuccessiveHalvingPruner": {
        "min_resource": (1, EXACT),
        "reduction_factor": (2, 1000),
        "min_early_stopping_rate": (0, 100),
        "bootstrap_count": (0, _MANY),
    },
    "HyperbandPruner": {
        "min_resource": (1, EXACT),
        "max_resource": (1, EXACT),
        "reduction_factor": (2, 1000),
        "bootstrap_count": (0, _MANY),
    },
    "ThresholdPruner": {
        "lower": (-WIDEST, WIDEST),
        "upper": (-WIDEST, WIDEST),
        "n_warmup_steps": (0, EXACT),
        "interval_steps": (1, EXACT),
    },
    "PatientPruner": {"patience": (0, EXACT), "min_delta": (0.0, WIDEST)},
    "WilcoxonPruner": {"p_threshold": _SHARE, "n_startup_steps": (0, EXACT)},
}
"""Numeric arguments of Optuna's classes, with the smallest and largest values that work.

Some classes check their arguments only when a study has run for a while, and some values make them
run forever.
"""

_PACKAGES = {"CmaEsSampler": "cmaes"}
"""Packages that a class needs and Optuna does not install."""

_WRITABLE: dict[str, tuple[tuple[type, ...], str]] = {
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "str": ((str,), "text"),
    "bool": ((bool,), "true or false"),
    "None": ((type(None),), "null"),
    "BasePruner": ((str, dict), "a pruner"),
}
"""Types in Optuna's signatures that a study file can write: their Python types and their names."""


@dataclass(frozen=True)
class Argument:
    """An argument of a sampler or pruner of Optuna that a study file can write.

    Args:
        kinds: Its types, keys of `_WRITABLE`.
        default: What it is where it is left out; None also where it cannot be left out.
        required: Whether it cannot be left out.
        range: The smallest and largest value of a number; None if it is not a number.
    """

    kinds: tuple[str, ...]
    default: Any
    required: bool
    range: tuple[float, float] | None


def sampler(method: Method, seed: int) -> Any:
    """Build the Optuna sampler that a study file names.

    Raises:
        ValueError, TypeError: From the sampler's class; `sampler_problems` finds these in advance.
    """
    import optuna.samplers

    sampler_class = getattr(optuna.samplers, class_name(method))
    arguments = dict(method.arguments)
    if _is_seeded(sampler_class):
        arguments["seed"] = seed
    return _built(sampler_class, arguments)


def class_name(method: Method) -> str:
    """The class of Optuna's samplers that a study file names, by its short name or its own."""
    return SAMPLERS.get(method.kind, method.kind)


def for_questions(method: Method) -> Method:
    """What draws parameters that the space does not name.

    It is the study's sampler. `curve_gp` models only what the space names: for the rest, it is
    Optuna's own default.
    """
    return Method(kind="tpe") if method.kind == CURVE_GP else method


def averages(method: Method) -> bool:
    """Whether a sampler of Optuna averages over several measurements of one configuration."""
    return class_name(method) in AVERAGING


def heeds_constraints(method: Method) -> bool:
    """Whether a sampler of Optuna takes constraints into account."""
    return class_name(method) in CONSTRAINED


def heeds_priors(method: Method) -> bool:
    """Whether a sampler takes the priors of parameters into account."""
    return class_name(method) in BELIEVING


@cache
def _is_seeded(sampler_class: type) -> bool:
    return "seed" in inspect.signature(sampler_class).parameters


def pruner(method: Method) -> Any:
    """Build the Optuna pruner that a study file names; not `promotion`, which needs the rungs.

    Raises:
        ValueError, TypeError: From the pruner's class; `pruner_problems` finds these in advance.
    """
    import optuna.pruners

    arguments = dict(method.arguments)
    wrapped = arguments.get("wrapped_pruner")
    if isinstance(wrapped, str | dict):
        arguments["wrapped_pruner"] = pruner(Method.model_validate(split_method(wrapped)))
    pruner_class = getattr(optuna.pruners, PRUNERS.get(method.kind, method.kind))
    return _built(pruner_class, arguments)


def sampler_problems(method: Method) -> list[Problem]:
    """What is wrong with the `sampler` of a study file."""
    import optuna.samplers

    where = "search.sampler"
    if method.kind == CURVE_GP:
        what = f"{CURVE_GP} has no arguments; remove it"
        return [Problem(f"{where}.{name}", what) for name in method.arguments]
    name = class_name(method)
    if name not in SAMPLERS.values():
        hint = nearest(method.kind, [CURVE_GP, *SAMPLERS])
        return [Problem(where, f"{shown(method.kind)} is not a sampler; {hint}")]
    package = _PACKAGES.get(name)
    if package is not None and importlib.util.find_spec(package) is None:
        what = f"{method.kind} needs the package {package}; pip install {package}, or use tpe"
        return [Problem(where, what)]
    sampler_class = getattr(optuna.samplers, name)
    problems = list(_argument_problems(where, method, sampler_class))
    return problems or list(_building_problems(where, lambda: sampler(method, seed=0)))


def pruner_problems(
    method: Method, per_trial: PerTrial | None, where: str = "search.pruner"
) -> list[Problem]:
    """What is wrong with the `pruner` of a study file.

    Args:
        method: The pruner.
        per_trial: The trial budget that rungs must lie in; None if it is not known.
        where: Its dotted place.
    """
    import optuna.pruners

    if method.kind == PROMOTION:
        return list(_promotion_problems(where, method.arguments, per_trial))
    name = PRUNERS.get(method.kind, method.kind)
    if name not in PRUNERS.values():
        hint = nearest(method.kind, [PROMOTION, *PRUNERS])
        return [Problem(where, f"{shown(method.kind)} is not a pruner; {hint}")]
    pruner_class = getattr(optuna.pruners, name)
    problems = list(_argument_problems(where, method, pruner_class))
    wrapped = method.arguments.get("wrapped_pruner")
    if isinstance(wrapped, str | dict) and not problems:
        problems = _wrapped_problems(wrapped, per_trial, f"{where}.wrapped_pruner")
    return problems or list(_building_problems(where, lambda: pruner(method)))


def _wrapped_problems(
    wrapped: str | dict[str, Any], per_trial: PerTrial | None, where: str
) -> list[Problem]:
    """What is wrong with a pruner of Optuna that another one wraps."""
    inner = split_method(wrapped)
    kind = inner["kind"]
    if not isinstance(kind, str) or kind == PROMOTION:
        return [Problem(where, f"must be one of {', '.join(PRUNERS)}")]
    return pruner_problems(Method.model_validate(inner), per_trial, where)


def _promotion_problems(
    where: str, arguments: Mapping[str, Any], per_trial: PerTrial | None
) -> Iterator[Problem]:
    known = (*PROMOTION_RANGES, "first_rung")
    for name in arguments:
        if name not in known:
            what = f"unknown argument of {PROMOTION}; {nearest(name, known)}"
            yield Problem(f"{where}.{name}", what)
    for name, (least, most) in PROMOTION_RANGES.items():
        value = arguments.get(name, least)
        is_right = is_whole_number(value) and least <= value <= most
        if not is_right:
            what = f"must be a whole number from {least} to {most}, not {shown(value)}"
            yield Problem(f"{where}.{name}", what)
    if "first_rung" in arguments:
        for what in _first_rung_mistakes(arguments, per_trial):
            yield Problem(f"{where}.first_rung", what)


def _first_rung_mistakes(arguments: Mapping[str, Any], per_trial: PerTrial | None) -> Iterator[str]:
    first = arguments["first_rung"]
    if "rungs" in arguments:
        yield "cannot be combined with rungs: both set the lowest rung; keep one"
    if not is_number(first) or not first > 0:
        yield f"must be a number above 0, not {shown(first)}"
        return
    if per_trial is None:
        return
    if first > per_trial.total:
        budget = f"{per_trial.total:g} {per_trial.unit.value}"
        yield f"{first} is above the trial budget ({budget}); lower it"


def arguments_of(method_class: type) -> dict[str, Argument]:
    """The arguments of a sampler or pruner of Optuna that a study file can write, by name.

    The seed is not one of them: it is derived from the study's seed.
    """
    ranges = RANGES.get(method_class.__name__, {})
    known: dict[str, Argument] = {}
    for name, parameter in inspect.signature(method_class).parameters.items():
        kinds = _types_of(parameter)
        if name == "seed" or not kinds:
            continue
        required = parameter.default is inspect.Parameter.empty
        default = None if required else parameter.default
        known[name] = Argument(tuple(kinds), default, required, ranges.get(name))
    return known


def _argument_problems(where: str, method: Method, method_class: type) -> Iterator[Problem]:
    """Arguments that the class does not have, that are missing, or that have wrong values."""
    known = arguments_of(method_class)
    for name, value in method.arguments.items():
        if name == "seed":
            what = "is derived from the study's seed; set seed at the top of the file instead"
            yield Problem(f"{where}.seed", what)
        elif name not in known:
            what = f"unknown argument of {method.kind}; {nearest(name, known)}"
            yield Problem(f"{where}.{name}", what)
        elif wrong := _wrong_value(known[name], value):
            yield Problem(f"{where}.{name}", wrong)
    for name, argument in known.items():
        if argument.required and name not in method.arguments:
            example = f"{{kind: {method.kind}, {name}: ...}}"
            yield Problem(where, f"{method.kind} needs {name}; write {example}")


def _wrong_value(argument: Argument, value: Any) -> str | None:
    """Why an argument cannot have a value: its type or its range; None if it can."""
    if not any(_is_a(value, kind) for kind in argument.kinds):
        kinds = " or ".join(_WRITABLE[kind][1] for kind in argument.kinds)
        return f"must be {kinds}, not {shown(value)}"
    if argument.range is None or not is_number(value):
        return None
    least, most = argument.range
    if math.isnan(value):
        return "must be a number, not nan"
    if value < least:
        return f"must be {least:g} or more, not {shown(value)}"
    if value > most:
        return f"must be {most:.15g} or less, not {shown(value)}"
    return None


def _types_of(parameter: inspect.Parameter) -> list[str]:
    """The writable types of a parameter, as its annotation names them."""
    annotation = inspect.formatannotation(parameter.annotation).strip("'")
    names = [name for name in re.split(r"\s*\|\s*", annotation) if name in _WRITABLE]
    return names if names != ["None"] else []


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "bool"
    return isinstance(value, _WRITABLE[kind][0])


def _building_problems(where: str, build: Callable[[], Any]) -> Iterator[Problem]:
    """What the class itself refuses, such as arguments that exclude each other."""
    try:
        build()
    except (ValueError, TypeError) as error:
        yield Problem(where, f"Optuna refuses it: {error}")


def _built(method_class: type, arguments: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings():
        # The study file asks for the class by name: no warning that it is experimental.
        warnings.simplefilter("ignore")
        return method_class(**arguments)
