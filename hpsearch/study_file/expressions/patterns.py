"""Patterns of `like`: the same in every database."""

import re
import unicodedata


class Pattern:
    """A text in which ``%`` stands for any characters and ``_`` for one; everything else, also a
    backslash, stands for itself. Letters are alike in any case, as Unicode folds them: ``STRASSE``
    is like ``straße``. A letter with its accents is one character, however they are encoded."""

    def __init__(self, text: str) -> None:
        first, *others = [re.escape(part).replace("_", ".") for part in _folded(text).split("%")]
        # The first place where a part fits is as good as any, so none is tried twice.
        between = "".join(f"(?>.*?{part})" for part in others[:-1])
        last = f".*{others[-1]}" if others else ""
        self._expression = re.compile(first + between + last, re.DOTALL)

    def fits(self, text: str) -> bool:
        """True if a whole text is like the pattern."""
        return self._expression.fullmatch(_folded(text)) is not None


def _folded(text: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
