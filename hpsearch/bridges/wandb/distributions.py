"""A parameter of a W&B sweep as one of a study.

Source: "Sweep configuration options" in the documentation of Weights & Biases.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from hpsearch.study_file.types import is_number, is_whole_number

CONSTANT = "constant"
KEYS = ("distribution", "value", "values", "probabilities", "min", "max", "q", "mu", "sigma")
"""The keys of a parameter."""
WITHOUT_BOUNDS = ("normal", "q_normal", "log_normal", "q_log_normal", "beta", "q_beta")
"""Distributions that a study file does not have."""
_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")

Part = Mapping[str, Any]
Remark = Callable[[str], None]


class NotCarriedOver(Exception):
    """A reason why a study file cannot have a part of a sweep, as half a sentence."""


def number_in_text(value: Any) -> Any:
    """The number that a text such as 1e-4 is, which YAML takes for text; any other value as it
    is."""
    if isinstance(value, str) and _EXPONENT.fullmatch(value.strip()):
        return float(value)
    return value


def distribution_of(part: Part) -> str:
    """The name of a parameter's distribution, which W&B infers where it is not stated."""
    if "distribution" in part:
        return str(part["distribution"])
    if "value" in part:
        return CONSTANT
    if "values" in part:
        return "categorical_w_probabilities" if "probabilities" in part else "categorical"
    if "mu" in part or "sigma" in part:
        return "normal"
    is_whole = all(is_whole_number(part.get(key)) for key in ("min", "max"))
    return "int_uniform" if is_whole else "uniform"


def parameter_of(part: Part, kind: str, remark: Remark) -> dict[str, Any]:
    """A parameter of a study file, from one of a sweep with a distribution other than `constant`.

    Raises:
        NotCarriedOver: A study file does not have the distribution, or something is missing.
    """
    if kind in WITHOUT_BOUNDS:
        what = f"has the distribution {kind}, which a study does not have"
        raise NotCarriedOver(f"{what}; write a distribution with a min and a max: uniform")
    if kind not in DISTRIBUTIONS:
        raise NotCarriedOver(f"has the distribution {kind!r}; use {', '.join(DISTRIBUTIONS)}")
    is_choice = kind.startswith("categorical")
    keys = ("values", "probabilities") if is_choice else ("min", "max")
    for key in part:
        may_be = key in keys or (key == "q" and kind.startswith("q_"))
        if key != "distribution" and not may_be:
            raise NotCarriedOver(f"is {kind}, and has {key}, which that does not have; remove it")
    if is_choice:
        return _choices(part)
    low, high = (_number(part, key, kind) for key in ("min", "max"))
    if kind == "int_uniform":
        if not (low.is_integer() and high.is_integer()):
            raise NotCarriedOver("is int_uniform, and its min and max are not whole numbers")
        return {"type": "int", "low": int(low), "high": int(high)}
    if kind == "uniform":
        return {"type": "float", "low": low, "high": high}
    q = _number(part, "q", kind) if "q" in part else 1.0
    if kind.startswith("q_") and q <= 0:
        raise NotCarriedOver(f"has a q of {q:g}, which must be above 0")
    if kind == "q_uniform":
        return _steps(low, high, q)
    if not kind.endswith("_values"):
        low, high = _exponentials(low, high, is_inverse=kind.startswith("inv_"))
    if low <= 0:
        raise NotCarriedOver(f"has a min of {low:g}, and {kind} needs one above 0")
    if not kind.startswith("q_"):
        return {"type": "float", "low": low, "high": high, "log": True}
    if q == 1:
        return {"type": "int", "low": max(1, round(low)), "high": round(high), "log": True}
    remark(f"are drawn evenly among multiples of {q:g}, and not by their logarithms as {kind}")
    return _steps(low, high, q)


DISTRIBUTIONS = (
    *("categorical", "categorical_w_probabilities", "int_uniform", "uniform", "q_uniform"),
    *("log_uniform", "log_uniform_values", "q_log_uniform", "q_log_uniform_values"),
    *("inv_log_uniform", "inv_log_uniform_values"),
)
"""The distributions that a study file has, too, beside `constant`."""


def _choices(part: Part) -> dict[str, Any]:
    values = part.get("values")
    if not isinstance(values, list) or not values:
        raise NotCarriedOver("is categorical, and has no list of values")
    shares = part.get("probabilities")
    if shares is not None and (not isinstance(shares, list) or len(set(map(str, shares))) > 1):
        what = "has probabilities, and a study draws all values with the same"
        raise NotCarriedOver(f"{what}; remove them, or write likelier values as a range")
    return {"type": "categorical", "choices": list(map(number_in_text, values))}


def _number(part: Part, key: str, kind: str) -> float:
    if key not in part:
        raise NotCarriedOver(f"is {kind}, and has no {key}")
    value = number_in_text(part[key])
    if not is_number(value):
        raise NotCarriedOver(f"has a {key} that is not a number: {value!r}")
    return float(value)


def _exponentials(low: float, high: float, *, is_inverse: bool) -> tuple[float, float]:
    """The bounds that are meant by exponents of e; of their inverses, the other way round."""
    if is_inverse:
        low, high = -high, -low
    try:
        return _rounded(math.exp(low)), _rounded(math.exp(high))
    except OverflowError:
        what = f"has bounds that are exponents of e here, and e^{high:g} is too large"
        raise NotCarriedOver(f"{what}; the bounds themselves are of log_uniform_values") from None


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")


def _steps(low: float, high: float, q: float) -> dict[str, Any]:
    """Multiples of q between two bounds: ints if q is a whole number."""
    first, last = math.ceil(low / q - 1e-9), math.floor(high / q + 1e-9)
    if first > last:
        raise NotCarriedOver(f"has no multiple of {q:g} between {low:g} and {high:g}")
    if q.is_integer():
        return {"type": "int", "low": int(first * q), "high": int(last * q), "step": int(q)}
    return {"type": "float", "low": _rounded(first * q), "high": _rounded(last * q), "step": q}
