"""Patterns of `like`: the same in every database."""

import re
import unicodedata

# Halves of surrogate pairs: no text that is stored has them.
_FOLDED, _WRITTEN = "\ud800", "\ud801"


class Pattern:
    """A text in which ``%`` stands for any characters and ``_`` for one; everything else, also a
    backslash, stands for itself.

    Letters are alike in any case, as Unicode folds them: ``STRASSE`` is like ``straße``. A letter
    with its accents is one character, however they are encoded."""

    def __init__(self, text: str) -> None:
        parts = [_expression(part) for part in text.split("%")]
        first, *others = parts
        if not others:
            self._expression = re.compile(first)
            return
        *between, last = others
        # The first place where a part fits is as good as any, so none is tried twice.
        found = "".join(f"(?>[\\s\\S]*?{part})" for part in between)
        self._expression = re.compile(f"{first}{found}[\\s\\S]*{last}")

    def fits(self, text: str) -> bool:
        """True if a whole text is like the pattern."""
        marked = "".join(each + _WRITTEN for each in map(_folded, _characters(text)))
        return self._expression.fullmatch(marked) is not None


def _expression(part: str) -> str:
    any_character = f"[^{_WRITTEN}]+{_WRITTEN}"
    found = ""
    for each in _characters(part):
        if each == "_":
            found += any_character
        else:
            folded = re.escape(_folded(each))
            found += folded.replace(_FOLDED, f"{_FOLDED}{_WRITTEN}?")
    return found


def _folded(character: str) -> str:
    """A character in its folded form, of one character or more, each with a mark behind it."""
    if character.isascii():
        return character.lower() + _FOLDED
    folded = unicodedata.normalize("NFD", character).casefold()
    return "".join(each + _FOLDED for each in _characters(folded))


def _characters(text: str) -> list[str]:
    """The characters of a text as people see them: letters with the accents that follow them."""
    if text.isascii():
        return list(text)
    found: list[str] = []
    for each in unicodedata.normalize("NFC", text):
        if found and unicodedata.combining(each):
            found[-1] += each
        else:
            found.append(each)
    return found
