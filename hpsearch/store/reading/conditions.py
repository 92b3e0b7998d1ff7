"""From a --where or --sort expression to SQL, for SQLite and PostgreSQL. Whatever the user typed
reaches the database as a bound parameter."""

import operator
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache, partial
from operator import itemgetter
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from hpsearch.errors import FilterError
from hpsearch.store.cells import Cell
from hpsearch.store.codec import clean, decode
from hpsearch.store.reading.names import Names, Operand
from hpsearch.store.schema import Condition, Sql
from hpsearch.study_file.expressions.meaning import equals_of
from hpsearch.study_file.expressions.parsing import (
    ExpressionError,
    Term,
    Visitor,
    keys_of,
    parsed,
    unexpected,
)
from hpsearch.study_file.expressions.patterns import Pattern
from hpsearch.study_file.types import same
from trials.descriptions.cells import nested_in
from trials.settings import nearest

Option = Literal["--where", "--retry", "--sort"]
Bound: TypeAlias = sa.BindParameter[Any]

_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MOST_TERMS = 2_000  # comparisons in one expression: PostgreSQL takes 65,535 bound parameters
MOST_NESTED = 40  # levels of an expression
MOST_IN_A_ROW = 30  # conditions that are joined at one level
MOST_BOUND = 30  # values in a list that the database compares; with more, this program does
_MIRRORED = str.maketrans("<>", "><")
_DATES = "such as: '2026-01-31', '2026-01-31 18:00' or '2026-01-31T18:00Z'"


def compiled(text: str, option: Option, names: Names) -> Any:
    """A --sort expression as columns to order by, numbers before texts and absent values last; any
    other as a condition. Raises FilterError if it does not parse, names something unknown, or
    compares a column with what it never holds."""
    compiler = _Compiler(text, names)
    try:
        if option == "--sort":
            return [column for key in keys_of(text) for column in compiler.key(*key)]
        tree = parsed(text, MOST_NESTED)
        terms = sum(leaf.name is not None for leaf in tree.leaves)
        if terms > MOST_TERMS:
            what = f"the expression has {terms} terms, and at most {MOST_TERMS} are read"
            raise ExpressionError(what, text, 0, "list values of one name: NAME in (1, 2, 3)")
        return compiler.read(tree)
    except ExpressionError as error:
        raise FilterError(f"{option}: {error.what}\n{error.excerpt}", error.hint) from None


class _Compiler(Visitor):
    """Makes SQL of an expression."""

    def __init__(self, text: str, names: Names) -> None:
        super().__init__(text)
        self._names = names
        self._operand = cache(names.operand)

    def any(self, _part: Term, *tests: Condition) -> Condition:
        return _joined(sa.or_, tests)

    def all(self, _part: Term, *tests: Condition) -> Condition:
        return _joined(sa.and_, tests)

    def opposite(self, _part: Term, test: Condition) -> Condition:
        return sa.not_(test)

    def absent(self, _part: Term, of: Term) -> Condition:
        return sa.not_(self._named(of).present)

    def among(self, _part: Term, of: Term, *values: Term) -> Condition:
        if of.name is None and len(values) == 1:
            of, values = values[0], (of,)
        ranges: defaultdict[Sql, list[tuple[Bound, Bound]]] = defaultdict(list)
        equal: list[Condition] = []
        for value in values:
            side, *ends = self._sides(of, value)
            ranges[side].append((ends[0], ends[1]))
            nested, own = nested_in(ends[0].value), self._named(of).nested
            if nested is not None and own is not None:
                equal.append(self._names.where(own, partial(_is_written, nested)))
        equal += [self._within_one(side, some) for side, some in ranges.items()]
        return sa.func.coalesce(_joined(sa.or_, equal), sa.false())

    def like(self, _part: Term, of: Term, pattern: Term) -> Condition:
        text = self._named(of).text
        if text is None:
            raise self.wrong(pattern, f"'{of.name}' is a number, which is like no text")
        return self._names.where(text, Pattern(clean(str(pattern.value))).fits)

    def ordered(self, part: Term, left: Term, right: Term) -> Condition:
        sign = part.written
        if left.name is None:
            left, right, sign = right, left, sign.translate(_MIRRORED)
        if isinstance(right.value, bool):
            raise self.wrong(right, "true and false have no order", "write: = or !=")
        side, least, most = self._sides(left, right)
        bound = least if sign in ("<", ">=") else most
        return sa.func.coalesce(_ORDERS[sign](side, bound), sa.false())

    def sum(self, part: Term, *_of: Term) -> Term:
        what = f"a name is compared with values, and '{part.written}' calculates"
        raise self.wrong(part, what, "only conditions in a study file calculate")

    def leaf(self, part: Term) -> Term:
        return part

    def key(self, of: Term, is_descending: bool) -> list[Sql]:
        operand = self._named(of)
        by = (operand.number, operand.text, operand.nested, operand.truth)
        ordered = [each.desc() if is_descending else each.asc() for each in by if each is not None]
        return [each.nulls_last() for each in ordered]

    def _named(self, part: Term) -> Operand:
        if part.name is None:
            raise unexpected(self.text, part.at, "a name")
        operand = self._operand(part.name)
        if operand is None:
            what = f"no column, parameter or metric is named '{part.name}'"
            raise self.wrong(part, what, nearest(part.name, self._names.known()))
        return operand

    def _sides(self, of: Term, value: Term) -> tuple[Sql, Bound, Bound]:
        """The operand, of the value's kind, and the least and most that count as equal to it."""
        operand, given = self._named(of), value.value
        if isinstance(given, bool):
            if operand.truth is not None:
                return _exactly(operand.truth, sa.literal(int(given), sa.Integer))
        elif isinstance(given, str):
            if operand.is_time and operand.number is not None:
                return _exactly(operand.number, sa.literal(self._moment(given, value), sa.Double))
            if operand.choices is not None and given not in operand.choices:
                hint = nearest(given, operand.choices)
                raise self.wrong(value, f"'{of.name}' is never {given!r}", hint)
            if operand.text is not None:
                return _exactly(operand.text, sa.literal(clean(given), sa.Text))
        elif given is None:
            raise unexpected(self.text, value.at, "a value")
        elif operand.number is not None:
            return _number(operand.number, given, is_time=operand.is_time)
        if operand.text is None:
            raise self.wrong(value, f"'{of.name}' is a number, never {given!r}")
        hint = f"put text in quotes: {of.name} = '…'"
        raise self.wrong(value, f"'{of.name}' is text, never {given!r}", hint)

    def _within_one(self, side: Sql, ranges: Sequence[tuple[Bound, Bound]]) -> Condition:
        if len(ranges) <= MOST_BOUND:
            within = [side == a if a is b else side.between(a, b) for a, b in ranges]
            return _joined(sa.or_, within)
        ends: list[Any] = sorted((least.value, most.value) for least, most in ranges)

        def is_within(own: Any) -> bool:
            before = bisect_right(ends, own, key=itemgetter(0))
            return before > 0 and bool(own <= ends[before - 1][1])

        return self._names.where(side, is_within)

    def _moment(self, given: str, value: Term) -> float:
        try:
            return datetime.fromisoformat(given).timestamp()
        except (ValueError, OverflowError, OSError):
            raise self.wrong(value, f"{given!r} is not a date", _DATES) from None


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
