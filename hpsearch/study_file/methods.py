"""The samplers and pruners that a study file can name, and the arguments of each.

The arguments of each are a model, made from the signature of its class in Optuna, or
`PromotionArguments`; one that a plugin offers checks its own. Optuna is imported only when a study
file is checked or run.
"""

import importlib.util
import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias, Union

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
)
from pydantic_core import PydanticCustomError

from hpsearch.domain.plugins.door import named, offers_of
from hpsearch.domain.plugins.offers import PrunerPlugin, SamplerPlugin
from hpsearch.errors import UserError
from hpsearch.study_file.types import EXACT, WIDEST, Positive
from hpsearch.study_file.validation import Model, problems_of, refusal, shown, worded
from trials.foreign import in_words, line_of
from trials.settings import nearest

CURVE_GP = "curve_gp"  # this program's own sampler, without arguments; `search.proposals` builds it
PROMOTION = "promotion"
"""This program's own pruner, with rungs of its own; all others compare at every report."""
ETA = 3  # one of this many trials at a rung continues

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
"""Optuna's samplers: their classes by the names in study files."""

MULTI_OBJECTIVE = frozenset(SAMPLERS.values()) - {"CmaEsSampler"}
"""Samplers of Optuna that support several objectives."""

AVERAGING = frozenset({"GPSampler"})
"""Samplers of Optuna that average over noise, for which a repeat is one more measurement."""

CONSTRAINED = frozenset({"TPESampler", "GPSampler", "NSGAIISampler", "NSGAIIISampler"})
"""Samplers of Optuna that take constraints into account."""

SHOWN_PART = frozenset({"TPESampler"})
"""Samplers of Optuna that lose nothing if of very many trials they see the best and the latest."""

INTERSECTING = frozenset({"TPESampler", "CmaEsSampler", "NSGAIISampler", "NSGAIIISampler"})
"""Samplers of Optuna that draw together the parameters that all trials have."""

LAID_OUT = frozenset({"QMCSampler", "BruteForceSampler"})
"""Samplers of Optuna that need the whole space in advance."""

PRUNERS = {
    "none": "NopPruner",
    "median": "MedianPruner",
    "percentile": "PercentilePruner",
    "successive_halving": "SuccessiveHalvingPruner",
    "hyperband": "HyperbandPruner",
    "threshold": "ThresholdPruner",
    "patient": "PatientPruner",
    "wilcoxon": "WilcoxonPruner",
}
"""Optuna's pruners: their classes by the names in study files."""

_MANY = 2**31
_FRACTION = (0.0, 1.0)
RANGES: dict[str, tuple[float, float]] = {
    "bootstrap_count": (0, _MANY),
    "crossover_prob": _FRACTION,
    "dividing_parameter": (1, 100),
    "inc_popsize": (-1, 100_000),
    "interval_steps": (1, EXACT),
    "lower": (-WIDEST, WIDEST),
    "max_resource": (1, EXACT),
    "min_delta": (0.0, WIDEST),
    "min_early_stopping_rate": (0, 100),
    "min_resource": (1, EXACT),
    "mutation_prob": _FRACTION,
    "n_ei_candidates": (1, 100_000),
    "n_min_trials": (1, _MANY),
    "n_startup_steps": (0, EXACT),
    "n_startup_trials": (0, _MANY),
    "n_warmup_steps": (0, EXACT),
    "p_threshold": _FRACTION,
    "patience": (0, EXACT),
    "percentile": (0.0, 100.0),
    "popsize": (2, 100_000),
    "population_size": (2, _MANY),
    "prior_weight": (0.0, WIDEST),
    "reduction_factor": (2, 1000),
    "sigma0": (1e-12, WIDEST),
    "swapping_prob": _FRACTION,
    "upper": (-WIDEST, WIDEST),
}
"""The smallest and largest values of numeric arguments of Optuna's classes. Some classes check them
only when a study has run for a while, and some values make them run forever."""

_PACKAGES = {"CmaEsSampler": "cmaes"}  # packages that a class needs and Optuna does not install


class Method(Model):
    """A sampler or pruner by name, with its arguments."""

    kind: str = Field(examples=["tpe"])
    arguments: dict[str, Any] = Field(default={})


class PromotionArguments(Model):
    """The arguments of `promotion`."""

    eta: Annotated[int, Field(ge=2, le=1000)] = ETA
    """One of this many trials at a rung continues."""
    first_rung: Positive | None = None
    """The lowest rung. Without it there are two below the full budget, or, for trials that report
    often, those from 1/17 of it on."""
    pause: Literal["auto"] | bool = "auto"
    """Trials that are not among the best at a rung pause there and may go on later (true), or are
    stopped for good where they are hopeless (false); `auto` for pauses where they pay."""


def split_method(value: Any) -> Any:
    """`tpe` and `{kind: tpe, multivariate: true}` as a method's fields."""
    if isinstance(value, str):
        return {"kind": value}
    if not isinstance(value, dict) or "kind" not in value:
        return value
    arguments = {name: argument for name, argument in value.items() if name != "kind"}
    return {"kind": value["kind"], "arguments": arguments}


def sampler(method: Method, seed: int | None) -> Any:
    """The Optuna sampler that a study file names. One of a plugin may raise anything."""
    import optuna.samplers

    if is_of_plugin(method):
        made = _offered(SamplerPlugin, method)(seed, **method.arguments)
        return _of_type(made, optuna.samplers.BaseSampler)
    sampler_class = getattr(optuna.samplers, SAMPLERS[method.kind])
    is_seeded = "seed" in _parameters_of(sampler_class)
    return _built(sampler_class, {**method.arguments, **({"seed": seed} if is_seeded else {})})


def is_of_plugin(method: Method) -> bool:
    """True if neither we nor Optuna bring a sampler or pruner, or the one that it wraps."""
    wrapped = method.arguments.get("wrapped_pruner")
    if wrapped is not None and method.kind in PRUNERS:
        return is_of_plugin(Method.model_validate(split_method(wrapped)))
    return method.kind not in {CURVE_GP, PROMOTION, *SAMPLERS, *PRUNERS}


def refuse_unusable(sampler: Method, pruner: Method) -> None:
    """Raise UserError if the sampler or pruner of a recorded study cannot be used any more: no
    plugin that is installed offers it, or it refuses its arguments."""
    offered = {*PRUNERS, *offers_of(SamplerPlugin), *offers_of(PrunerPlugin)}
    for method, check in ((sampler, _usable_sampler), (pruner, _usable_pruner)):
        if is_of_plugin(method) and method.kind not in offered:
            what = f"search: {method.kind} is offered by no plugin that is installed"
            raise UserError(what, "install its package again, and see hpsearch --version")
        try:
            check(method)
        except ValidationError as error:
            raise _refused(problems_of(error)[0].what) from None
        except PydanticCustomError as error:
            raise _refused(error.message()) from None


def _refused(what: str) -> UserError:
    return UserError(f"search: {what}", "install the version that the study began with")


def _offered(kind: type[SamplerPlugin] | type[PrunerPlugin], method: Method) -> Any:
    plugin = offers_of(kind).get(method.kind)
    assert plugin is not None, "one that is not installed is refused"
    return named(plugin.build)


def _of_type(made: Any, wanted: type) -> Any:
    if not isinstance(made, wanted):
        raise TypeError(f"its plugin gives {type(made).__name__}, not {wanted.__name__}")
    return made


def class_name(method: Method) -> str:
    """The class of the sampler that a study file names; of our own and of plugins the name."""
    return SAMPLERS.get(method.kind, method.kind)


def for_questions(method: Method) -> Method:
    """The method that draws parameters which the space does not name: the study's sampler, or in
    place of `curve_gp`, which models only the space, Optuna's own default."""
    return Method(kind="tpe") if method.kind == CURVE_GP else method


HYPERBAND = {"hyperband", "HyperbandPruner"}
STEPPED = {"successive_halving", "SuccessiveHalvingPruner", *HYPERBAND}
"""Pruners that guess their first and last step from finished trials unless they are given."""


def with_known_steps(method: Method, first: int, last: int) -> Method:
    """A pruner with its first and last steps, which it would otherwise guess."""
    if method.kind not in STEPPED:
        return method
    known = {"min_resource": first}
    if method.kind in HYPERBAND:
        known["max_resource"] = last
    return Method(kind=method.kind, arguments={**known, **method.arguments})


def pruner(method: Method) -> Any:
    """The Optuna pruner that a study file names, without `promotion`; a plugin's may raise."""
    import optuna.pruners

    arguments = dict(method.arguments)
    if method.kind not in PRUNERS:
        made = _offered(PrunerPlugin, method)(**arguments)
        return _of_type(made, optuna.pruners.BasePruner)
    wrapped = arguments.get("wrapped_pruner")
    if wrapped is not None:
        arguments["wrapped_pruner"] = pruner(Method.model_validate(split_method(wrapped)))
    return _built(getattr(optuna.pruners, PRUNERS[method.kind]), arguments)


RECORDED = {"recorded": True}
"""The context of validating a study file that a database holds: what Optuna takes was checked when
the study was made, and Optuna is slow to import."""


def _checked_sampler(method: Method, info: ValidationInfo) -> Method:
    return method if info.context == RECORDED else _usable_sampler(method)


def _usable_sampler(method: Method) -> Method:
    import optuna.samplers

    if method.kind == CURVE_GP:
        Model.model_validate(method.arguments)
        return method
    known = [CURVE_GP, *SAMPLERS, *offers_of(SamplerPlugin)]
    if method.kind not in known:
        raise _unknown("a sampler", method.kind, known)
    package = _PACKAGES.get(SAMPLERS.get(method.kind, ""))
    if package is not None and importlib.util.find_spec(package) is None:
        raise refusal(f"{method.kind} needs the package {package}; pip install {package}")
    if "seed" in method.arguments:
        what = "the seed is derived from the study's seed"
        raise refusal(f"{what}; set seed at the top of the file instead")
    of_optuna = getattr(optuna.samplers, SAMPLERS.get(method.kind, ""), None)
    return _accepted(method, of_optuna, lambda: sampler(method, seed=0))


def _checked_pruner(method: Method, info: ValidationInfo) -> Method:
    return method if info.context == RECORDED else _usable_pruner(method)


def _usable_pruner(method: Method) -> Method:
    import optuna.pruners

    if method.kind == PROMOTION:
        PromotionArguments.model_validate(method.arguments)
        return method
    known = [PROMOTION, *PRUNERS, *offers_of(PrunerPlugin)]
    if method.kind not in known:
        raise _unknown("a pruner", method.kind, known)
    of_optuna = getattr(optuna.pruners, PRUNERS.get(method.kind, ""), None)
    return _accepted(method, of_optuna, lambda: pruner(method))


def _accepted(method: Method, method_class: type | None, build: Callable[[], Any]) -> Method:
    if method_class is not None:
        arguments_of(method_class).model_validate(method.arguments)
    who = method.kind if method_class is None else "Optuna"
    try:
        build()
    except (ValueError, TypeError) as error:
        raise refusal(f"{who} refuses it: {line_of(error)}") from None
    except Exception as error:  # noqa: BLE001 - it is somebody else's code
        raise refusal(f"{method.kind} does not work: {in_words(error)}") from None
    return method


def _checked_wrapped(pruner: Any) -> Any:
    method = Method.model_validate(split_method(pruner))
    if method.kind == PROMOTION:
        raise refusal(f"must be one of {', '.join(PRUNERS)}")
    _usable_pruner(method)
    return pruner


def _unknown(what: str, kind: str, known: list[str]) -> PydanticCustomError:
    return refusal(f"{shown(kind)} is not {what}; {nearest(kind, known)}")


def _written(*kinds: str) -> Any:
    """A name, or a mapping of `kind` and arguments."""
    named: dict[str, Any] = {"properties": {"kind": {"enum": list(kinds)}}, "required": ["kind"]}
    return Literal[kinds] | Annotated[dict[str, Any], Field(json_schema_extra=named)]


Sampler: TypeAlias = Annotated[
    Method,
    BeforeValidator(
        split_method,
        json_schema_input_type=_written(CURVE_GP, *SAMPLERS, *offers_of(SamplerPlugin)),
    ),
    AfterValidator(_checked_sampler),
]
Pruner: TypeAlias = Annotated[
    Method,
    BeforeValidator(
        split_method, json_schema_input_type=_written(PROMOTION, *PRUNERS, *offers_of(PrunerPlugin))
    ),
    AfterValidator(_checked_pruner),
]

_WRAPPED = Annotated[
    str | dict[str, Any], worded("must be a pruner"), AfterValidator(_checked_wrapped)
]
_WRITABLE: dict[str, Any] = {"str": str, "bool": bool, "None": None, "BasePruner": _WRAPPED}
"""Types in Optuna's signatures that a study file can write, beside numbers."""


@cache
def arguments_of(method_class: type) -> type[Model]:
    """The arguments of a sampler or pruner of Optuna that a study file can write, as a model; the
    seed is derived from the study's seed."""
    fields: dict[str, Any] = {}
    for name, parameter in _parameters_of(method_class).items():
        type_ = _type_of(parameter, RANGES.get(name))
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
        return Annotated[several, worded(f"must be text or a whole number from {least} to {most}")]
    return several


def _built(method_class: type, arguments: Mapping[str, Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no warning that a class is experimental
        return method_class(**arguments)
