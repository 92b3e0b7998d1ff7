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
    """The JSON text of a value.

    Raises:
        TypeError: It holds something that is not a JSON value, or is nested too deep.
    """
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
    """Whether JSON is nested deeper than `DEEPEST`."""
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
    """The value of a JSON text that `encode` wrote.

    Raises:
        Damaged: It is not such a text: the database was damaged, or another program wrote into it.
    """
    if _is_deep(text):
        raise Damaged(f"JSON nested more than {DEEPEST} deep")
    try:
        text.encode()  # SQLite may keep what is not Unicode
        has_escapes = '"$' in text
        return _decode_escaped(text) if has_escapes else _decode(text)
    except (ValueError, RecursionError, TypeError, AttributeError):
        raise Damaged(f"{text[:40]!r} where JSON should be") from None


def decode_column(text: str) -> Any:
    """The value of a JSON column; an absent one is NULL there, which is never passed here.

    Raises:
        Damaged: It is not JSON, or it is JSON's null.
    """
    value = decode(text)
    if value is None:
        raise Damaged("'null' where a JSON object or array should be")
    return value


def _plain(value: Any) -> Any:
    """A scalar of numpy or torch as a Python number."""
    if hasattr(value, "item"):
        return value.item()
    kind = type(value).__name__
    raise TypeError(f"{value!r} of type {kind} cannot be stored: it is not a JSON value")


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
).encode


def _float(text: str) -> float:
    """A number of JSON. What a float cannot hold, and the constants that JSON lacks, are never
    written.

    Raises:
        ValueError: It is such.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is not a number that JSON can hold")
    return value


def _escaped(value: Any) -> Any:
    """The same value with every part escaped that JSON or a database would not take."""
    if isinstance(value, float):
        return _escaped_float(value)
    if isinstance(value, str):
        return _escaped_text(value)
    if isinstance(value, dict):
        return _escaped_dict(value)
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    if hasattr(value, "item"):
        return _escaped(value.item())
    return value


def _escaped_float(value: float) -> Any:
    if math.isfinite(value):
        return value
    return {"$float": repr(float(value))}


def _escaped_text(value: str) -> Any:
    if storable(value):
        return value
    literal = value.encode("unicode_escape").decode()
    return {"$text": literal}


def _escaped_dict(value: dict[Any, Any]) -> dict[Any, Any]:
    if all(_is_plain_key(key) for key in value):
        return {key: _escaped(item) for key, item in value.items()}
    pairs = []
    for key, item in value.items():
        pairs.append([_escaped(key), _escaped(item)])
    return {"$dict": pairs}


def _is_plain_key(key: Any) -> bool:
    """Whether an object can have a key as it is; keys that are not texts are left to JSON."""
    if not isinstance(key, str):
        return True
    return storable(key) and not key.startswith("$")


def _unescaped(value: dict[str, Any]) -> Any:
    """What an object of the database stands for; its own parts are already unescaped."""
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
    """Whether it is a text that both databases take as it is."""
    if not isinstance(text, str) or "\0" in text:
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
