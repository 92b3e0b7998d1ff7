"""From the tree of a --where or --sort expression to SQL, for SQLite and PostgreSQL.

A parameter or metric lives in a JSON column and may be a number in one trial and text in the next. Each name is
therefore read as an `Operand`: one expression for each kind of value, NULL where the value is of another kind, built
so that no cast ever meets a value it cannot take. Whatever the user typed reaches the database as a bound parameter.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_never

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Float,
    Integer,
    Numeric,
    Text,
    and_,
    case,
    cast,
    false,
    func,
    literal,
    not_,
    null,
    or_,
    select,
)

from hpsearch.records import CONSTRAINT
from hpsearch.store.filters import (
    Absent,
    Among,
    Condition,
    Joined,
    Name,
    Not,
    Order,
    Ordered,
    SortKey,
    Value,
    parse_sort,
    parse_where,
    point_at,
)

PARAMETER_PREFIX = "params."
METRIC_PREFIX = "metrics."


@dataclass(frozen=True)
class Operand:
    """A name as SQL: its value by kind; None for a kind it never has."""

    number: ColumnElement[Any] | None
    text: ColumnElement[Any] | None
    truth: ColumnElement[Any] | None
    present: ColumnElement[bool]
    choices: tuple[str, ...] | None = None
    """The only texts it can be, where they are known."""
    is_time: bool = False
    """Whether it is a point in time, in seconds since the epoch."""


@dataclass(frozen=True)
class Names:
    """What a name can mean in one study. Where several match, columns win over parameters over metrics.

    Args:
        columns: Columns of the trials, by the name people type.
        choices: The only texts a column can hold, for those where they are known.
        times: Names of the columns that are points in time.
        params: The JSON column of a trial's parameters.
        metrics: The JSON column of the metrics of a trial's latest report.
        parameters: Names of the study's parameters.
        metric_names: Names of the metrics its trials report.
        dialect: ``sqlite`` or ``postgresql``.
    """

    columns: Mapping[str, ColumnElement[Any]]
    choices: Mapping[str, tuple[str, ...]]
    times: frozenset[str]
    params: ColumnElement[Any]
    metrics: ColumnElement[Any]
    parameters: frozenset[str]
    metric_names: frozenset[str]
    dialect: str

    def operand(self, name: str) -> Operand | None:
        """Read `name` as SQL; None where it means nothing here."""
        if name in self.columns:
            return _column(self.columns[name], self.dialect, self.choices.get(name), name in self.times)
        read = _json_postgresql if self.dialect == "postgresql" else _json_sqlite
        for names, column, prefix in (
            (self.parameters, self.params, PARAMETER_PREFIX),
            (self.metric_names, self.metrics, METRIC_PREFIX),
        ):
            if name in names:
                return read(column, name)
            if name.startswith(prefix) and name.removeprefix(prefix) in names:
                return read(column, name.removeprefix(prefix))
        return None

    def known(self) -> list[str]:
        """Every name that can be typed."""
        return [*self.columns, *sorted(self.parameters), *sorted(self.metric_names)]


def where(text: str, names: Names) -> ColumnElement[bool]:
    """Compile a --where expression.

    Raises:
        FilterError: It does not parse, names something unknown, or compares a column with what it never holds.
    """
    return _Compiler(text, "--where", names).condition(parse_where(text))


def order_by(text: str, names: Names) -> list[ColumnElement[Any]]:
    """Compile a --sort expression: numbers before texts, absent values last in either direction.

    Raises:
        FilterError: It does not parse or names something unknown.
    """
    compiler = _Compiler(text, "--sort", names)
    return [column for key in parse_sort(text) for column in compiler.sort_key(key)]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be; None where none is near."""
    by_lower = {k.lower(): k for k in known}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else None


class _Compiler:
    """Compiles the tree of one expression; keeps its text for errors."""

    def __init__(self, text: str, option: str, names: Names) -> None:
        self.text = text
        self.option = option
        self.names = names

    def condition(self, tree: Condition) -> ColumnElement[bool]:
        match tree:
            case Joined("and", parts):
                return and_(*(self.condition(p) for p in parts))
            case Joined(_, parts):
                return or_(*(self.condition(p) for p in parts))
            case Not(of):
                return not_(self.condition(of))
            case Absent(name):
                return not_(self._operand(name).present)
            case Among(name, values):
                return self._among(self._operand(name), name, values)
            case Ordered(name, order, value):
                return self._ordered(self._operand(name), name, order, value)
            case _:
                assert_never(tree)

    def sort_key(self, key: SortKey) -> list[ColumnElement[Any]]:
        operand = self._operand(key.name)
        columns = [c for c in (operand.number, operand.text, operand.truth) if c is not None]
        return [(c.desc() if key.descending else c.asc()).nulls_last() for c in columns]

    def _operand(self, name: Name) -> Operand:
        operand = self.names.operand(name.text)
        if operand is not None:
            return operand
        near = nearest(name.text, self.names.known())
        hint = f"did you mean {near}?" if near else f"known here: {', '.join(self.names.known())}"
        raise point_at(self.option, self.text, name.at, f"no column, parameter or metric is named '{name.text}'", hint)

    def _among(self, operand: Operand, name: Name, values: tuple[Value, ...]) -> ColumnElement[bool]:
        by_side: dict[int, tuple[ColumnElement[Any], list[Any]]] = {}
        for value in values:
            side, bound = self._sides(operand, name, value)
            by_side.setdefault(id(side), (side, []))[1].append(bound)
        return func.coalesce(or_(*(side.in_(bound) for side, bound in by_side.values())), false())

    def _ordered(self, operand: Operand, name: Name, order: Order, value: Value) -> ColumnElement[bool]:
        if isinstance(value.value, bool):
            raise point_at(self.option, self.text, value.at, "true and false have no order", "write: = or !=")
        side, bound = self._sides(operand, name, value)
        compare: Callable[[Any], ColumnElement[bool]] = {
            Order.BELOW: side.__lt__,
            Order.AT_MOST: side.__le__,
            Order.ABOVE: side.__gt__,
            Order.AT_LEAST: side.__ge__,
        }[order]
        return func.coalesce(compare(bound), false())

    def _sides(self, operand: Operand, name: Name, value: Value) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
        """The expression that has values of this one's kind, and the value bound to a parameter of that kind."""
        given = value.value
        if isinstance(given, bool):
            if operand.truth is not None:
                return operand.truth, literal(int(given), Integer)
        elif isinstance(given, str):
            if operand.is_time and operand.number is not None:
                return operand.number, literal(self._moment(given, value), Double)
            if operand.text is not None:
                self._check_choice(operand, name, given, value)
                return operand.text, literal(given, Text)
        elif operand.number is not None:
            whole = isinstance(given, int) and isinstance(operand.number.type, Integer)
            return operand.number, literal(given, BigInteger) if whole else literal(float(given), Double)
        holds = "text" if operand.text is not None else "a number"
        hint = f"text stands in quotes: {name.text} = '…'" if operand.text is not None else None
        raise point_at(self.option, self.text, value.at, f"'{name.text}' is {holds}, never {given!r}", hint)

    def _check_choice(self, operand: Operand, name: Name, given: str, value: Value) -> None:
        if operand.choices is None or given in operand.choices:
            return
        near = nearest(given, operand.choices)
        hint = f"did you mean {near}?" if near else f"it is one of: {', '.join(operand.choices)}"
        raise point_at(self.option, self.text, value.at, f"'{name.text}' is never {given!r}", hint)

    def _moment(self, given: str, value: Value) -> float:
        """Seconds since the epoch of an ISO date or time; UTC where it names no zone."""
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            raise point_at(
                self.option,
                self.text,
                value.at,
                f"{given!r} is no date",
                "such as: '2026-01-31' or '2026-01-31 18:00'",
            ) from None
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


# ----------------------------------------------------------------------------------------------- names as SQL


def _column(column: ColumnElement[Any], dialect: str, choices: tuple[str, ...] | None, is_time: bool) -> Operand:
    if isinstance(column.type, Integer | Numeric | Float):
        return Operand(column, None, None, column.is_not(None), is_time=is_time)
    return Operand(None, _by_code_point(column, dialect), None, column.is_not(None), choices=choices)


def _by_code_point(text: ColumnElement[Any], dialect: str) -> ColumnElement[Any]:
    """Text in the order of its characters' code points, on every database (SQLite has no other)."""
    return text.collate("C") if dialect == "postgresql" else text


def violation(system_attrs: ColumnElement[Any], dialect: str) -> ColumnElement[Any]:
    """How far a trial oversteps limits, as `hpsearch.records.violation_of` counts it; 0 where it keeps them all.

    Args:
        system_attrs: The JSON column of a trial's system attributes.
        dialect: ``sqlite`` or ``postgresql``.
    """
    is_postgresql = dialect == "postgresql"
    kind = func.json_typeof(system_attrs) if is_postgresql else func.json_type(system_attrs)
    objects = case((kind == "object", system_attrs))  # what is none oversteps nothing: reading its row tells of it
    if is_postgresql:
        members = func.json_each(objects).table_valued("key", "value")
        value = members.c.value
        margin = _number_postgresql(value, cast(value, Text), func.json_extract_path_text(value, "$float"))
    else:
        members = func.json_each(objects).table_valued("key", "value", "type")
        margin = _number_sqlite(members.c.type, members.c.value)
    of_limit = func.substr(members.c.key, 1, len(CONSTRAINT)) == CONSTRAINT
    total = select(func.sum(margin)).select_from(members).where(of_limit, margin > 0).scalar_subquery()
    return func.coalesce(total, literal(0.0, Double), type_=Double)


def _number_sqlite(kind: ColumnElement[Any], value: ColumnElement[Any]) -> ColumnElement[Any]:
    infinite = _infinite_sqlite(kind, value)
    return case(
        (kind.in_(["integer", "real"]), cast(value, Double)),
        (infinite == "inf", literal(float("inf"), Double)),
        (infinite == "-inf", literal(float("-inf"), Double)),
        else_=null(),
    )


def _infinite_sqlite(kind: ColumnElement[Any], value: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((kind == "object", func.json_extract(value, '$."$float"')), else_=null())


def _number_postgresql(
    member: ColumnElement[Any], text: ColumnElement[Any], infinite: ColumnElement[Any]
) -> ColumnElement[Any]:
    return case(
        (func.json_typeof(member) == "number", cast(text, Double)),
        (infinite == "inf", literal(float("inf"), Double)),
        (infinite == "-inf", literal(float("-inf"), Double)),
        else_=null(),
    )


def _json_sqlite(column: ColumnElement[Any], key: str) -> Operand:
    """Reads a member by json_each, which takes any key: a JSON path would misread quotes and escapes."""
    members = func.json_each(column).table_valued("key", "value", "type")

    def read(expression: ColumnElement[Any]) -> ColumnElement[Any]:
        return select(expression).select_from(members).where(members.c.key == key).scalar_subquery()

    kind, value = members.c.type, members.c.value
    infinite = _infinite_sqlite(kind, value)
    return Operand(
        number=read(_number_sqlite(kind, value)),
        text=read(case((kind == "text", cast(value, Text)), else_=null())),
        truth=read(case((kind == "true", 1), (kind == "false", 0), else_=null())),
        present=func.coalesce(read(and_(kind != "null", func.coalesce(infinite, "") != "nan")), false()),
    )


def _json_postgresql(column: ColumnElement[Any], key: str) -> Operand:
    member, text = func.json_extract_path(column, key), func.json_extract_path_text(column, key, type_=Text)
    kind = func.json_typeof(member)
    infinite = func.json_extract_path_text(column, key, "$float")
    return Operand(
        number=_number_postgresql(member, text, infinite),
        text=_by_code_point(case((kind == "string", text), else_=null()), "postgresql"),
        truth=case((kind == "boolean", case((text == "true", 1), else_=0)), else_=null()),
        present=func.coalesce(and_(kind != "null", func.coalesce(infinite, "") != "nan"), false()),
    )
