"""The search spaces of Ray Tune, as code writes them, as parameters of a study.

Source: "Tune Search Space API" in the documentation of Ray.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from hpsearch.spec_import.draft import FORWARD, StudyDraft
from hpsearch.spec_import.python_code import Code, Unknown, argument, called

_SIGNATURES: dict[str, tuple[str, ...]] = {
    "uniform": ("lower", "upper"),
    "quniform": ("lower", "upper", "q"),
    "loguniform": ("lower", "upper", "base"),
    "qloguniform": ("lower", "upper", "q", "base"),
    "randn": ("mean", "sd"),
    "qrandn": ("mean", "sd", "q"),
    "randint": ("lower", "upper"),
    "qrandint": ("lower", "upper", "q"),
    "lograndint": ("lower", "upper", "base"),
    "qlograndint": ("lower", "upper", "q", "base"),
    "choice": ("categories",),
    "grid_search": ("values",),
}
_FUNCTIONS = ("sample_from",)
NAMES = (*_SIGNATURES, *_FUNCTIONS)


def add(draft: StudyDraft, code: Code, space: Mapping[str, ast.expr], before: str = "") -> None:
    """Add a space to a draft: parameters, and constants as settings.

    Args:
        draft: The draft.
        code: The file.
        space: By name, what the code says of a parameter.
        before: The names around it, each with a dot.
    """
    for key, node in space.items():
        name = f"{before}{key}"
        meant = code.meant(node)
        inner = mapping_in(code, meant)
        if isinstance(meant, ast.Call) and called(meant) in NAMES:
            _add_parameter(draft, code, name, meant)
        elif inner is not None and inner:
            add(draft, code, inner, f"{name}.")
        else:
            _add_constant(draft, code, name, meant)


def mapping_in(code: Code, node: ast.expr) -> dict[str, ast.expr] | None:
    """The entries of a dict as code writes it; None if it is not one."""
    node = code.meant(node)
    if isinstance(node, ast.Call) and called(node) == "dict" and not node.args:
        return {each.arg: each.value for each in node.keywords if each.arg is not None}
    if not isinstance(node, ast.Dict):
        return None
    found: dict[str, ast.expr] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:  # **others
            found |= mapping_in(code, value) or {f"**{ast.unparse(value)}": value}
        elif isinstance(key, ast.Constant) and isinstance(key.value, str):
            found[key.value] = value
        else:
            found[ast.unparse(key)] = value
    return found


def _add_constant(draft: StudyDraft, code: Code, name: str, node: ast.expr) -> None:
    try:
        value = code.value(node)
    except Unknown as unknown:
        what = f"{name} {FORWARD}: only running the code tells what {unknown} is; write its value"
        draft.remark(node.lineno, "settings", what)
        return
    draft.sections.setdefault("settings", {})[name] = value


def _add_parameter(draft: StudyDraft, code: Code, name: str, call: ast.Call) -> None:
    kind = called(call)
    if kind in _FUNCTIONS:
        what = f"{name} {FORWARD}: {kind} runs code for each value; search a parameter with a range"
        draft.remark(
            call.lineno, "space", f"{what}, and work the value out in the training function"
        )
        return
    given = {}
    try:
        for position, argument_name in enumerate(_SIGNATURES[kind]):
            node = argument(call, argument_name, position)
            if node is not None:
                given[argument_name] = code.value(node)
        parameter, remark = _parameter(kind, given)
    except Unknown as unknown:
        what = f"{name} {FORWARD}: only running the code tells what {unknown} is; write its range"
        draft.remark(call.lineno, "space", what)
        return
    except (KeyError, TypeError, ValueError):
        what = f"{name} {FORWARD}: {ast.unparse(call)} does not have the arguments that it needs"
        draft.remark(call.lineno, "space", what)
        return
    if draft.add(name, parameter, call.lineno) and remark:
        draft.remark(call.lineno, f"space.{name}", remark)


def _parameter(kind: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """The parameter of a study, and what of the distribution is lost."""
    if kind in ("choice", "grid_search"):
        return _choices(kind, next(iter(given.values())))
    if "randn" in kind:
        mean, deviation = float(given["mean"]), float(given["sd"])
        bounds = {"low": mean - 2 * deviation, "high": mean + 2 * deviation, "prior": mean}
        what = "a normal distribution has no bounds: two sd to both sides, with the mean as prior"
        return {"type": "float", **bounds}, what
    low, high = given["lower"], given["upper"]
    if "randint" in kind:
        return _whole(kind, int(low), int(high), int(given.get("q", 1)))
    parameter: dict[str, Any] = {"type": "float", "low": float(low), "high": float(high)}
    q = given.get("q")
    if "log" in kind:
        lost = None if q is None else f"a logarithmic scale has no step: q={q} is left out"
        return {**parameter, "log": True}, lost
    return (parameter if q is None else {**parameter, "step": float(q)}), None


def _whole(kind: str, low: int, high: int, q: int) -> tuple[dict[str, Any], str | None]:
    """A whole number: `high` belongs to the range only where there is a q."""
    quantized = kind.startswith("q")
    parameter: dict[str, Any] = {"type": "int", "low": low, "high": high if quantized else high - 1}
    if "log" in kind:
        lost = (
            f"a logarithmic scale has no step: q={q} is left out" if quantized and q > 1 else None
        )
        return {**parameter, "log": True}, lost
    return ({**parameter, "step": q} if q > 1 else parameter), None


def _choices(kind: str, values: Any) -> tuple[dict[str, Any], str | None]:
    if not isinstance(values, list) or not values:
        raise ValueError
    remark = None
    if kind == "grid_search":
        remark = "grid_search: the sampler chooses among the values, and need not try all of them"
    return {"type": "categorical", "choices": values}, remark
