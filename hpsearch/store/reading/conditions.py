"""From the tree of a --where or --sort expression to SQL, for SQLite and PostgreSQL. Whatever the
user typed reaches the database as a bound parameter."""

import math
import operator
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from lark import Token, Transformer, Tree, v_args
from lark.exceptions import VisitError

from hpsearch.errors import FilterError
from hpsearch.store.cells import Cell
from hpsearch.store.codec import clean, decode
from hpsearch.store.reading.names import Names, Operand
from hpsearch.store.reading.patterns import Pattern
from hpsearch.store.schema import Condition, Sql
from hpsearch.study_file.expressions.grammar import ExpressionError, parsed, value_of
from hpsearch.study_file.expressions.meaning import equals_of
from hpsearch.study_file.types import same
from trials.descriptions.cells import nested_in
from trials.settings import nearest

Option = Literal["--where", "--sort"]
Bound: TypeAlias = sa.BindParameter[Any]

_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_EQUAL = ("=", "==")
MOST_TERMS = 2_000
"""Comparisons in one expression: PostgreSQL takes 65,535 bound parameters."""
MOST_NESTED = 100
"""Levels of an expression, of which a pair of parentheses has up to three."""
MOST_IN_A_ROW = 30
"""Conditions that are joined at one level."""
MOST_BOUND = 30
"""Values in a list that the database compares; with more, this program does."""
_DATES = "such as: '2026-01-31', '2026-01-31 18:00' or '2026-01-31T18:00Z'"


def compiled(text: str, option: Option, names: Names) -> Any:
    """A --where expression as a condition, a --sort expression as columns to order by: numbers
    before texts, absent values last. Raises FilterError if it does not parse, names something
    unknown, or compares a column with what it never holds."""
    start: Literal["where", "sort"] = "where" if option == "--where" else "sort"
    try:
        tree = parsed(text, start)
        _refuse_large(tree, option)
        return _Compiler(text, names).transform(tree)
    except ExpressionError as error:
        raise _refusal(option, error) from None
    except VisitError as error:
        if isinstance(error.orig_exc, ExpressionError):
            raise _refusal(option, error.orig_exc) from None
        raise error.orig_exc from None
    except RecursionError:
        raise FilterError(f"{option}: the expression is nested too deep") from None


def _refuse_large(tree: Tree[Token], option: Option) -> None:
    level, terms, nested = [tree], 0, 0
    while level:
        below = [child for each in level for child in each.children if isinstance(child, Tree)]
        terms += sum(each.data == "name" for each in below)
        nested += 1
        level = below
    if terms > MOST_TERMS:
        what = f"{option}: the expression has {terms} terms, and at most {MOST_TERMS} are read"
        raise FilterError(what, "list values of one name: NAME in (1, 2, 3)")
    if nested > MOST_NESTED:
        raise FilterError(f"{option}: the expression is nested too deep", "remove parentheses")


def _refusal(option: Option, error: ExpressionError) -> FilterError:
    return FilterError(f"{option}: {error.what}\n{error.excerpt}", error.hint)


@dataclass(frozen=True)
class _Named:
    name: str
    operand: Operand


@v_args(inline=True)
class _Compiler(Transformer[Token, Any]):
    """Makes SQL of the tree of one expression; keeps its text for errors. The methods are named as
    the rules of the grammar."""

    def __init__(self, text: str, names: Names) -> None:
        super().__init__()
        self._text = text
        self._names = names

    def where(self, condition: Condition) -> Condition:
        return condition

    def any(self, *parts: Condition) -> Condition:
        return _joined(sa.or_, parts)

    def all(self, *parts: Condition) -> Condition:
        return _joined(sa.and_, parts)

    def opposite(self, _not: Token, of: Condition) -> Condition:
        return sa.not_(of)

    def compared(self, named: _Named, sign: Token, value: Token) -> Condition:
        if sign in _ORDERS:
            return self._ordered(named, sign, value)
        return self.among(named, None if sign in _EQUAL else sign, value)

    def absent(self, named: _Named, negated: Token | None) -> Condition:
        present = named.operand.present
        return sa.not_(present) if negated is None else present

    def among(self, named: _Named, negated: Token | None, *values: Token) -> Condition:
        exact: defaultdict[Sql, list[Bound]] = defaultdict(list)
        operand = named.operand
        near: defaultdict[Sql, list[tuple[Bound, Bound]]] = defaultdict(list)
        equal: list[Condition] = []
        for value in values:
            side, least, most = self._sides(named, value)
            nested = nested_in(least.value)
            if nested is not None and operand.nested is not None:
                same_as = partial(_is_written, nested)
                equal.append(self._names.where(operand.nested, same_as))
            if least is most:
                exact[side].append(least)
            else:
                near[side].append((least, most))
        equal += [self._one_of(side, some) for side, some in exact.items()]
        equal += [self._within_one(side, some) for side, some in near.items()]
        found = sa.func.coalesce(_joined(sa.or_, equal), sa.false())
        return found if negated is None else sa.not_(found)

    def between(
        self, named: _Named, negated: Token | None, _between: Token, low: Token, high: Token
    ) -> Condition:
        found = sa.and_(self._ordered(named, ">=", low), self._ordered(named, "<=", high))
        return found if negated is None else sa.not_(found)

    def like(self, named: _Named, negated: Token | None, _like: Token, pattern: Token) -> Condition:
        text = named.operand.text
        if text is None:
            raise self._wrong(pattern, f"'{named.name}' is a number, which is like no text")
        found = self._names.where(text, Pattern(clean(str(value_of(pattern)))).fits)
        return found if negated is None else sa.not_(found)

    def _ordered(self, named: _Named, sign: str, value: Token) -> Condition:
        if value.type == "TRUTH":
            raise self._wrong(value, "true and false have no order", "write: = or !=")
        side, least, most = self._sides(named, value)
        bound = least if sign in ("<", ">=") else most
        return sa.func.coalesce(_ORDERS[sign](side, bound), sa.false())

    def sort(self, *keys: list[Sql]) -> list[Sql]:
        return [column for key in keys for column in key]

    def key(self, named: _Named, order: Token | None) -> list[Sql]:
        operand = named.operand
        is_descending = order is not None and order.type == "DESC"
        columns: list[Sql] = []
        for column in (operand.number, operand.text, operand.nested, operand.truth):
            if column is not None:
                ordered = column.desc() if is_descending else column.asc()
                columns.append(ordered.nulls_last())
        return columns

    def name(self, token: Token) -> _Named:
        written = token.strip("`")
        operand = self._names.operand(written)
        if operand is None:
            what = f"no column, parameter or metric is named '{written}'"
            raise self._wrong(token, what, nearest(written, self._names.known()))
        return _Named(written, operand)

    def value(self, token: Token) -> Token:
        return token

    def _sides(self, named: _Named, value: Token) -> tuple[Sql, Bound, Bound]:
        """The operand, of the value's kind, and the least and the most that count as equal to the
        value: the same, but for numbers."""
        operand = named.operand
        given = self._read(value)
        if isinstance(given, bool):
            if operand.truth is not None:
                return _exactly(operand.truth, sa.literal(int(given), sa.Integer))
        elif isinstance(given, str):
            if operand.is_time and operand.number is not None:
                return _exactly(operand.number, sa.literal(self._moment(given, value), sa.Double))
            if operand.text is not None:
                self._check_choice(named, given, value)
                return _exactly(operand.text, sa.literal(clean(given), sa.Text))
        elif operand.number is not None:
            return _number(operand.number, given, is_time=operand.is_time)
        if operand.text is None:
            raise self._wrong(value, f"'{named.name}' is a number, never {given!r}")
        hint = f"put text in quotes: {named.name} = '…'"
        raise self._wrong(value, f"'{named.name}' is text, never {given!r}", hint)

    def _one_of(self, side: Sql, bounds: Sequence[Bound]) -> Condition:
        if len(bounds) <= MOST_BOUND:
            return side.in_(bounds)
        values = {bound.value for bound in bounds}
        return self._names.where(side, values.__contains__)

    def _within_one(self, side: Sql, ranges: Sequence[tuple[Bound, Bound]]) -> Condition:
        if len(ranges) <= MOST_BOUND:
            return _joined(sa.or_, [side.between(*ends) for ends in ranges])
        ends: list[Any] = sorted((least.value, most.value) for least, most in ranges)

        def is_within(number: float) -> bool:
            before = bisect_right(ends, (number, math.inf))
            return before > 0 and bool(number <= ends[before - 1][1])

        return self._names.where(side, is_within)

    def _read(self, value: Token) -> float | int | str | bool:
        try:
            return value_of(value)
        except ValueError:
            raise self._wrong(value, f"'{value}' is not a number") from None

    def _check_choice(self, named: _Named, given: str, value: Token) -> None:
        choices = named.operand.choices
        if choices is not None and given not in choices:
            what = f"'{named.name}' is never {given!r}"
            raise self._wrong(value, what, nearest(given, choices))

    def _moment(self, given: str, value: Token) -> float:
        try:
            return datetime.fromisoformat(given).timestamp()
        except (ValueError, OverflowError, OSError):
            raise self._wrong(value, f"{given!r} is not a date", _DATES) from None

    def _wrong(self, token: Token, what: str, hint: str | None = None) -> ExpressionError:
        return ExpressionError(what, self._text, token.start_pos or 0, hint)


def _joined(by: Callable[..., Condition], parts: Sequence[Condition]) -> Condition:
    """Conditions that are true or false, joined: SQLite refuses too many in a row."""
    while len(parts) > MOST_IN_A_ROW:
        rows = [parts[at : at + MOST_IN_A_ROW] for at in range(0, len(parts), MOST_IN_A_ROW)]
        parts = [sa.func.coalesce(by(*row), sa.false()) for row in rows]
    return by(*parts)


def _is_written(nested: Any, text: str) -> bool:
    return same(decode(text), nested)


def _exactly(column: Sql, bound: Bound) -> tuple[Sql, Bound, Bound]:
    return column, bound, bound


def _number(column: Sql, given: float, *, is_time: bool) -> tuple[Sql, Bound, Bound]:
    """Counts and times are compared exactly, others as expressions of a study file do."""
    is_whole = isinstance(column.type, Cell) and column.type.of is int
    if isinstance(given, int) and is_whole:
        return _exactly(column, sa.literal(given, sa.BigInteger))
    if is_time:
        return _exactly(column, sa.literal(float(given), sa.Double))
    least, most = equals_of(given)
    return column, sa.literal(least, sa.Double), sa.literal(most, sa.Double)
