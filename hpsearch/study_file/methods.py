"""The samplers and pruners that a study file can name, and the arguments of each.

Short names and class names both work. The arguments of each are a model, made from the signature of
its class in Optuna, or `PromotionArguments`. Optuna is imported only when a study file is checked
or run.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Union

from pydantic import Field, ValidationError, create_model

from hpsearch.study_file.levels import ETA, PROMOTION, RUNGS
from hpsearch.study_file.models import Method, PerTrial, split_method
from hpsearch.study_file.text.messages import problems_of
from hpsearch.study_file.types import EXACT, WIDEST, Mistake, Model, Positive, Worded, shown
from trials.contract import Problem
from trials.settings import nearest

CURVE_GP = "curve_gp"
"""This program's own sampler, without arguments; `search.proposals` builds it."""

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

_MANY = 2**31
_SHARE = (0.0, 1.0)
_STARTUP = {"n_startup_trials": (0, _MANY)}
_STEPS = {"n_warmup_steps": (0, EXACT), "interval_steps": (1, EXACT)}
_GENETIC = {
    "population_size": (2, _MANY),
    **dict.fromkeys(("mutation_prob", "crossover_prob", "swapping_prob"), _SHARE),
}
_HALVING = {
    "min_resource": (1, EXACT),
    "reduction_factor": (2, 1000),
    "bootstrap_count": (0, _MANY),
}
_MEDIAN: dict[str, tuple[float, float]] = {**_STARTUP, **_STEPS, "n_min_trials": (1, _MANY)}

RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "TPESampler": {**_STARTUP, "prior_weight": (0.0, WIDEST), "n_ei_candidates": (1, 100_000)},
    "CmaEsSampler": {
        **_STARTUP,
        "sigma0": (1e-12, WIDEST),
        "popsize": (2, 100_000),
        "inc_popsize": (-1, 100_000),
    },
    "GPSampler": {**_STARTUP},
    "NSGAIISampler": {**_GENETIC},
    "NSGAIIISampler": {**_GENETIC, "dividing_parameter": (1, 100)},
    "MedianPruner": _MEDIAN,
    "PercentilePruner": {**_MEDIAN, "percentile": (0.0, 100.0)},
    "SuccessiveHalvingPruner": {**_HALVING, "min_early_stopping_rate": (0, 100)},
    "HyperbandPruner": {**_HALVING, "max_resource": (1, EXACT)},
    "ThresholdPruner": {**_STEPS, "lower": (-WIDEST, WIDEST), "upper": (-WIDEST, WIDEST)},
    "PatientPruner": {"patience": (0, EXACT), "min_delta": (0.0, WIDEST)},
    "WilcoxonPruner": {"p_threshold": _SHARE, "n_startup_steps": (0, EXACT)},
}
"""Numeric arguments of Optuna's classes, with the smallest and largest values that work.

Some classes check their arguments only when a study has run for a while, and some values make them
run forever.
"""

_PACKAGES = {"CmaEsSampler": "cmaes"}
"""Packages that a class needs and Optuna does not install."""

_WRAPPED = Annotated[str | dict[str, Any], Worded("must be a pruner")]
_WRITABLE: dict[str, Any] = {"str": str, "bool": bool, "None": None, "BasePruner": _WRAPPED}
"""Types in Optuna's signatures that a study file can write, beside numbers."""


class PromotionArguments(Model):
    """The arguments of `promotion`."""

    eta: Annotated[int, Field(ge=2, le=1000)] = ETA
    """One of this many trials at a rung continues."""
    rungs: Annotated[int, Field(ge=1, le=50)] = RUNGS
    """How many rungs are below the full budget. Without it and `first_rung`, trials that report
    often have rungs from 1/17 of it on."""
    first_rung: Positive = Field(default=None)  # type: ignore[assignment] # null is refused
    """The lowest rung."""

    def mistakes(self) -> Iterator[Mistake]:
        """Two arguments that say the same."""
        if {"first_rung", "rungs"} <= self.model_fields_set:
            yield "first_rung", "cannot be combined with rungs: both set the lowest rung; keep one"


def sampler(method: Method, seed: int) -> Any:
    """Build the Optuna sampler that a study file names. Its class raises the errors that
    `sampler_problems` finds in advance."""
    import optuna.samplers

    sampler_class = getattr(optuna.samplers, class_name(method))
    is_seeded = "seed" in _parameters_of(sampler_class)
    return _built(sampler_class, {**method.arguments, **({"seed": seed} if is_seeded else {})})


def class_name(method: Method) -> str:
    """The class of Optuna's samplers that a study file names, by its short name or its own."""
    return SAMPLERS.get(method.kind, method.kind)


def for_questions(method: Method) -> Method:
    """The method that draws parameters which the space does not name.

    It is the study's sampler. `curve_gp` models only what the space names: for the rest, it is
    Optuna's own default.
    """
    return Method(kind="tpe") if method.kind == CURVE_GP else method


def pruner(method: Method) -> Any:
    """Build the Optuna pruner that a study file names; not `promotion`, which needs the rungs. Its
    class raises the errors that `pruner_problems` finds in advance."""
    import optuna.pruners

    arguments = dict(method.arguments)
    wrapped = arguments.get("wrapped_pruner")
    if wrapped is not None:
        arguments["wrapped_pruner"] = pruner(Method.model_validate(split_method(wrapped)))
    pruner_class = getattr(optuna.pruners, PRUNERS.get(method.kind, method.kind))
    return _built(pruner_class, arguments)


def sampler_problems(method: Method) -> list[Problem]:
    """Mistakes in the `sampler` of a study file."""
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
    problems = _argument_problems(where, method, arguments_of(sampler_class))
    return problems or list(_building_problems(where, lambda: sampler(method, seed=0)))


def pruner_problems(
    method: Method, per_trial: PerTrial | None, where: str = "search.pruner"
) -> list[Problem]:
    """Mistakes in the `pruner` of a study file, with rungs outside of the trial budget, if that is
    known."""
    import optuna.pruners

    if method.kind == PROMOTION:
        problems = _argument_problems(where, method, PromotionArguments)
        return problems or _first_rung_problems(
            where, method.arguments.get("first_rung"), per_trial
        )
    name = PRUNERS.get(method.kind, method.kind)
    if name not in PRUNERS.values():
        hint = nearest(method.kind, [PROMOTION, *PRUNERS])
        return [Problem(where, f"{shown(method.kind)} is not a pruner; {hint}")]
    problems = _argument_problems(where, method, arguments_of(getattr(optuna.pruners, name)))
    wrapped = method.arguments.get("wrapped_pruner")
    if wrapped is not None and not problems:
        inner, where_inner = split_method(wrapped), f"{where}.wrapped_pruner"
        if not isinstance(inner["kind"], str) or inner["kind"] == PROMOTION:
            return [Problem(where_inner, f"must be one of {', '.join(PRUNERS)}")]
        problems = pruner_problems(Method.model_validate(inner), None, where_inner)
    return problems or list(_building_problems(where, lambda: pruner(method)))


def _first_rung_problems(
    where: str, first: float | None, per_trial: PerTrial | None
) -> list[Problem]:
    if first is None or per_trial is None or first <= per_trial.total:
        return []
    budget = f"{per_trial.total:g} {per_trial.unit.value}"
    what = f"{first} is above the trial budget ({budget}); lower it"
    return [Problem(f"{where}.first_rung", what)]


@cache
def arguments_of(method_class: type) -> type[Model]:
    """The arguments of a sampler or pruner of Optuna that a study file can write, as a model.

    The seed is not one of them: it is derived from the study's seed.
    """
    ranges = RANGES.get(method_class.__name__, {})
    fields: dict[str, Any] = {}
    for name, parameter in _parameters_of(method_class).items():
        type_ = _type_of(parameter, ranges.get(name))
        if name != "seed" and type_ is not None:
            is_required = parameter.default is inspect.Parameter.empty
            fields[name] = (type_, ... if is_required else parameter.default)
    return create_model(method_class.__name__, __base__=Model, **fields)


@cache
def _parameters_of(method_class: type) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(method_class).parameters


def _type_of(parameter: inspect.Parameter, limits: tuple[float, float] | None) -> Any:
    least, most = limits or (None, None)
    known = {
        **_WRITABLE,
        "int": Annotated[int, Field(ge=least, le=most)],
        "float": Annotated[float, Field(ge=least, le=most)],
    }
    annotation = inspect.formatannotation(parameter.annotation).strip("'")
    kinds = [kind for kind in re.split(r"\s*\|\s*", annotation) if kind in known]
    if not kinds or kinds == ["None"]:
        return None
    several: Any = Union[tuple(known[kind] for kind in kinds)]  # noqa: UP007 - of types known only now
    if {"str", "int"} <= {*kinds}:
        return Annotated[several, Worded(f"must be text or a whole number from {least} to {most}")]
    return several


def _argument_problems(where: str, method: Method, model: type[Model]) -> list[Problem]:
    arguments = dict(method.arguments)
    problems = []
    if method.kind != PROMOTION and "seed" in arguments:
        what = "is derived from the study's seed; set seed at the top of the file instead"
        problems.append(Problem(f"{where}.seed", what))
        del arguments["seed"]
    try:
        model.model_validate(arguments)
    except ValidationError as error:
        problems += problems_of(error, model, where)
    return problems


def _building_problems(where: str, build: Callable[[], Any]) -> Iterator[Problem]:
    try:
        build()
    except (ValueError, TypeError) as error:
        yield Problem(where, f"Optuna refuses it: {error}")


def _built(method_class: type, arguments: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings():
        # The study file asks for the class by name: no warning that it is experimental.
        warnings.simplefilter("ignore")
        return method_class(**arguments)
