"""JSON as both databases take it: what standard JSON cannot say is written as an object with one key.

| in Python                                | in the database                         |
|------------------------------------------|-----------------------------------------|
| nan, inf, -inf                           | `{"$float": "nan"}`                     |
| text with a NUL or half a surrogate pair | `{"$text": "as a Python \\x00 literal"}` |
| a dict with a key that begins with `$`   | `{"$dict": [[key, value], ...]}`        |

Everything else is plain JSON with the order of its keys kept. Tuples come back as lists. Scalars of numpy and torch
are written as the Python numbers they hold.
"""

from __future__ import annotations

import enum
import json
import math
from typing import Any, TypeVar

from hpsearch.errors import StoreUnreachable

E = TypeVar("E", bound=enum.StrEnum)


class Damaged(StoreUnreachable):
    """The database holds what this program never writes.

    Args:
        what: It, as the rest of "it has ...".
        where: The study, trial and column, where they are known.
    """

    def __init__(self, what: str, where: str | None = None) -> None:
        told = f"it has {what}" if where is None else where
        super().__init__(
            f"the database is damaged: {told}", "restore a backup; all that is damaged is told by: hpsearch db check"
        )
        self.what = what


def encode(value: Any) -> str:
    """The JSON text of a value.

    Raises:
        TypeError: It holds something that is no JSON value.
    """
    try:
        text = _encode(value)
        text.encode()
    except ValueError:  # a float that is not finite, or half a surrogate pair
        return _encode(_escaped(value))
    if '"$' in text or "\\u0000" in text:
        return _encode(_escaped(value))
    return text


def decode(text: str | bytes) -> Any:
    """The value of a JSON text that `encode` wrote.

    Raises:
        Damaged: It is none: the database was damaged, or another program wrote into it.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        return _decode_escaped(text) if '"$' in text else _decode(text)
    except (ValueError, RecursionError, TypeError, AttributeError):
        raise Damaged(f"{text[:40]!r} where JSON should stand") from None


def decode_column(text: str | bytes) -> Any:
    """The value of a JSON column; absent is NULL there, which comes here not at all.

    Raises:
        Damaged: It is no JSON, or JSON's null.
    """
    value = decode(text)
    if value is None:
        raise Damaged("'null' where a JSON object or array should stand")
    return value


def member(kind: type[E], text: str) -> E:
    """The member of an enumeration that a column names.

    Raises:
        Damaged: It names none.
    """
    try:
        return kind(text)
    except ValueError:
        raise Damaged(f"{text!r} where one of {', '.join(map(str, kind))} should stand") from None


def _plain(value: Any) -> Any:
    """A scalar of numpy or torch as a Python number."""
    if not hasattr(value, "item"):
        raise TypeError(f"{value!r} of type {type(value).__name__} cannot be stored: it is no JSON value")
    return value.item()


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def _float(text: str) -> float:
    """A number of JSON. What a float cannot hold, and the constants that JSON lacks, are never written.

    Raises:
        ValueError: It is such.
    """
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is no number that JSON holds")
    return value


def _escaped(value: Any) -> Any:
    """The same value with every part escaped that JSON or a database would not take."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, str):
        return value if storable(value) else {"$text": value.encode("unicode_escape").decode()}
    if isinstance(value, dict):
        if all(storable(key) and not key.startswith("$") for key in value if isinstance(key, str)):
            return {key: _escaped(item) for key, item in value.items()}
        return {"$dict": [[_escaped(key), _escaped(item)] for key, item in value.items()]}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return _escaped(value.item()) if hasattr(value, "item") else value


def _unescaped(value: dict[str, Any]) -> Any:
    """What an object of the database stands for; its own parts are already unescaped."""
    if len(value) != 1:
        return value
    ((key, content),) = value.items()
    if key == "$float":
        return float(content)
    if key == "$text":
        return content.encode().decode("unicode_escape")
    return dict(content) if key == "$dict" else value


_decode = json.JSONDecoder(parse_float=_float, parse_constant=_float).decode
_decode_escaped = json.JSONDecoder(object_hook=_unescaped, parse_float=_float, parse_constant=_float).decode


def storable(text: str) -> bool:
    """Whether both databases take a text as it is."""
    return (text.isascii() and "\0" not in text) or not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)
