"""JSON as both databases take it. Numbers that JSON does not have are objects with one key, such as
`{"$float": "nan"}` and `{"$float": "-inf"}`. Everything else is plain JSON with the order of its
keys kept; tuples come back as lists.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


def encode(value: Any) -> str:
    """The JSON text of a value. Dataclasses are objects, distributions are texts, and scalars of
    numpy and torch are the numbers that they hold. Raises TypeError if the value holds anything
    else that JSON does not have, or is nested too deep."""
    if value == {} and isinstance(value, dict):  # as most are
        return "{}"
    try:
        text = _encode(value)
        if clean(text) == text and "\\u0000" not in text:
            return text
    except ValueError:  # a float that is not finite
        pass
    try:
        return _encode(_escaped(value))
    except RecursionError:
        raise TypeError("a value that is nested so deep cannot be stored") from None


def clean(text: str) -> str:
    """A text as both databases take it: NUL characters and halves of surrogate pairs become the
    escapes that a Python literal would have."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()


@lru_cache(maxsize=4096)
def distribution_of(text: str) -> BaseDistribution:
    """A distribution of Optuna's from its JSON, shared by all trials that have the same."""
    from optuna.distributions import json_to_distribution  # slow to import

    return json_to_distribution(text)


@lru_cache(maxsize=4096)
def _text_of(distribution: BaseDistribution) -> str:
    from optuna.distributions import distribution_to_json

    return distribution_to_json(distribution)


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if hasattr(value, "item"):
        return value.item()
    # Imported here: Optuna is slow to import, and only what it made needs it.
    from optuna.distributions import BaseDistribution

    if isinstance(value, BaseDistribution):
        return _text_of(value)
    kind = type(value).__name__
    raise TypeError(f"{value!r} of type {kind} cannot be stored: it is not a JSON value")


def _escaped(value: Any) -> Any:
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_escaped(key): _escaped(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(item) for item in value]
    return _escaped(_plain(value))


def _number_of(value: dict[str, Any]) -> Any:
    return float(value["$float"]) if len(value) == 1 and "$float" in value else value


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
).encode
_decode = json.JSONDecoder().decode
_decode_all = json.JSONDecoder(object_hook=_number_of).decode


def decode(text: str) -> Any:
    """The value of a text that `encode` wrote. Raises ValueError for one that is not JSON."""
    return _decode_all(text) if "$float" in text else _decode(text)
