"""The parts of a W&B sweep that a study file can have.

Source: "Sweep configuration options" in the documentation of Weights & Biases.
"""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from hpsearch.study_file.types import Count
from hpsearch.study_file.validation import Mistake, Model, refusal
from trials.settings import nearest

_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")


def with_numbers(value: Any) -> Any:
    """A value in which a text such as 1e-4, which YAML takes for text, is the number."""
    if isinstance(value, dict):
        return {key: with_numbers(each) for key, each in value.items()}
    if isinstance(value, list):
        return list(map(with_numbers, value))
    if isinstance(value, str) and _EXPONENT.fullmatch(value.strip()):
        return float(value)
    return value


_LAUNCHED = "is of W&B Launch, which nothing starts here; remove it"
REFUSED = {
    "job": f"{_LAUNCHED}, and name its script as program",
    "image_uri": f"{_LAUNCHED}, and name its script as program",
    "launch": _LAUNCHED,
    "queue": _LAUNCHED,
    "resource": _LAUNCHED,
    "scheduler": f"{_LAUNCHED}, and set resources.workers in the study file",
    "prior_runs": "are on W&B's servers; remove it, and see: hpsearch import --help",
}
"""Parts of a sweep that a study cannot have."""


class Metric(Model):
    """The metric that runs are compared by."""

    name: Annotated[str, Field(min_length=1, examples=["val_loss"])]
    goal: Literal["minimize", "maximize"] | None = None
    target: float | None = None
    impute: Any = None
    impute_while_running: Any = None


class Hyperband(Model):
    """The one way in which W&B ends runs early."""

    type: Literal["hyperband"]
    min_iter: Count | None = None
    max_iter: Count | None = None
    s: Count | None = None
    eta: Annotated[int, Field(ge=2)] = 3
    strict: bool = False

    def mistakes(self) -> Iterator[Mistake]:
        if self.min_iter is self.max_iter is None:
            yield "", "has neither min_iter nor max_iter with s; add one"

    @property
    def first(self) -> int:
        """The first bracket."""
        if self.min_iter is not None:
            return self.min_iter
        assert self.max_iter is not None
        most = max(1, int(math.log(self.max_iter, self.eta) + 1e-9))
        return max(1, int(self.max_iter / self.eta ** min(self.s or most, most)))


class Sweep(Model):
    """A sweep, whose parameters are read by `parameter_of`."""

    name: Any = None
    program: str | None = None
    command: list[Any] | None = None
    method: Literal["bayes", "random", "grid"] | None = None
    metric: Metric = Field(examples=["{name: val_loss, goal: minimize}"])
    parameters: dict[str, Any]
    early_terminate: Hyperband | None = None
    run_cap: Count | None = None
    description: Any = None
    project: Any = None
    entity: Any = None
    controller: Any = None

    def mistakes(self) -> Iterator[Mistake]:
        if self.program is None and (self.command is None or "${program}" in self.command):
            yield "program", "is missing; name the script that trains one configuration"


class _Parameter(Model):
    distribution: str | None = None


class Constant(_Parameter):
    """A parameter with one value."""

    value: Any


class _Choices(_Parameter):
    values: Annotated[list[Any], Field(min_length=1)]
    probabilities: list[float] | None = None

    def mistakes(self) -> Iterator[Mistake]:
        if len(set(self.probabilities or ())) > 1:
            what = "differ, and a study draws all values with the same"
            yield "probabilities", f"{what}; remove them, or write likelier values as a range"


class _Range(_Parameter):
    min: float
    max: float


class _Whole(_Parameter):
    min: int
    max: int


class _Steps(_Range):
    q: Annotated[float, Field(gt=0)] = 1.0


DISTRIBUTIONS: Mapping[str, type[_Parameter]] = {
    "constant": Constant,
    "categorical": _Choices,
    "categorical_w_probabilities": _Choices,
    "int_uniform": _Whole,
    **dict.fromkeys(("uniform", "log_uniform", "log_uniform_values"), _Range),
    **dict.fromkeys(("inv_log_uniform", "inv_log_uniform_values"), _Range),
    **dict.fromkeys(("q_uniform", "q_log_uniform", "q_log_uniform_values"), _Steps),
}
WITHOUT_BOUNDS = ("normal", "q_normal", "log_normal", "q_log_normal", "beta", "q_beta")
"""Distributions that a study file does not have."""


def parameter_of(stated: Mapping[str, Any]) -> Constant | dict[str, Any]:
    """A parameter of a sweep as one of a study file. Raises ValidationError or
    PydanticCustomError if a study file cannot have it."""
    kind = _kind_of(stated)
    if kind in WITHOUT_BOUNDS:
        what = f"has the distribution {kind}, which a study does not have"
        raise refusal(f"{what}; write a distribution with a min and a max: uniform")
    if kind not in DISTRIBUTIONS:
        what = f"has the distribution {kind!r}, which is not known"
        raise refusal(f"{what}; {nearest(kind, DISTRIBUTIONS)}")
    part = DISTRIBUTIONS[kind].model_validate(stated)
    if isinstance(part, _Choices):
        return {"type": "categorical", "choices": part.values}
    if isinstance(part, _Whole):
        return {"type": "int", "low": part.min, "high": part.max}
    if isinstance(part, _Range):
        return _range(part, kind)
    assert isinstance(part, Constant)
    return part


def _kind_of(stated: Mapping[str, Any]) -> str:
    bounds = stated.get("min"), stated.get("max")
    usual = {
        "distribution": str(stated.get("distribution")),
        "value": "constant",
        "probabilities": "categorical_w_probabilities",
        "values": "categorical",
        "mu": "normal",
        "sigma": "normal",
        "min": "int_uniform" if all(type(each) is int for each in bounds) else "uniform",
    }
    return next((kind for key, kind in usual.items() if key in stated), "uniform")


def _range(part: _Range, kind: str) -> dict[str, Any]:
    low, high = part.min, part.max
    if "log" in kind and not kind.endswith("_values"):
        low, high = (-high, -low) if kind.startswith("inv_") else (low, high)
        try:
            low, high = _rounded(math.exp(low)), _rounded(math.exp(high))
        except OverflowError:
            what = f"has bounds that are exponents of e here, and e^{high:g} is too large"
            raise refusal(f"{what}; the bounds themselves are of log_uniform_values") from None
    if not isinstance(part, _Steps):
        log = {"log": True} if "log" in kind else {}
        return {"type": "float", "low": low, "high": high, **log}
    q = part.q
    if q == 1 and "log" in kind:
        return {"type": "int", "low": max(1, round(low)), "high": round(high), "log": True}
    first, last = math.ceil(low / q - 1e-9), math.floor(high / q + 1e-9)
    if q.is_integer():
        return {"type": "int", "low": int(first * q), "high": int(last * q), "step": int(q)}
    return {"type": "float", "low": _rounded(first * q), "high": _rounded(last * q), "step": q}


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")
