"""From the tree of a --where or --sort expression to SQL, for SQLite and PostgreSQL.

A parameter or metric lives in a JSON column and may be a number in one trial and text in the next.
Each name is therefore read as an `Operand`: one expression for each kind of value, NULL where the
value is of another kind, built so that no cast ever meets a value it cannot take. Whatever the user
typed reaches the database as a bound parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, assert_never

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    Integer,
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

from hpsearch.domain.records import CONSTRAINT
from hpsearch.errors import FilterError
from hpsearch.store.cells import Number, Whole
from hpsearch.store.contents import nearest
from hpsearch.store.reading.filters import (
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
    cell: ColumnElement[Any]  # what it is read from
    choices: tuple[str, ...] | None = None  # the only texts it can be, where they are known
    is_time: bool = False  # true if it is a point in time, in seconds since the epoch


@dataclass(frozen=True)
class Names:
    """The names of one study. Where several match, columns win over parameters over metrics.

    Args:
        columns: Columns of the trials, by the name people type.
        choices: The only texts a column can hold, where they are known.
        times: Names of the columns that are points in time.
        params, metrics: The JSON columns of parameters, and of the metrics of the latest report.
        parameters, metric_names: The names in them.
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
        """Read `name` as SQL; None if it means nothing here."""
        if name in self.columns:
            column = self.columns[name]
            return _column(column, self.dialect, self.choices.get(name), name in self.times)
        for names, column, prefix in (
            (self.parameters, self.params, PARAMETER_PREFIX),
            (self.metric_names, self.metrics, METRIC_PREFIX),
        ):
            key = _key_in(names, name, prefix)
            if key is not None:
                return _json_operand(column, key, self.dialect)
        return None

    def known(self) -> list[str]:
        """Every name that can be typed."""
        return [*self.columns, *sorted(self.parameters), *sorted(self.metric_names)]


def _key_in(names: Collection[str], name: str, prefix: str) -> str | None:
    """Which of some names is meant by one that may have the prefix; None if none is."""
    if name in names:
        return name
    rest = name.removeprefix(prefix)
    if rest in names:
        return rest
    return None


def where(text: str, names: Names) -> ColumnElement[bool]:
    """Compile a --where expression. Raises FilterError if it does not parse, names something
    unknown, or compares a column with what it never holds."""
    return _Compiler(text, "--where", names).condition(parse_where(text))


def order_by(text: str, names: Names) -> list[ColumnElement[Any]]:
    """Compile a --sort expression: numbers before texts, absent values last. Raises FilterError."""
    compiler = _Compiler(text, "--sort", names)
    columns = []
    for key in parse_sort(text):
        columns += compiler.sort_key(key)
    return columns


def cells(where: str | None, sort: str | None, names: Names) -> list[ColumnElement[Any]]:
    """The cells that expressions are read from. SQL compares a damaged cell like any other, so that
    its trial may be passed over in silence: whoever selects by an expression reads these of all."""
    found: dict[int, ColumnElement[Any]] = {}
    if where:
        compiler = _Compiler(where, "--where", names)
        compiler.condition(parse_where(where))
        found |= compiler.cells
    if sort:
        compiler = _Compiler(sort, "--sort", names)
        for key in parse_sort(sort):
            compiler.sort_key(key)
        found |= compiler.cells
    return list(found.values())


class _Compiler:
    """Compiles the tree of one expression; keeps its text for errors."""

    def __init__(self, text: str, option: str, names: Names) -> None:
        self.text = text
        self.option = option
        self.names = names
        self.cells: dict[int, ColumnElement[Any]] = {}
        """The cells that the names so far are read from, each once."""

    def condition(self, tree: Condition) -> ColumnElement[bool]:
        match tree:
            case Joined("and", parts):
                return and_(*self._conditions(parts))
            case Joined(_, parts):
                return or_(*self._conditions(parts))
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

    def _conditions(self, trees: Iterable[Condition]) -> list[ColumnElement[bool]]:
        return [self.condition(tree) for tree in trees]

    def sort_key(self, key: SortKey) -> list[ColumnElement[Any]]:
        operand = self._operand(key.name)
        columns: list[ColumnElement[Any]] = []
        for column in (operand.number, operand.text, operand.truth):
            if column is None:
                continue
            order = column.desc() if key.descending else column.asc()
            columns.append(order.nulls_last())
        return columns

    def _operand(self, name: Name) -> Operand:
        operand = self.names.operand(name.text)
        if operand is not None:
            self.cells[id(operand.cell)] = operand.cell
            return operand
        known = self.names.known()
        near = nearest(name.text, known)
        hint = f"did you mean {near}?" if near else f"known here: {', '.join(known)}"
        what = f"no column, parameter or metric is named '{name.text}'"
        raise self._wrong(name.at, what, hint)

    def _wrong(self, at: int, what: str, hint: str | None) -> FilterError:
        return point_at(self.option, self.text, at, what, hint)

    def _among(
        self, operand: Operand, name: Name, values: tuple[Value, ...]
    ) -> ColumnElement[bool]:
        by_side: dict[int, tuple[ColumnElement[Any], list[Any]]] = {}
        for value in values:
            side, bound = self._sides(operand, name, value)
            _, values_of_side = by_side.setdefault(id(side), (side, []))
            values_of_side.append(bound)
        among = [side.in_(bound) for side, bound in by_side.values()]
        return func.coalesce(or_(*among), false())

    def _ordered(
        self, operand: Operand, name: Name, order: Order, value: Value
    ) -> ColumnElement[bool]:
        if isinstance(value.value, bool):
            raise self._wrong(value.at, "true and false have no order", "write: = or !=")
        side, bound = self._sides(operand, name, value)
        compare: Callable[[Any], ColumnElement[bool]] = {
            Order.BELOW: side.__lt__,
            Order.AT_MOST: side.__le__,
            Order.ABOVE: side.__gt__,
            Order.AT_LEAST: side.__ge__,
        }[order]
        return func.coalesce(compare(bound), false())

    def _sides(
        self, operand: Operand, name: Name, value: Value
    ) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
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
            return operand.number, _bound_number(given, operand.number)
        holds = "a number"
        hint = None
        if operand.text is not None:
            holds = "text"
            hint = f"put text in quotes: {name.text} = '…'"
        raise self._wrong(value.at, f"'{name.text}' is {holds}, never {given!r}", hint)

    def _check_choice(self, operand: Operand, name: Name, given: str, value: Value) -> None:
        choices = operand.choices
        if choices is None or given in choices:
            return
        near = nearest(given, choices)
        hint = f"did you mean {near}?" if near else f"it is one of: {', '.join(choices)}"
        raise self._wrong(value.at, f"'{name.text}' is never {given!r}", hint)

    def _moment(self, given: str, value: Value) -> float:
        try:
            return datetime.fromisoformat(given).timestamp()
        except (ValueError, OverflowError, OSError):
            hint = "such as: '2026-01-31', '2026-01-31 18:00' or '2026-01-31T18:00Z'"
            raise self._wrong(value.at, f"{given!r} is not a date", hint) from None


def _bound_number(given: float, column: ColumnElement[Any]) -> ColumnElement[Any]:
    if isinstance(given, int) and isinstance(column.type, Whole):
        return literal(given, BigInteger)
    return literal(float(given), Double)


# ------------------------------------------------------------------------------------- names as SQL


def _column(
    column: ColumnElement[Any], dialect: str, choices: tuple[str, ...] | None, is_time: bool
) -> Operand:
    present = column.is_not(None)
    if isinstance(column.type, Whole | Number | Double):
        return Operand(column, None, None, present, column, is_time=is_time)
    text = _by_code_point(column, dialect)
    return Operand(None, text, None, present, column, choices=choices)


def _by_code_point(text: ColumnElement[Any], dialect: str) -> ColumnElement[Any]:
    """Text in the order of its characters' code points, on every database (SQLite has no other)."""
    return text.collate("C") if dialect == "postgresql" else text


def violation(system_attrs: ColumnElement[Any], dialect: str) -> ColumnElement[Any]:
    """How far a trial exceeds limits, as `hpsearch.domain.records.violation_of` counts it from its
    system attributes; 0 where it keeps them all."""
    is_postgresql = dialect == "postgresql"
    of_all = func.json_typeof(system_attrs) if is_postgresql else func.json_type(system_attrs)
    # What is not an object exceeds nothing: reading its row reports it.
    objects = case((of_all == "object", system_attrs))
    if is_postgresql:
        members = func.json_each(objects).table_valued("key", "value")
        value = members.c.value
        infinite = func.json_extract_path_text(value, "$float")
        margin = _number(func.json_typeof(value), cast(value, Text), infinite)
    else:
        members = func.json_each(objects).table_valued("key", "value", "type")
        kind, value = members.c.type, members.c.value
        margin = _number(kind, value, _infinite_sqlite(kind, value))
    of_limit = func.substr(members.c.key, 1, len(CONSTRAINT)) == CONSTRAINT
    overstepped = select(func.sum(margin)).select_from(members).where(of_limit, margin > 0)
    total = overstepped.scalar_subquery()
    return func.coalesce(total, literal(0.0, Double), type_=Double)


def _number(
    kind: ColumnElement[Any], value: ColumnElement[Any], infinite: ColumnElement[Any]
) -> ColumnElement[Any]:
    """A member of an object as a number; NULL if it is none.

    Args:
        kind: What the database calls its type.
        value: It, as what can be cast.
        infinite: The name of what JSON has no number for.
    """
    return case(
        (kind.in_(["number", "integer", "real"]), cast(value, Double)),
        (infinite == "inf", literal(float("inf"), Double)),
        (infinite == "-inf", literal(float("-inf"), Double)),
        else_=null(),
    )


def _infinite_sqlite(kind: ColumnElement[Any], value: ColumnElement[Any]) -> ColumnElement[Any]:
    return case((kind == "object", func.json_extract(value, '$."$float"')), else_=null())


def _json_operand(column: ColumnElement[Any], key: str, dialect: str) -> Operand:
    """A member of a JSON column. SQLite reads it by json_each, which takes any key: a JSON path
    would misread quotes and escapes."""
    kind: ColumnElement[Any]
    value: ColumnElement[Any]
    written: ColumnElement[Any]
    infinite: ColumnElement[Any]
    if dialect == "postgresql":
        kind = func.json_typeof(func.json_extract_path(column, key))
        value = written = func.json_extract_path_text(column, key, type_=Text)
        infinite = func.json_extract_path_text(column, key, "$float")
        truth = case((kind == "boolean", case((written == "true", 1), else_=0)), else_=null())
    else:
        members = func.json_each(column).table_valued("key", "value", "type")
        kind, value = members.c.type, members.c.value
        written = cast(value, Text)
        infinite = _infinite_sqlite(kind, value)
        truth = case((kind == "true", 1), (kind == "false", 0), else_=null())

    def read(expression: ColumnElement[Any]) -> ColumnElement[Any]:
        if dialect == "postgresql":
            return expression
        of_key = select(expression).select_from(members).where(members.c.key == key)
        return of_key.scalar_subquery()

    text = read(case((kind.in_(["string", "text"]), written), else_=null()))
    is_value = and_(kind != "null", func.coalesce(infinite, "") != "nan")
    return Operand(
        number=read(_number(kind, value, infinite)),
        text=_by_code_point(text, dialect),
        truth=read(truth),
        present=func.coalesce(read(is_value), false()),
        cell=column,
    )
