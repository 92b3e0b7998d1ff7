"""The language of --where and --sort: from text to a small tree, with errors that point at the place.

    where   = and ("or" and)*
    and     = unary ("and" unary)*
    unary   = "not" unary | "(" where ")" | test
    test    = name ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
            | name ["not"] "in" "(" value ("," value)* ")"
            | name "is" ["not"] "null"
    value   = number | 'text' | "text" | true | false | inf | -inf
    sort    = name ["asc" | "desc"] ("," name ["asc" | "desc"])*

A name is a word such as ``learning_rate`` or ``eval/f1``; one with blanks stands in backticks. Every test is true or
false, never unknown: an absent value equals nothing and is neither above nor below anything, so ``x != 3`` is true
where a trial has no x, and ``not (x < 3)`` as well. Nothing here knows SQL: see `conditions`.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import NoReturn

from hpsearch.errors import FilterError

LONGEST_TEXT = 4000
"""Characters in an expression: what any person writes, and well below the depth at which databases give up."""
DEEPEST_NESTING = 50


class Order(enum.StrEnum):
    """How a number or text may stand to another."""

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
    """The name's value stands in `order` to `value`."""

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
    return _Parser(text, "--where").where()


def parse_sort(text: str) -> list[SortKey]:
    """Read a --sort expression.

    Raises:
        FilterError: It does not parse; the message shows the expression with a caret at the place.
    """
    return _Parser(text, "--sort").sort()


def point_at(option: str, text: str, at: int, what: str, hint: str | None = None) -> FilterError:
    """The error that says `what` is wrong in `text` and draws a caret under character `at`."""
    shown = "".join(c if c.isprintable() else "?" for c in text)
    start = max(0, at - 60)
    excerpt = ("…" if start else "") + shown[start : at + 40] + ("…" if len(shown) > at + 40 else "")
    caret = " " * (at - start + bool(start)) + "^"
    return FilterError(f"{option}: {what}\n    {excerpt}\n    {caret}", hint)


# ------------------------------------------------------------------------------------------------------ tokens

_TOKEN = re.compile(
    r"""
    (?P<number> [+-]?(?:[0-9]|\.[0-9])[\w.]* (?:(?<=[eE])[+-][0-9]+)? | [+-]inf(?:inity)?\b )
  | (?P<text>   '(?:[^']|'')*' | "(?:[^"]|"")*" )
  | (?P<quoted> `[^`]+` )
  | (?P<word>   [^\W\d][\w./@:-]* )
  | (?P<mark>   <=|>=|<>|!=|==|[=<>(),] )
    """,
    re.VERBOSE | re.IGNORECASE,
)
_KEYWORDS = frozenset({"and", "or", "not", "in", "is", "null", "true", "false", "asc", "desc"})
_RESERVED = _KEYWORDS - {"asc", "desc"}
_EQUAL = ("=", "==")
_UNEQUAL = ("!=", "<>")
_ORDERS = frozenset(o.value for o in Order)


@dataclass(frozen=True)
class _Token:
    kind: OneOf["number", "text", "quoted", "word", "keyword", "mark", "end"]
    text: str
    at: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else self.text if self.kind == "text" else f"'{self.text}'"


class _Parser:
    """A recursive descent over the tokens; `self.next` is the token to look at."""

    def __init__(self, text: str, option: str) -> None:
        self.text = text
        self.option = option
        if len(text) > LONGEST_TEXT:
            raise FilterError(f"{option}: the expression has {len(text)} characters; {LONGEST_TEXT} is the most")
        self.tokens = self._tokens()
        self.position = 0
        self.depth = 0

    # -------------------------------------------------------------------------------------------------- rules

    def where(self) -> Condition:
        condition = self._any()
        self._end("'and', 'or' or the end")
        return condition

    def sort(self) -> list[SortKey]:
        keys = [self._sort_key()]
        while self._take(","):
            keys.append(self._sort_key())
        self._end("',', 'asc', 'desc' or the end")
        return keys

    def _sort_key(self) -> SortKey:
        name = self._name()
        descending = self._take("desc")
        if not descending:
            self._take("asc")
        return SortKey(name, descending)

    def _any(self) -> Condition:
        parts = [self._all()]
        while self._take("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else Joined("or", tuple(parts))

    def _all(self) -> Condition:
        parts = [self._unary()]
        while self._take("and"):
            parts.append(self._unary())
        return parts[0] if len(parts) == 1 else Joined("and", tuple(parts))

    def _unary(self) -> Condition:
        self.depth += 1
        if self.depth > DEEPEST_NESTING:
            self._fail(f"nested more than {DEEPEST_NESTING} deep")
        if self._take("not"):
            condition: Condition = Not(self._unary())
        elif self._take("("):
            condition = self._any()
            self._expect(")")
        else:
            condition = self._test()
        self.depth -= 1
        return condition

    def _test(self) -> Condition:
        name = self._name()
        mark = self.next.text if self.next.kind == "mark" else ""
        if mark in _EQUAL or mark in _UNEQUAL:
            self.position += 1
            same = Among(name, (self._value(),))
            return same if mark in _EQUAL else Not(same)
        if mark in _ORDERS:
            self.position += 1
            return Ordered(name, Order(mark), self._value())
        if self._take("is"):
            negated = self._take("not")
            self._expect("null")
            return Not(Absent(name)) if negated else Absent(name)
        negated = self._take("not")
        if self._take("in"):
            among = Among(name, self._values())
            return Not(among) if negated else among
        return self._fail(
            f"expected a comparison after '{name.text}', found {self.next}",
            f"such as: {name.text} = true, {name.text} < 0.1, {name.text} in (1, 2), {name.text} is null",
        )

    def _values(self) -> tuple[Value, ...]:
        self._expect("(")
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        self._expect(")")
        return tuple(values)

    def _name(self) -> Name:
        token = self.next
        if token.kind not in ("word", "quoted") and token.text.lower() not in ("asc", "desc"):
            hint = None
            if token.kind in ("number", "text"):
                hint = "the name stands on the left, the value on the right"
            elif token.text.lower() in _RESERVED:
                hint = f"a parameter of that name stands in backticks: `{token.text}`"
            self._fail(f"expected a name, found {token}", hint)
        self.position += 1
        return Name(token.text.strip("`"), token.at)

    def _value(self) -> Value:
        token = self.next
        self.position += 1
        if token.kind == "number":
            return Value(self._number(token), token.at)
        if token.kind == "text":
            quote = token.text[0]
            return Value(token.text[1:-1].replace(quote * 2, quote), token.at)
        word = token.text.lower()
        if token.kind == "keyword" and word in ("true", "false"):
            return Value(word == "true", token.at)
        if token.kind == "word" and word in ("inf", "infinity"):
            return Value(float("inf"), token.at)
        self.position -= 1
        hint = None
        if word in ("null", "nan", "none"):
            hint = "write: is null, or: is not null"
        elif token.kind == "word":
            hint = f"text stands in quotes: '{token.text}'"
        return self._fail(f"expected a value, found {token}", hint)

    def _number(self, token: _Token) -> float | int:
        """The number; whole ones that a database column can hold stay whole."""
        if re.fullmatch(r"[+-]?[0-9]{1,19}", token.text) and -(2**63) <= int(token.text) < 2**63:
            return int(token.text)
        try:
            return float(token.text)
        except ValueError:
            raise point_at(self.option, self.text, token.at, f"{token} is no number") from None

    # ------------------------------------------------------------------------------------------------- moving

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def _take(self, word: str) -> bool:
        if self.next.kind not in ("keyword", "mark") or self.next.text.lower() != word:
            return False
        self.position += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._take(word):
            self._fail(f"expected '{word}', found {self.next}")

    def _end(self, expected: str) -> None:
        if self.next.kind != "end":
            self._fail(f"expected {expected}, found {self.next}")

    def _fail(self, what: str, hint: str | None = None) -> NoReturn:
        raise point_at(self.option, self.text, self.next.at, what, hint)

    def _tokens(self) -> list[_Token]:
        tokens = []
        at = 0
        while at < len(self.text):
            if self.text[at].isspace():
                at += 1
                continue
            match = _TOKEN.match(self.text, at)
            if match is None:
                raise point_at(self.option, self.text, at, *self._unreadable(self.text[at]))
            text, kind = match.group(), str(match.lastgroup)
            if not text.isprintable():
                raise point_at(self.option, self.text, at, "a character here cannot be printed or stored")
            if kind == "word" and text.lower() in _KEYWORDS:
                kind = "keyword"
            tokens.append(_Token(kind, text, at))  # type: ignore[arg-type]  # the groups' names are the kinds
            at = match.end()
        return [*tokens, _Token("end", "", len(self.text))]

    @staticmethod
    def _unreadable(character: str) -> tuple[str, str | None]:
        if character in "'\"`":
            return f"the {character} here is never closed", None
        if character in "&|":
            return f"'{character}' means nothing here", "write: and, or"
        return f"{character!r} means nothing here", None
