"""Configurations on the command line: `--enqueue "learning_rate=1e-4, batch_size=32"`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from hpsearch import space as spaces
from hpsearch.errors import UserError

_WORDS = {"true": True, "false": False, "null": None}


def configurations(texts: Iterable[str], space: spaces.Space) -> list[dict[str, Any]]:
    """Known-good configurations as they were written, each a list of NAME=VALUE with commas between them.

    Raises:
        UserError: One does not read as that, or lies outside the space.
    """
    return [_configuration(text, space) for text in texts]


def _configuration(text: str, space: spaces.Space) -> dict[str, Any]:
    params: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name or name in params:
            what = f"{name} stands there twice" if name in params else f"'{part.strip()}' is not NAME=VALUE"
            raise UserError(
                f'--enqueue "{text}": {what}', 'write it like: --enqueue "learning_rate=1e-4, batch_size=32"'
            )
        params[name] = value_of(value)
    if problems := spaces.contains(space, params):
        raise UserError(f'--enqueue "{text}": {"; ".join(problems)}')
    return params


def value_of(text: str) -> Any:
    """A number, true, false or null where it reads as one; else the text itself, without quotes around it."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for number in (int, float):
        try:
            value = number(text)
        except ValueError:
            continue
        return value if math.isfinite(value) else text
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] in "'\"" else text
