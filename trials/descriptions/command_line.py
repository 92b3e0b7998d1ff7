"""A command line with placeholders.

The text is split as by a shell, and only then are values put in: no shell ever reads a value.
"""

import itertools
import re
import shlex
import string
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from trials.contract import TaskError
from trials.settings import as_scalar

BUDGET, FOLDER, RESUME, SEED, PARAMS = GIVEN = ("budget", "folder", "resume", "seed", "params")
"""Placeholders with a value in every trial, beside its parameters."""
FOLD, _ = OF_FOLDS = ("fold", "folds")
"""Those with a value where the budget has folds: the number of one, from 0, and of all."""
_EXAMPLE = "write {{ and }} for braces of the command's own"
_FLAG = re.compile(r"--?[A-Za-z][^=]*")
_Parts = list[tuple[str, str | None]]
"""The pieces of a word: a text, and the name of the placeholder after it."""


class CommandLine:
    """A command line with placeholders such as ``{learning_rate}``. Raises TaskError if a quote or
    a brace is not closed, or there is no word."""

    def __init__(self, text: str) -> None:
        try:
            words = shlex.split(text.replace("\\\n", " "))
        except ValueError as error:
            raise _mistake(f"cannot be split into words: {str(error).lower()}") from None
        if not words:
            raise _mistake("is empty; write the command that trains one configuration")
        self._words = [_parts_of(word) for word in words]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(name for word in self._words for name in _names_in(word))

    @property
    def program(self) -> str | None:
        """The program; None if a placeholder names it."""
        first = self._words[0]
        return None if _names_in(first) else _joined(first, {})

    @property
    def plain_words(self) -> list[str]:
        """The words without a placeholder, which may be files."""
        return [_joined(word, {}) for word in self._words if not _names_in(word)]

    def shares_its_word(self, name: str) -> bool:
        """True if a placeholder is in one word with another one: it cannot be left out alone."""
        in_words = map(_names_in, self._words)
        return any(name in names and len(names) > 1 for names in in_words)

    def flag_before(self, name: str) -> str | None:
        """The flag before a placeholder that is a word of its own; None without one."""
        for before, word in itertools.pairwise(self._words):
            flag = _joined(before, {}) if not _names_in(before) else ""
            if word == [("", name)] and _FLAG.fullmatch(flag):
                return flag
        return None

    def filled(self, values: Mapping[str, Any]) -> list[str]:
        """The words of a trial's command. A value of None leaves out the word of its placeholder,
        and the flag before it."""
        texts = {name: _text_of(value) for name, value in values.items() if value is not None}
        words: list[str] = []
        flag_may_go = False
        for parts in self._words:
            names = _names_in(parts)
            if texts.keys() >= set(names):
                words.append(_joined(parts, texts))
                flag_may_go = not names and _FLAG.fullmatch(words[-1]) is not None
                continue
            first, _ = parts[0]
            if flag_may_go and not first.startswith("-"):
                words.pop()
            flag_may_go = False
        return words


def _text_of(value: Any) -> str:
    """A value as programs read it. Many take a negative number with an exponent for an option, so
    it has none: -0.000012 and not -1.2e-05."""
    if isinstance(value, bool):
        return str(value).lower()
    text = str(as_scalar(value))
    if isinstance(value, float) and value < 0 and "e" in text:
        digits = f"{Decimal(text):f}"
        return digits if "." in digits else f"{digits}.0"
    return text


def _parts_of(word: str) -> _Parts:
    parts: _Parts = []
    try:
        for text, name, form, conversion in string.Formatter().parse(word):
            if name is not None and (form or conversion or not name):
                what = f"{word!r} has a placeholder that is not the name of a parameter"
                raise _mistake(f"{what}; {_EXAMPLE}")
            parts.append((text, name))
    except ValueError as error:
        raise _mistake(f"{word!r}: {str(error).lower()}; {_EXAMPLE}") from None
    return parts or [("", None)]


def _names_in(parts: _Parts) -> list[str]:
    return [name for _, name in parts if name is not None]


def _joined(parts: _Parts, texts: Mapping[str, str]) -> str:
    return "".join(text + ("" if name is None else texts[name]) for text, name in parts)


def _mistake(what: str) -> TaskError:
    return TaskError.at("task.run", what)
