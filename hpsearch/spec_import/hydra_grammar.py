"""The sweeps of Hydra's override grammar: `choice(a, b)`, `range(1, 9, step=2)`, `interval(0, 1)`,
`tag(log, int(interval(1, 1000)))`, `1,2,3` and the like.

Source: "Extended override syntax" in the documentation of Hydra.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_CALL = re.compile(r"([A-Za-z_]\w*)\s*\((.*)\)", re.DOTALL)
_WHOLE = re.compile(r"[+-]?\d+(?:_\d+)*")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_WORDS = {"true": True, "false": False, "null": None}
_OPENING, _CLOSING = "([{", ")]}"


class NotCarried(Exception):
    """A sweep that has no form in a study file; says why and what to write."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function of the grammar with its arguments."""

    name: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


def parameter(text: str, *, stop_included: bool) -> dict[str, Any]:
    """The parameter of a study that a sweep is.

    Args:
        text: The sweep.
        stop_included: Whether the stop of a range is one of its values: with Optuna's and Ax's
            sweepers it is, with Hydra's own it is not.

    Raises:
        NotCarried: It has no form in a study file.
    """
    parts = split(text)
    if len(parts) > 1:
        return _choices([_value(part) for part in parts])
    return _parameter(_value(text), stop_included=stop_included)


def _parameter(value: Any, *, stop_included: bool) -> dict[str, Any]:
    if not isinstance(value, Call):
        return _choices([value])
    if value.name == "choice":
        return _choices(list(value.arguments))
    if value.name == "range":
        return _range(value, stop_included=stop_included)
    if value.name == "interval":
        return _interval(value)
    inner = value.arguments[-1] if value.arguments else None
    if value.name in ("shuffle", "sort"):
        if len(value.arguments) > 1:
            return _choices(list(value.arguments))
        return _parameter(inner, stop_included=stop_included)
    if value.name == "tag":
        return _tagged(value, _parameter(inner, stop_included=stop_included))
    if value.name in ("int", "float", "str", "bool"):
        return _cast(value.name, _parameter(inner, stop_included=stop_included))
    if value.name == "glob":
        raise NotCarried("glob depends on the files of your configuration: list the choices")
    raise NotCarried(f"{value.name}() is not a sweep that is known")


def _choices(values: list[Any]) -> dict[str, Any]:
    if not values or any(isinstance(each, Call) for each in values):
        raise NotCarried("a choice between sweeps: write the parameter yourself, perhaps with when")
    return {"type": "categorical", "choices": values}


def _numbers(call: Call, names: tuple[str, ...]) -> dict[str, Any]:
    given = dict(zip(names, call.arguments, strict=False)) | call.named
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise NotCarried(f"{call.name}: {name} is {value!r}, which is not a number")
    return given


def _range(call: Call, *, stop_included: bool) -> dict[str, Any]:
    given = _numbers(call, ("start", "stop", "step"))
    if "stop" not in given:
        given = {
            "stop": given.get("start", 0),
            "start": 0,
            **{k: v for k, v in given.items() if k == "step"},
        }
    start, stop, step = given.get("start", 0), given["stop"], given.get("step", 1)
    if step <= 0:
        raise NotCarried("a range downwards: write it upwards")
    whole = all(isinstance(each, int) for each in (start, stop, step))
    count = int((stop - start) / step + 1e-9)
    exact = abs(start + count * step - stop) < 1e-9 * max(1.0, abs(stop))
    if exact and not stop_included:
        count -= 1
    if count < 0:
        raise NotCarried("an empty range")
    if whole:
        stepped = {} if step == 1 else {"step": step}
        return {"type": "int", "low": start, "high": start + count * step, **stepped}
    high = float(f"{start + count * step:.12g}")
    return {"type": "float", "low": float(start), "high": high, "step": float(step)}


def _interval(call: Call) -> dict[str, Any]:
    given = _numbers(call, ("start", "end"))
    if not given.keys() >= {"start", "end"}:
        raise NotCarried("interval needs a start and an end")
    return {"type": "float", "low": float(given["start"]), "high": float(given["end"])}


def _tagged(call: Call, made: dict[str, Any]) -> dict[str, Any]:
    tags = call.arguments[:-1]
    if "log" in tags:
        if made["type"] == "categorical" or "step" in made:
            raise NotCarried("a logarithmic scale goes with an interval only")
        made = {**made, "log": True}
    return made


def _cast(kind: str, made: dict[str, Any]) -> dict[str, Any]:
    if made["type"] == "categorical":
        casts: dict[str, Any] = {"int": int, "float": float, "str": str, "bool": bool}
        try:
            return _choices([casts[kind](each) for each in made["choices"]])
        except (TypeError, ValueError):
            raise NotCarried(f"{kind}() of a choice that is not a number") from None
    if kind == "int":
        step = made.get("step")
        whole = {} if step is None else {"step": max(1, int(step))}
        made = {key: value for key, value in made.items() if key != "step"}
        return {**made, "type": "int", "low": int(made["low"]), "high": int(made["high"]), **whole}
    if kind == "float":
        step = made.get("step", 1 if made["type"] == "int" else None)
        made = {**made, "type": "float", "low": float(made["low"]), "high": float(made["high"])}
        return made if step is None else {**made, "step": float(step)}
    raise NotCarried(f"{kind}() of a range: list the choices")


# ---------------------------------------------------------------------------------- reading


def split(text: str) -> list[str]:
    """The parts between commas that are outside brackets and quotes."""
    parts, start, depth, quote = [], 0, 0, ""
    for i, character in enumerate(text):
        if quote:
            quote = "" if character == quote and text[i - 1] != "\\" else quote
        elif character in "'\"":
            quote = character
        elif character in _OPENING:
            depth += 1
        elif character in _CLOSING:
            depth -= 1
        elif character == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    if depth or quote:
        raise NotCarried(f"{text!r} has a bracket or a quote that is not closed")
    return [part.strip() for part in [*parts, text[start:]]]


def _value(text: str) -> Any:
    """A number, word, quoted text or call; a list or mapping stays as it is written."""
    text = text.strip()
    call = _CALL.fullmatch(text)
    if call:
        return _call(call[1], call[2])
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1].replace("\\" + text[0], text[0])
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


def _call(name: str, inside: str) -> Call:
    arguments, named = [], {}
    for part in split(inside) if inside.strip() else []:
        key, equals, value = part.partition("=")
        if equals and key.strip().isidentifier():
            named[key.strip()] = _value(value)
        else:
            arguments.append(_value(part))
    return Call(name, tuple(arguments), named)
