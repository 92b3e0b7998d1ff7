"""JSON as both databases take it: what standard JSON cannot say is written as an object with one
key.

| in Python                                | in the database                         |
|------------------------------------------|-----------------------------------------|
| nan, inf, -inf                           | `{"$float": "nan"}`                     |
| text with a NUL or half a surrogate pair | `{"$text": "as a Python \\x00 literal"}` |
| a dict with a key that begins with `$`   | `{"$dict": [[key, value], ...]}`        |

Everything else is plain JSON with the order of its keys kept. Tuples come back as lists. Scalars of
numpy and torch are written as the Python numbers they hold.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from hpsearch.errors import Damaged

DEEPEST = 100
"""So many levels of arrays and objects are written, one within another: what reads them calls
itself for each, and Python ends that at some 1000 calls."""


def encode(value: Any) -> str:
    """The JSON text of a value. Raises TypeError if it holds something that is not a JSON value, or
    is nested too deep."""
    try:
        text = _written(value)
    except RecursionError:
        text = "[" * (DEEPEST + 1)
    if _is_deep(text):
        raise TypeError(f"a value nested more than {DEEPEST} deep cannot be stored")
    return text


def _written(value: Any) -> str:
    try:
        text = _encode(value)
        text.encode()
    except ValueError:  # a float that is not finite, or half a surrogate pair
        return _encode(_escaped(value))
    if '"$' in text or "\\u0000" in text:
        return _encode(_escaped(value))
    return text


def _is_deep(text: str) -> bool:
    if text.count("[") + text.count("{") <= DEEPEST:
        return False
    depth = 0
    for mark in _MARK.findall(text):
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
        if depth > DEEPEST:
            return True
    return False


_MARK = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[{\]}]', re.DOTALL)
"""A text, which may hold brackets, or a bracket."""


def decode(text: str) -> Any:
    """The value of a JSON text that `encode` wrote."""
    if _is_deep(text):
        raise Damaged(f"JSON nested more than {DEEPEST} deep")
    try:
        text.encode()  # SQLite may keep what is not Unicode
        has_escapes = '"$' in text
        return _decode_escaped(text) if has_escapes else _decode(text)
    except (ValueError, RecursionError, TypeError, AttributeError):
        raise Damaged(f"{text[:40]!r} where JSON should be") from None


def decode_column(text: str) -> Any:
    """The value of a JSON column; an absent one is NULL there, which is never passed here."""
    value = decode(text)
    if value is None:
        raise Damaged("'null' where a JSON object or array should be")
    return value


def _plain(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    kind = type(value).__name__
    raise TypeError(f"{value!r} of type {kind} cannot be stored: it is not a JSON value")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
).encode


def _float(text: str) -> float:
    """A number of JSON. What a float cannot hold, and the constants that JSON lacks, are never
    written."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a number that JSON can hold")
    return value


def _escaped(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, str):
        return value if storable(value) else {"$text": value.encode("unicode_escape").decode()}
    if isinstance(value, dict):
        return _escaped_dict(value)
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    if hasattr(value, "item"):
        return _escaped(value.item())
    return value


def _escaped_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    if all(_is_plain_key(key) for key in value):
        return {key: _escaped(item) for key, item in value.items()}
    pairs = []
    for key, item in value.items():
        pairs.append([_escaped(key), _escaped(item)])
    return {"$dict": pairs}


def _is_plain_key(key: Any) -> bool:
    if not isinstance(key, str):
        return True
    return storable(key) and not key.startswith("$")


def _unescaped(value: dict[str, Any]) -> Any:
    if len(value) != 1:
        return value
    ((key, content),) = value.items()
    if key == "$float":
        return float(content)
    if key == "$text":
        return content.encode().decode("unicode_escape")
    if key == "$dict":
        return dict(content)
    return value


_decode = json.JSONDecoder(parse_float=_float, parse_constant=_float).decode
_decode_escaped = json.JSONDecoder(
    object_hook=_unescaped, parse_float=_float, parse_constant=_float
).decode


def storable(text: object) -> bool:
    """True if it is a text that both databases take as it is."""
    if not isinstance(text, str) or "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
