"""The language of --where and --sort: from text to lark's tree; errors point at the place.

A name is a word such as ``learning_rate`` or ``eval/f1``; one with blanks is put in backticks.
Every test is true or false, never unknown: an absent value equals nothing and is neither above nor
below anything, so ``x != 3`` is true where a trial has no x, and ``not (x < 3)`` as well. Nothing
here knows SQL: see `conditions`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedToken

from hpsearch.errors import FilterError

Option = Literal["--where", "--sort"]

GRAMMAR = r"""
where: any
any: all (_OR all)*
all: unary (_AND unary)*
?unary: NOT unary -> opposite
    | _OPEN any _CLOSE
    | test
?test: name SIGN value -> compared
    | name _IS [NOT] _NULL -> absent
    | name [NOT] _IN _OPEN value (_COMMA value)* _CLOSE -> among
sort: key (_COMMA key)*
key: name [ASC | DESC]
name: WORD | QUOTED | INFINITY | ASC | DESC
value: NUMBER | TEXT | TRUTH | INFINITY

NUMBER.3: /[+-]?([0-9]|\.[0-9])[\w.]*((?<=[eE])[+-][0-9]+)?|[+-]inf(inity)?\b/i
TEXT: /'([^']|'')*'|"([^"]|"")*"/
QUOTED: /`[^`]+`/
_OR.2: /or(?![\w.\/@:-])/i
_AND.2: /and(?![\w.\/@:-])/i
NOT.2: /not(?![\w.\/@:-])/i
_IS.2: /is(?![\w.\/@:-])/i
_IN.2: /in(?![\w.\/@:-])/i
_NULL.2: /null(?![\w.\/@:-])/i
TRUTH.2: /(true|false)(?![\w.\/@:-])/i
ASC.2: /asc(?![\w.\/@:-])/i
DESC.2: /desc(?![\w.\/@:-])/i
INFINITY.2: /inf(inity)?(?![\w.\/@:-])/i
WORD: /[^\W\d][\w.\/@:-]*/
SIGN: /<=|>=|<>|!=|==|[=<>]/
_OPEN: "("
_CLOSE: ")"
_COMMA: ","
%ignore /\s+/
"""
_RESERVED = frozenset({"_OR", "_AND", "NOT", "_IS", "_IN", "_NULL", "TRUTH"})


def parsed(text: str, option: Option) -> Tree[Token]:
    """The tree of an expression. Raises FilterError if it does not parse; the message shows the
    expression with a caret at the place."""
    try:
        return _grammar().parse(text, start=option.removeprefix("--"))
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        raise point_at(option, text, at, *_unreadable(text[at])) from None
    except UnexpectedToken as error:
        is_end = error.token.type == "$END"
        at = len(text) if is_end else error.token.start_pos or 0
        raise point_at(option, text, at, *_unexpected(error)) from None


def value_of(token: Token) -> float | int | str | bool:
    """The number, text or truth value of a token. Raises ValueError for a number that cannot be
    read."""
    if token.type == "TEXT":
        quote = token[0]
        return token[1:-1].replace(quote * 2, quote)
    if token.type == "TRUTH":
        return token.lower() == "true"
    is_whole = re.fullmatch(r"[+-]?[0-9]{1,19}", token) is not None
    if is_whole and -(2**63) <= int(token) < 2**63:
        return int(token)
    return float(token)


def point_at(option: str, text: str, at: int, what: str, hint: str | None = None) -> FilterError:
    """The error that says `what` is wrong in `text` and draws a caret under character `at`."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    start = max(0, at - 60)
    end = at + 40
    before = "…" if start else ""
    after = "…" if len(shown) > end else ""
    excerpt = before + shown[start:end] + after
    indent = len(before) + at - start
    caret = " " * indent + "^"
    return FilterError(f"{option}: {what}\n    {excerpt}\n    {caret}", hint)


@cache
def _grammar() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="basic", start=["where", "sort"])


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
}
"""By a terminal that could follow, the words to name it with; the first one counts."""


def _unexpected(error: UnexpectedToken) -> tuple[str, str | None]:
    token = error.token
    wanted = error.accepts or error.expected
    known = [name for name in _EXPECTED if name in wanted]
    expected = _EXPECTED[known[0]] if known else "the end"
    found = "the end" if token.type == "$END" else f"'{token}'"
    what = f"expected {expected}, found {found}"
    if "SIGN" in known:
        return what, "such as: = true, < 0.1, in (1, 2), is null"
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
