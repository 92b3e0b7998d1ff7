"""Expressions (`grammar.lark`): from text to lark's tree; errors point at the place.

A name is a word such as ``learning_rate`` or ``eval/f1``; one with blanks is put in backticks.
Every test is true or false, never unknown: an absent value equals nothing and is neither above nor
below anything, so ``x != 3`` is true where a trial has no x, and ``not (x < 3)`` as well.

A `condition`, of a study file, compares sums and products on both sides. A `where` compares one
name with values; with `sort` it is the language of the trial database. Nothing here knows SQL.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any, Literal

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from trials.descriptions.cells import number_in

Start = Literal["where", "sort", "condition"]

_RESERVED = frozenset({"_OR", "_AND", "NOT", "_IS", "_IN", "_NULL", "TRUTH"})


class ExpressionError(ValueError):
    """An expression that cannot be read, or that makes no sense: `what` is wrong at character `at`
    of `text`, and perhaps a `hint` at what to do."""

    def __init__(self, what: str, text: str, at: int, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.excerpt = _excerpt(text, at)
        """Two lines: the expression, and a caret under the place."""


def parsed(text: str, start: Start) -> Tree[Token]:
    """The tree of an expression. Raises ExpressionError if it does not parse."""
    try:
        return _grammar().parse(text, start=start)
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        what, hint = _unreadable(text[at])
    except UnexpectedToken as error:
        is_end = error.token.type == "$END"
        at = len(text) if is_end else error.token.start_pos or 0
        what, hint = _unexpected(error)
    raise ExpressionError(what, text, at, hint)


def value_of(token: Token) -> float | int | str | bool:
    """The number, text or truth value of a token. Raises ValueError for a number that cannot be
    read."""
    if token.type == "TEXT":
        quote = token[0]
        return token[1:-1].replace(quote * 2, quote)
    if token.type == "TRUTH":
        return token.lower() == "true"
    number = number_in(token)
    if number is None:
        raise ValueError(f"{token} is not a number")
    return number if -(2**63) <= number < 2**63 else float(number)


def _excerpt(text: str, at: int) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in text)
    start = max(0, at - 60)
    end = at + 40
    before = "…" if start else ""
    after = "…" if len(shown) > end else ""
    indent = len(before) + at - start
    return f"    {before}{shown[start:end]}{after}\n    {' ' * indent}^"


class _Signs:
    """Splits a number with a sign that follows an operand, as in ``a -1``, into the two."""

    always_accept = ()

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        before = ""
        for token in stream:
            if token.type == "NUMBER" and token[0] in "+-" and before in _ENDS_OF_OPERANDS:
                yield token.update("ADDS", token[0])
                token = token.update(value=token[1:])
                token.start_pos = (token.start_pos or 0) + 1
            yield token
            before = token.type


@cache
def _grammar() -> Lark:
    starts = ["where", "sort", "condition"]
    options: dict[str, Any] = {"parser": "lalr", "lexer": "basic", "postlex": _Signs()}
    return Lark.open("grammar.lark", rel_to=__file__, start=starts, **options)


_ENDS_OF_OPERANDS = frozenset({"WORD", "QUOTED", "NUMBER", "INFINITY", "ASC", "DESC", "_CLOSE"})
_EXPECTED = {
    "SIGN": "a comparison",
    "NUMBER": "a value",
    "WORD": "a name",
    "DESC": "',', 'asc', 'desc' or the end",
    "_CLOSE": "')'",
    "_OR": "'and', 'or' or the end",
    "_COMMA": "',', 'asc', 'desc' or the end",
    "_OPEN": "'('",
    "_NULL": "'null'",
    "_IN": "'in'",
    "_AND": "'and'",
    "TEXT": "a text in quotes",
}
"""By a terminal that could follow, the words to name it with; the first one counts."""


def _unexpected(error: UnexpectedToken) -> tuple[str, str | None]:
    token = error.token
    wanted = error.accepts or error.expected
    known = [name for name in _EXPECTED if name in wanted]
    expected = _EXPECTED[known[0]] if known else "the end"
    found = "the end" if token.type == "$END" else f"'{token}'"
    what = f"expected {expected}, found {found}"
    if token.type in ("ADDS", "SCALES") and "ADDS" not in wanted:
        return what, "only conditions in a study file calculate"
    if "SIGN" in known:
        return what, "such as: = true, < 0.1, between 1 and 2, in (1, 2), like 'ad%', is null"
    if "NUMBER" in known and token.lower() in ("null", "nan", "none"):
        return what, "write: is null, or: is not null"
    if "NUMBER" in known and token.type == "WORD":
        return what, f"put text in quotes: '{token}'"
    if "WORD" in known and token.type in _RESERVED:
        return what, f"put a parameter of that name in backticks: `{token}`"
    return what, None


def _unreadable(character: str) -> tuple[str, str | None]:
    if character in "'\"`":
        return f"the {character} here is never closed", None
    if character in "&|":
        return f"'{character}' means nothing here", "write: and, or"
    return f"{character!r} means nothing here", None
