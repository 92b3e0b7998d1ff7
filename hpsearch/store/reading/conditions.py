"""From the tree of a --where or --sort expression to SQL, for SQLite and PostgreSQL. Whatever the
user typed reaches the database as a bound parameter."""

import operator
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa
from lark import Token, Transformer, v_args
from lark.exceptions import VisitError

from hpsearch.errors import FilterError
from hpsearch.store.cells import Cell
from hpsearch.store.codec import clean
from hpsearch.store.reading.names import Names, Operand
from hpsearch.store.schema import Condition, Sql
from hpsearch.study_file.expressions.grammar import ExpressionError, parsed, value_of
from hpsearch.study_file.expressions.meaning import equals_of, nested_in
from trials.settings import nearest

Option = Literal["--where", "--sort"]
Bound: TypeAlias = sa.BindParameter[Any]

_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_EQUAL = ("=", "==")
_DATES = "such as: '2026-01-31', '2026-01-31 18:00' or '2026-01-31T18:00Z'"


def compiled(text: str, option: Option, names: Names) -> Any:
    """A --where expression as a condition, a --sort expression as columns to order by: numbers
    before texts, absent values last. Raises FilterError if it does not parse, names something
    unknown, or compares a column with what it never holds."""
    start: Literal["where", "sort"] = "where" if option == "--where" else "sort"
    try:
        return _Compiler(text, names).transform(parsed(text, start))
    except ExpressionError as error:
        raise _refusal(option, error) from None
    except VisitError as error:
        if isinstance(error.orig_exc, ExpressionError):
            raise _refusal(option, error.orig_exc) from None
        raise error.orig_exc from None
    except RecursionError:
        raise FilterError(f"{option}: the expression is nested too deep") from None


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
        return sa.or_(*parts)

    def all(self, *parts: Condition) -> Condition:
        return sa.and_(*parts)

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
        # Values of one kind in one list: databases take only so many conditions in a row.
        exact: defaultdict[Sql, list[Bound]] = defaultdict(list)
        operand = named.operand
        near: defaultdict[Sql, list[tuple[Bound, Bound]]] = defaultdict(list)
        for value in values:
            side, least, most = self._sides(named, value)
            nested = nested_in(least.value)
            if nested is not None and operand.nested is not None:
                written = self._names.written_as(operand.nested, nested)
                exact[operand.nested] += [sa.literal(text, sa.Text) for text in written]
            if least is most:
                exact[side].append(least)
            else:
                near[side].append((least, most))
        equal: list[Condition] = [side.in_(some) for side, some in exact.items()]
        equal += [_within_one(side, some) for side, some in near.items()]
        found = sa.func.coalesce(sa.or_(*equal), sa.false())
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
        found = sa.func.coalesce(text.ilike(clean(str(value_of(pattern)))), sa.false())
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


def _within_one(side: Sql, ranges: Sequence[tuple[Bound, Bound]]) -> Condition:
    if len(ranges) == 1:
        return side.between(*ranges[0])
    ends = [(least.value, most.value) for least, most in ranges]
    listed = sa.values(sa.Column("least", sa.Double), sa.Column("most", sa.Double)).data(ends).cte()
    return sa.exists(sa.select(1).where(side.between(listed.c.least, listed.c.most)))


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
