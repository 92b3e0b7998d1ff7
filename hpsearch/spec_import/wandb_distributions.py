"""The distributions of W&B's sweeps as parameters of a study.

Source: "Sweep configuration options" in the documentation of Weights & Biases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hpsearch.study_file.types import is_number, is_whole_number

WITHIN = 2.0
"""A normal distribution is searched so many standard deviations to both sides of its mean."""


@dataclass(frozen=True, slots=True)
class Carried:
    """A parameter, and what of it is lost."""

    parameter: dict[str, Any] | None
    """As a study file has it; None if it has no form there."""
    remark: str | None = None


Part = dict[str, Any]


def carried(part: Part) -> Carried:
    """A parameter of a sweep as one of a study.

    Args:
        part: What stands under its name: `distribution`, `min`, `max`, `values` and so on.
    """
    kind = part.get("distribution") or _usual(part)
    make = _MAKERS.get(str(kind))
    if make is None:
        return Carried(None, f"the distribution {kind!r} is not known; write a range yourself")
    try:
        return make(part)
    except (KeyError, TypeError, ValueError, OverflowError):
        return Carried(None, f"{kind} lacks numbers that it needs, or they are not numbers")


def _usual(part: Part) -> str:
    """The distribution of a parameter that states none."""
    if "values" in part:
        return "categorical"
    if is_whole_number(part.get("min")) and is_whole_number(part.get("max")):
        return "int_uniform"
    return "uniform" if "min" in part and "max" in part else "unknown"


def _categorical(part: Part) -> Carried:
    values = part["values"]
    if not isinstance(values, list):
        return Carried(None, "values must be a list")
    kept = [
        value for value in values if value is None or isinstance(value, bool | int | float | str)
    ]
    lost = None
    if len(kept) < len(values):
        lost = "values that are lists or mappings are left out; search their parts instead"
    if part.get("probabilities") or part.get("distribution") == "categorical_w_probabilities":
        lost = "the probabilities are left out: all choices begin alike, and the search prefers"
        lost += " what turns out well; a prior: says which one is believed to be good"
    return Carried({"type": "categorical", "choices": kept}, lost)


def _int_uniform(part: Part) -> Carried:
    return Carried({"type": "int", "low": int(part["min"]), "high": int(part["max"])})


def _uniform(part: Part) -> Carried:
    return Carried({"type": "float", "low": float(part["min"]), "high": float(part["max"])})


def _quantized(low: float, high: float, q: float) -> Carried:
    """Multiples of q between two bounds: ints if q is a whole number."""
    first, last = math.ceil(low / q - 1e-9), math.floor(high / q + 1e-9)
    if float(q).is_integer():
        step = {} if q == 1 else {"step": int(q)}
        return Carried({"type": "int", "low": first * int(q), "high": last * int(q), **step})
    digits = max(0, 12 - math.ceil(math.log10(abs(q))))
    bounds = {"low": round(first * q, digits), "high": round(last * q, digits)}
    return Carried({"type": "float", **bounds, "step": q})


def _q_uniform(part: Part) -> Carried:
    return _quantized(float(part["min"]), float(part["max"]), _q(part))


def _q(part: Part) -> float:
    q = part.get("q", 1)
    if not is_number(q) or q <= 0:
        raise ValueError
    return q


def _log(low: float, high: float, remark: str | None = None) -> Carried:
    return Carried({"type": "float", "low": low, "high": high, "log": True}, remark)


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")


def _log_uniform(part: Part) -> Carried:
    low, high = math.exp(part["min"]), math.exp(part["max"])
    return _log(_rounded(low), _rounded(high))


def _log_uniform_values(part: Part) -> Carried:
    return _log(float(part["min"]), float(part["max"]))


def _inv_log_uniform(part: Part) -> Carried:
    low, high = math.exp(-part["max"]), math.exp(-part["min"])
    return _log(_rounded(low), _rounded(high))


def _q_log_uniform(part: Part) -> Carried:
    return _q_log(math.exp(part["min"]), math.exp(part["max"]), _q(part))


def _q_log_uniform_values(part: Part) -> Carried:
    return _q_log(float(part["min"]), float(part["max"]), _q(part))


def _q_log(low: float, high: float, q: float) -> Carried:
    """A logarithmic scale has no step: whole numbers, or all numbers of the range."""
    if float(q).is_integer():
        lost = None if q == 1 else f"a logarithmic scale has no step, so q: {q:g} is left out"
        bounds = {"low": max(1, round(low)), "high": max(1, round(high))}
        return Carried({"type": "int", **bounds, "log": True}, lost)
    return _log(
        _rounded(low), _rounded(high), f"a logarithmic scale has no step: q: {q:g} is left out"
    )


def _normal(part: Part) -> Carried:
    mean, deviation = float(part.get("mu", 0)), float(part.get("sigma", 1))
    low, high = mean - WITHIN * deviation, mean + WITHIN * deviation
    bounds = {"low": _rounded(low), "high": _rounded(high)}
    parameter = {"type": "float", **bounds, "prior": mean}
    return Carried(parameter, _two_deviations("mu"))


def _two_deviations(middle: str) -> str:
    return (
        f"a normal distribution has no bounds: the range is {middle} with two sigma to both sides, "
        "and the prior its middle"
    )


def _log_normal(part: Part) -> Carried:
    mean, deviation = float(part.get("mu", 0)), float(part.get("sigma", 1))
    low, high = math.exp(mean - WITHIN * deviation), math.exp(mean + WITHIN * deviation)
    parameter = {
        "type": "float",
        "low": _rounded(low),
        "high": _rounded(high),
        "log": True,
        "prior": min(max(_rounded(math.exp(mean)), _rounded(low)), _rounded(high)),
    }
    return Carried(parameter, _two_deviations("exp(mu)"))


def _without_q(make: Callable[[Part], Carried]) -> Callable[[Part], Carried]:
    def made(part: Part) -> Carried:
        found = make(part)
        return Carried(found.parameter, f"{found.remark or ''}; q is left out".lstrip("; "))

    return made


def _beta(part: Part) -> Carried:
    a, b = float(part.get("a", 1)), float(part.get("b", 1))
    parameter = {"type": "float", "low": 0.0, "high": 1.0, "prior": a / (a + b)}
    return Carried(parameter, "a beta distribution is searched from 0 to 1, with its mean as prior")


_MAKERS: dict[str, Callable[[Part], Carried]] = {
    "categorical": _categorical,
    "categorical_w_probabilities": _categorical,
    "int_uniform": _int_uniform,
    "uniform": _uniform,
    "q_uniform": _q_uniform,
    "log_uniform": _log_uniform,
    "log_uniform_values": _log_uniform_values,
    "q_log_uniform": _q_log_uniform,
    "q_log_uniform_values": _q_log_uniform_values,
    "inv_log_uniform": _inv_log_uniform,
    "inv_log_uniform_values": _log_uniform_values,
    "normal": _normal,
    "q_normal": _without_q(_normal),
    "log_normal": _log_normal,
    "q_log_normal": _without_q(_log_normal),
    "beta": _beta,
    "q_beta": _without_q(_beta),
}
DISTRIBUTIONS = tuple(_MAKERS)
