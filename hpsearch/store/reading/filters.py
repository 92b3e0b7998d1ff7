"""The language of --where and --sort, from text to a small tree; errors point at the place.

A name is a word such as ``learning_rate`` or ``eval/f1``; one with blanks is put in backticks.
Every test is true or false, never unknown: an absent value equals nothing and is neither above nor
below anything, so ``x != 3`` is true where a trial has no x, and ``not (x < 3)`` as well. Nothing
here knows SQL: see `conditions`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from typing import Literal as OneOf

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedToken, VisitError

from hpsearch.errors import FilterError

LONGEST_TEXT = 4000
"""The most characters in an expression: more than any person writes, and well below what databases
give up at."""
DEEPEST_NESTING = 50


class Order(enum.StrEnum):
    """How a number or text may compare with another."""

    BELOW = "<"
    AT_MOST = "<="
    ABOVE = ">"
    AT_LEAST = ">="


@dataclass(frozen=True)
class Name:
    """A column, parameter or metric as it was written, at character `at` of the expression."""

    text: str
    at: int


@dataclass(frozen=True)
class Value:
    """A number, text or truth value as it was written, at character `at` of the expression."""

    value: float | int | str | bool
    at: int


@dataclass(frozen=True)
class Among:
    """The name's value is one of `values` (``=`` and ``in``)."""

    name: Name
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Ordered:
    """The name's value compares with `value` as `order` says."""

    name: Name
    order: Order
    value: Value


@dataclass(frozen=True)
class Absent:
    """The name has no value (``is null``); not-a-number is no value either."""

    name: Name


@dataclass(frozen=True)
class Not:
    """The opposite."""

    of: Condition


@dataclass(frozen=True)
class Joined:
    """Every part holds (and), or some part does (or)."""

    by: OneOf["and", "or"]
    parts: tuple[Condition, ...]


Condition = Among | Ordered | Absent | Not | Joined


@dataclass(frozen=True)
class SortKey:
    """One key of an order, the most important first."""

    name: Name
    descending: bool


def parse_where(text: str) -> Condition:
    """Read a --where expression.

    Raises:
        FilterError: It does not parse; the message shows the expression with a caret at the place.
    """
    condition: Condition = _parsed(text, "--where", "where")
    return condition


def parse_sort(text: str) -> list[SortKey]:
    """Read a --sort expression.

    Raises:
        FilterError: It does not parse; the message shows the expression with a caret at the place.
    """
    keys: list[SortKey] = _parsed(text, "--sort", "sort")
    return keys


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


# ----------------------------------------------------------------------------------------- grammar

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

Wrong = Callable[..., FilterError]
"""Makes the error at a character, from what is wrong there and a hint."""


@cache
def _grammar() -> Lark:
    return Lark(GRAMMAR, parser="lalr", lexer="basic", start=["where", "sort"])


def _parsed(text: str, option: str, start: str) -> Any:
    if len(text) > LONGEST_TEXT:
        what = f"the expression has {len(text)} characters; {LONGEST_TEXT} is the most"
        raise FilterError(f"{option}: {what}")
    wrong = partial(point_at, option, text)
    try:
        _refuse(_grammar().lex(text), wrong)
        return _Tree(wrong).transform(_grammar().parse(text, start=start))
    except UnexpectedCharacters as error:
        at = error.pos_in_stream or 0
        raise wrong(at, *_unreadable(text[at])) from None
    except UnexpectedToken as error:
        raise _unexpected(error, len(text), wrong) from None
    except VisitError as error:
        raise error.orig_exc from None


def _refuse(tokens: Iterable[Token], wrong: Wrong) -> None:
    depths, nots, before = [0], 0, ""
    for token in tokens:
        if not token.isprintable():
            raise wrong(token.start_pos, "a character here cannot be printed or stored")
        if token.type == "NOT":
            nots += 1
        elif token.type == "_OPEN" and before != "_IN":
            depths.append(depths[-1] + nots + 1)
            nots = 0
        elif token.type == "_CLOSE" and len(depths) > 1:
            depths.pop()
        else:
            nots = 0
        if depths[-1] + nots >= DEEPEST_NESTING:
            raise wrong(token.start_pos, f"nested more than {DEEPEST_NESTING} deep")
        before = token.type


@v_args(inline=True)
class _Tree(Transformer[Token, Any]):
    """Makes the tree of a parse."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__()
        self._wrong = wrong

    def where(self, condition: Condition) -> Condition:
        return condition

    def any(self, *parts: Condition) -> Condition:
        return parts[0] if len(parts) == 1 else Joined("or", parts)

    def all(self, *parts: Condition) -> Condition:
        return parts[0] if len(parts) == 1 else Joined("and", parts)

    def opposite(self, _not: Token, of: Condition) -> Condition:
        return Not(of)

    def compared(self, name: Name, sign: Token, value: Value) -> Condition:
        if sign in ("=", "=="):
            return Among(name, (value,))
        if sign in ("!=", "<>"):
            return Not(Among(name, (value,)))
        return Ordered(name, Order(sign), value)

    def absent(self, name: Name, negated: Token | None) -> Condition:
        return Absent(name) if negated is None else Not(Absent(name))

    def among(self, name: Name, negated: Token | None, *values: Value) -> Condition:
        among = Among(name, values)
        return among if negated is None else Not(among)

    def sort(self, *keys: SortKey) -> list[SortKey]:
        return list(keys)

    def key(self, name: Name, order: Token | None) -> SortKey:
        return SortKey(name, descending=order is not None and order.type == "DESC")

    def name(self, token: Token) -> Name:
        return Name(token.strip("`"), token.start_pos or 0)

    def value(self, token: Token) -> Value:
        return Value(self._read(token), token.start_pos or 0)

    def _read(self, token: Token) -> float | int | str | bool:
        if token.type == "TEXT":
            quote = token[0]
            return token[1:-1].replace(quote * 2, quote)
        if token.type == "TRUTH":
            return token.lower() == "true"
        is_whole = re.fullmatch(r"[+-]?[0-9]{1,19}", token) is not None
        if is_whole and -(2**63) <= int(token) < 2**63:
            return int(token)
        try:
            return float(token)
        except ValueError:
            raise self._wrong(token.start_pos, f"'{token}' is not a number") from None


# ------------------------------------------------------------------------------------------ errors


def _unexpected(error: UnexpectedToken, end: int, wrong: Wrong) -> FilterError:
    token = error.token
    wanted = error.accepts or error.expected
    at = token.start_pos
    found = f"'{token}'"
    if token.type == "$END":
        at = end
        found = "the end"
    elif token.type == "TEXT":
        found = token
    if "SIGN" in wanted:
        return wrong(at, *_no_comparison(error, found))
    if "NUMBER" in wanted:
        return wrong(at, f"expected a value, found {found}", _hint_for_value(token))
    if "WORD" in wanted:
        return wrong(at, f"expected a name, found {found}", _hint_for_name(token))
    for name, expected in _EXPECTED.items():
        if name in wanted:
            return wrong(at, f"expected {expected}, found {found}")
    return wrong(at, f"expected the end, found {found}")


_EXPECTED = {
    "DESC": "',', 'asc', 'desc' or the end",
    "_CLOSE": "')'",
    "_OR": "'and', 'or' or the end",
    "_COMMA": "',', 'asc', 'desc' or the end",
    "_OPEN": "'('",
    "_NULL": "'null'",
    "_IN": "'in'",
}
"""By a terminal that could follow, the words to name it with."""


def _no_comparison(error: UnexpectedToken, found: str) -> tuple[str, str]:
    name = error.interactive_parser.parser_state.value_stack[-1]
    token = name if isinstance(name, Token) else name.children[0]
    written = token.strip("`")
    examples = ("= true", "< 0.1", "in (1, 2)", "is null")
    such_as = ", ".join(f"{written} {rest}" for rest in examples)
    return f"expected a comparison after '{written}', found {found}", f"such as: {such_as}"


def _hint_for_name(token: Token) -> str | None:
    if token.type in ("NUMBER", "TEXT"):
        return "write the name on the left and the value on the right"
    if token.type in _RESERVED:
        return f"put a parameter of that name in backticks: `{token}`"
    return None


def _hint_for_value(token: Token) -> str | None:
    if token.lower() in ("null", "nan", "none"):
        return "write: is null, or: is not null"
    if token.type == "WORD":
        return f"put text in quotes: '{token}'"
    return None


def _unreadable(character: str) -> tuple[str, str | None]:
    if character in "'\"`":
        return f"the {character} here is never closed", None
    if character in "&|":
        return f"'{character}' means nothing here", "write: and, or"
    return f"{character!r} means nothing here", None
