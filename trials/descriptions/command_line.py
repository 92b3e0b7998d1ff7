"""A command line with placeholders: what is wrong with it, and the words that it stands for.

The text is split as a shell would split it, and only then are values put in: no value is ever read
by a shell. In a line for a shell, each value is quoted instead.
"""

from __future__ import annotations

import re
import shlex
import string
from collections.abc import Mapping, Set
from typing import Any

from trials.contract import TaskError

BUDGET, FOLDER, RESUME, SEED, PARAMS = GIVEN = ("budget", "folder", "resume", "seed", "params")
"""Placeholders that every trial has a value for, beside those of its parameters."""

_CONTINUED = "\\\n"
_PLACEHOLDER = re.compile(r"(?<!\{)\{([^{}]+)\}")
_EXAMPLE = "write {{ and }} for braces of the command's own"


class CommandLine:
    """A command line with placeholders such as ``{learning_rate}``.

    Args:
        shell: Whether a shell is to read it.

    Raises:
        TaskError: A quote or a brace is not closed, or there is no word.
    """

    def __init__(self, text: str, *, shell: bool) -> None:
        self._text = text
        self._shell = shell
        self._words = (text,) if shell else _split(text)
        self._parts = [_parts_of(word) for word in self._words]

    @property
    def names(self) -> frozenset[str]:
        """The names of its placeholders."""
        return frozenset(name for parts in self._parts for name in _names_in(parts))

    @property
    def program(self) -> str | None:
        """The program that it starts; None if a shell starts it, or a placeholder names it."""
        first = self._parts[0]
        if self._shell or _names_in(first):
            return None
        return _joined(first, {})

    @property
    def plain_words(self) -> list[str]:
        """The words without a placeholder, which may be the names of files."""
        if self._shell:
            return [word for word in self._text.split() if "{" not in word]
        return [_joined(parts, {}) for parts in self._parts if not _names_in(parts)]

    def shares_its_word(self, name: str) -> bool:
        """True if a placeholder is in one word with another one, so that it cannot be left out
        alone."""
        words = self._text.split() if self._shell else self._words
        in_words = [_PLACEHOLDER.findall(word) for word in words]
        return any(name in names and len(names) > 1 for names in in_words)

    def filled(self, values: Mapping[str, Any]) -> list[str]:
        """The words of a trial's command.

        A value of None leaves out the word that its placeholder is in, and the flag before it.

        Args:
            values: A value for each placeholder, by name.
        """
        missing = {name for name in self.names if values.get(name) is None}
        texts = {name: text_of(value) for name, value in values.items() if value is not None}
        if not self._shell:
            return self._filled_words(missing, texts)
        line = _without(self._text, missing)
        quoted = {name: shlex.quote(text) for name, text in texts.items()}
        return ["/bin/sh", "-c", _joined(_parts_of(line), quoted)]

    def _filled_words(self, missing: Set[str], texts: Mapping[str, str]) -> list[str]:
        words: list[str] = []
        flag_may_go = False
        for word, parts in zip(self._words, self._parts, strict=True):
            names = _names_in(parts)
            if missing & set(names):
                if flag_may_go and not word.startswith("-"):
                    words.pop()
                flag_may_go = False
                continue
            words.append(_joined(parts, texts))
            flag_may_go = not names and _is_flag(word)
        return words


def text_of(value: Any) -> str:
    """A value as a command line has it: true and false in lower case, numbers as Python writes
    them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_Parts = list[tuple[str, str | None]]
"""Pieces of a word: a text, and the name of the placeholder after it."""


def _split(text: str) -> tuple[str, ...]:
    try:
        words = shlex.split(text.replace(_CONTINUED, " "))
    except ValueError as error:
        raise _mistake(f"cannot be split into words: {str(error).lower()}") from None
    if not words:
        raise _mistake("is empty; write the command that trains one configuration")
    return tuple(words)


def _parts_of(word: str) -> _Parts:
    try:
        pieces = list(string.Formatter().parse(word))
    except ValueError as error:
        raise _mistake(f"{word!r}: {str(error).lower()}; {_EXAMPLE}") from None
    parts: _Parts = []
    for text, name, form, conversion in pieces:
        if name is not None and (form or conversion or not name):
            what = f"{word!r} has a placeholder that is not the name of a parameter"
            raise _mistake(f"{what}; {_EXAMPLE}")
        parts.append((text, name))
    return parts


def _names_in(parts: _Parts) -> list[str]:
    return [name for _, name in parts if name is not None]


def _joined(parts: _Parts, texts: Mapping[str, str]) -> str:
    return "".join(text + ("" if name is None else texts[name]) for text, name in parts)


def _is_flag(word: str) -> bool:
    return re.fullmatch(r"--?[A-Za-z][^=]*", word) is not None


def _without(line: str, missing: Set[str]) -> str:
    """A line for a shell without the words of some placeholders, and the flags before them."""
    for name in missing:
        placeholder = r"\S*" + re.escape(f"{{{name}}}") + r"\S*"
        line = re.sub(r"(?<!\S)-" + placeholder, "", line)
        line = re.sub(r"(?<!\S)(?:--?[A-Za-z][^\s=]*[ \t]+)?" + placeholder, "", line)
    return line


def _mistake(what: str) -> TaskError:
    return TaskError.at("task.run", what)
