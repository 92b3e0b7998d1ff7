"""The distributions of W&B's sweeps as parameters of a study.

Source: "Sweep configuration options" in the documentation of Weights & Biases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from hpsearch.study_file.types import is_number, is_whole_number

WITHIN = 2.0
"""A normal distribution is searched so many standard deviations to both sides of its mean."""
NORMAL = "a normal distribution has no bounds: the range is {} with two sigma to both sides, and \
the prior its middle"
BETA = "a beta distribution is searched from 0 to 1, with its mean as prior"
LISTS = "values that are lists or mappings are left out; search their parts instead"
WEIGHTED = "the probabilities are left out: all choices begin alike, and the search prefers what \
turns out well; a prior: says which one is believed to be good"

_RANGES = ("uniform", "log_uniform", "log_uniform_values", "normal", "log_normal", "beta")
DISTRIBUTIONS = (
    *("categorical", "categorical_w_probabilities", "int_uniform"),
    *("inv_log_uniform", "inv_log_uniform_values"),
    *_RANGES,
    *(f"q_{kind}" for kind in _RANGES),
)
"""All that a sweep may state."""

Part = Mapping[str, Any]


class Carried(NamedTuple):
    """A parameter as a study file has it, None if it has no form for it; and what of it is lost."""

    parameter: dict[str, Any] | None
    remark: str | None = None


def carried(part: Part) -> Carried:
    """A parameter of a sweep as one of a study, from what stands under its name: `distribution`,
    `min`, `max`, `values` and so on."""
    kind = str(part.get("distribution") or _usual(part))
    if kind not in DISTRIBUTIONS:
        return Carried(None, f"the distribution {kind!r} is not known; write a range yourself")
    try:
        if kind.startswith("categorical"):
            return _categorical(part)
        if kind == "int_uniform":
            return Carried({"type": "int", "low": int(part["min"]), "high": int(part["max"])})
        found = _range(kind.removeprefix("q_"), part)
        return _quantized(kind, found, part) if kind.startswith("q_") else found
    except (KeyError, TypeError, ValueError, OverflowError):
        return Carried(None, f"{kind} lacks numbers that it needs, or they are not numbers")


def _usual(part: Part) -> str:
    if "values" in part:
        return "categorical"
    if is_whole_number(part.get("min")) and is_whole_number(part.get("max")):
        return "int_uniform"
    return "uniform" if "min" in part and "max" in part else "unknown"


def _categorical(part: Part) -> Carried:
    values = part["values"]
    if not isinstance(values, list):
        return Carried(None, "values must be a list")
    kept = [each for each in values if each is None or isinstance(each, bool | int | float | str)]
    lost = LISTS if len(kept) < len(values) else None
    if part.get("probabilities") or part.get("distribution") == "categorical_w_probabilities":
        lost = WEIGHTED
    return Carried({"type": "categorical", "choices": kept}, lost)


def _range(kind: str, part: Part) -> Carried:
    """A range of numbers, as if it had no steps."""
    prior = lost = None
    if kind.endswith("normal"):
        scale, middle = (math.exp, "exp(mu)") if kind == "log_normal" else (float, "mu")
        mean, deviation = float(part.get("mu", 0)), float(part.get("sigma", 1))
        away = WITHIN * deviation
        low, high, prior = scale(mean - away), scale(mean + away), scale(mean)
        lost = NORMAL.format(middle)
    elif kind == "beta":
        a, b = float(part.get("a", 1)), float(part.get("b", 1))
        low, high, prior, lost = 0.0, 1.0, a / (a + b), BETA
    elif kind == "log_uniform":
        low, high = math.exp(part["min"]), math.exp(part["max"])
    elif kind == "inv_log_uniform":
        low, high = math.exp(-part["max"]), math.exp(-part["min"])
    else:
        low, high = float(part["min"]), float(part["max"])
    found: dict[str, Any] = {"type": "float", "low": _rounded(low), "high": _rounded(high)}
    if "log" in kind:
        found["log"] = True
    if prior is not None:
        found["prior"] = min(max(_rounded(prior), found["low"]), found["high"])
    return Carried(found, lost)


def _rounded(value: float) -> float:
    return float(f"{value:.10g}")


def _quantized(kind: str, found: Carried, part: Part) -> Carried:
    """A range with steps, as far as a study file has them."""
    q = part.get("q", 1)
    if not is_number(q) or q <= 0:
        raise ValueError
    assert found.parameter is not None
    low, high = found.parameter["low"], found.parameter["high"]
    if kind == "q_uniform":
        return Carried(_steps(low, high, q))
    if not kind.startswith("q_log_uniform"):
        return Carried(found.parameter, f"{found.remark}; q is left out")
    lost = f"a logarithmic scale has no step: q: {q:g} is left out"
    if not float(q).is_integer():
        return Carried(found.parameter, lost)
    bounds = {"low": max(1, round(low)), "high": max(1, round(high))}
    return Carried({"type": "int", **bounds, "log": True}, None if q == 1 else lost)


def _steps(low: float, high: float, q: float) -> dict[str, Any]:
    """Multiples of q between two bounds: ints if q is a whole number."""
    first, last = math.ceil(low / q - 1e-9), math.floor(high / q + 1e-9)
    if float(q).is_integer():
        step = {} if q == 1 else {"step": int(q)}
        return {"type": "int", "low": first * int(q), "high": last * int(q), **step}
    digits = max(0, 12 - math.ceil(math.log10(abs(q))))
    return {
        "type": "float",
        "low": round(first * q, digits),
        "high": round(last * q, digits),
        "step": q,
    }
