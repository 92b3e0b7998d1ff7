"""Configurations on the command line: `--enqueue "learning_rate=1e-4, batch_size=32"`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any

from hpsearch.errors import UserError
from hpsearch.study_file.space import Space, contains

OPTION = "--enqueue "
"""What stands before a configuration that `run` and `resume` are given."""

_SECOND_NAME = re.compile(r"\s[^\s=]+\s*=")
_WORDS = {"true": True, "false": False, "null": None}


def configurations(
    texts: Iterable[str], space: Space, *, is_open: bool = False
) -> list[dict[str, Any]]:
    """The configurations of texts such as ``learning_rate=1e-4, batch_size=32``; parameters that
    are left out are drawn.

    Args:
        texts: One for each configuration.
        space: The study's.
        is_open: Whether they may have parameters that the space does not name.

    Raises:
        UserError: A text cannot be read as that, or its configuration is outside the space.
    """
    return [_configuration(text, space, is_open) for text in texts]


def _configuration(text: str, space: Space, is_open: bool) -> dict[str, Any]:
    params = parameters_of(text, OPTION)
    problems = contains(space, params, is_open=is_open)
    if problems:
        what = "; ".join(problems)
        raise UserError(f'{OPTION}"{text}": {what}')
    return params


def parameters_of(text: str, before: str = "") -> dict[str, Any]:
    """The parameters of a text such as ``learning_rate=1e-4, batch_size=32``.

    Args:
        text: As it was written.
        before: What stands before it on the command line.

    Raises:
        UserError: It cannot be read as that.
    """
    params: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise _unreadable(text, before, f"'{part.strip()}' is not NAME=VALUE")
        if not _in_quotes(value) and _SECOND_NAME.search(value):
            raise _unreadable(text, before, f"a comma is missing in '{part.strip()}'")
        if name in params:
            raise _unreadable(text, before, f"{name} appears twice")
        params[name] = value_of(value)
    return params


def _unreadable(text: str, before: str, problem: str) -> UserError:
    hint = f'write it like this: {before}"learning_rate=1e-4, batch_size=32"'
    return UserError(f'{before}"{text}": {problem}', hint)


def value_of(text: str) -> Any:
    """The text as a number, true, false or null if it is one; else the text without its quotes."""
    word = text.lower()
    if word in _WORDS:
        return _WORDS[word]
    number = _number(text)
    if number is not None:
        return number if math.isfinite(number) else text
    return text[1:-1] if _in_quotes(text) else text


def _in_quotes(text: str) -> bool:
    return len(text) > 1 and text[0] == text[-1] in "'\""


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
