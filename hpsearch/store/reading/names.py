"""The names in a --where or --sort over the trials of a study, as SQL: columns, parameters,
metrics.

A parameter or metric lives in a JSON column and may be a number in one trial and text in the next.
Each name is therefore read as an `Operand`: one expression for each kind of value, NULL where the
value is of another kind, built so that no cast ever meets a value it cannot take.
"""

import enum
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from functools import cache
from itertools import chain
from typing import Any

import sqlalchemy as sa

from hpsearch.domain.records import Trial
from hpsearch.store.codec import clean
from hpsearch.store.schema import (
    REPORT,
    TRIAL,
    Condition,
    Sql,
    cell_of,
    column_name,
    reports,
    trials,
)

PARAMETER_PREFIX = "params."
METRIC_PREFIX = "metrics."

latest = reports.alias("latest")

WITH_LATEST: sa.FromClause = trials.outerjoin(
    latest,
    sa.and_(
        latest.c.study_id == TRIAL.study_id,
        latest.c.trial == TRIAL.number,
        latest.c.resource
        == sa.select(sa.func.max(REPORT.resource))
        .where(REPORT.study_id == TRIAL.study_id, REPORT.trial == TRIAL.number)
        .scalar_subquery(),
    ),
)
"""Trials with their latest report, which is NULL where they have none."""


def numbered(numbers: Collection[int]) -> Any:
    """Numbers that stand in the text of a statement: databases take only so many parameters, and
    PostgreSQL takes long over many."""
    return sa.bindparam("numbers", list(numbers), expanding=True, literal_execute=True, unique=True)


_FIELDS = [field for field in fields(Trial) if "shown" in field.metadata]

SHOWN = tuple(field.name for field in _FIELDS)  # fields of trials that readings show

_COLUMNS = {field.name: TRIAL[column_name(field)] for field in _FIELDS}

FILTERED = tuple(name for name, column in _COLUMNS.items() if not cell_of(column).is_json)
"""Fields of trials that a --where or --sort can name; those of one value."""

_TIMES = frozenset(field.name for field in _FIELDS if "moment" in field.metadata)


@dataclass(frozen=True)
class Operand:
    """A name as SQL: its value by kind; None for a kind it never has."""

    number: Sql | None
    text: Sql | None
    truth: Sql | None
    present: Condition
    choices: tuple[str, ...] | None = None  # the only texts it can be, where they are known
    nested: Sql | None = None  # JSON of lists and mappings, without blanks
    is_time: bool = False  # true if it is a point in time, in seconds since the epoch


@dataclass(frozen=True)
class Names:
    """The names that can stand in a --where or --sort over the trials of one study. Where several
    match, columns win over parameters over metrics. A name is looked up when it is used: that reads
    trials up to the first one that has it."""

    connection: sa.Connection
    study_id: int

    def operand(self, name: str) -> Operand | None:
        """A name as SQL; None if it means nothing here."""
        if name in FILTERED:
            return self._column(name)
        if name == "violation":
            exceeded = TRIAL.violation
            return Operand(exceeded, None, None, exceeded.is_not(None))
        for column, prefix in _MEMBERS:
            for key in dict.fromkeys((name, name.removeprefix(prefix))):
                if self._has(column, key):
                    return self._member(column, key)
        return None

    def where(self, value: Sql, fits: Callable[[Any], bool]) -> Condition:
        """True of the trials whose value fits, which is decided here: databases differ in it, or
        take only so many values. Of NULL it is false."""
        found = sa.select(TRIAL.number, value).select_from(WITH_LATEST)
        found = found.where(TRIAL.study_id == self.study_id, value.is_not(None))
        known = cache(fits)
        numbers = [number for number, each in self.connection.execute(found) if known(each)]
        return TRIAL.number.in_(numbered(numbers))

    def known(self) -> list[str]:
        members = [sorted(self._keys_in(column)) for column, _ in _MEMBERS]
        return [*FILTERED, "violation", *chain.from_iterable(members)]

    @property
    def is_postgresql(self) -> bool:
        return self.connection.dialect.name == "postgresql"

    def _has(self, column: sa.Column[Any], typed: str) -> bool:
        key = clean(typed)
        read = trials if column.table is trials else WITH_LATEST
        one = sa.select(sa.literal(1)).select_from(read).where(TRIAL.study_id == self.study_id)
        if self.is_postgresql:
            one = one.where(sa.func.json_extract_path(column, key).is_not(None))
        else:
            one = one.where(_key_of(column) == key)
        return self.connection.scalar(one.order_by(TRIAL.number).limit(1)) is not None

    def _keys_in(self, column: Sql) -> set[str]:
        key = sa.func.json_object_keys(column) if self.is_postgresql else _key_of(column)
        keys = sa.select(key).distinct().select_from(WITH_LATEST)
        return set(self.connection.scalars(keys.where(TRIAL.study_id == self.study_id)))

    def _column(self, name: str) -> Operand:
        column = _COLUMNS[name]
        present = column.is_not(None)
        cell = cell_of(column)
        if cell.is_number:
            return Operand(column, None, None, present, is_time=name in _TIMES)
        choices = None
        if issubclass(cell.of, enum.Enum):
            choices = tuple(member.value for member in cell.of)
        return Operand(None, self._by_code_point(column), None, present, choices=choices)

    def _by_code_point(self, text: Sql) -> Sql:
        """Text in the order of its characters' code points, as SQLite has it."""
        return text.collate("C") if self.is_postgresql else text

    def _member(self, column: Sql, key: str) -> Operand:
        kind: Sql
        written: Sql
        unusual: Sql
        if self.is_postgresql:
            kind = sa.func.json_typeof(sa.func.json_extract_path(column, key))
            written = sa.func.json_extract_path_text(column, key, type_=sa.Text)
            unusual = sa.func.json_extract_path_text(column, key, "$float")
            truth = sa.case((kind == "boolean", sa.case((written == "true", 1), else_=0)))
        else:
            kind, written, unusual = _in_sqlite(column, key)
            truth = sa.case((kind == "true", 1), (kind == "false", 0))
        number = sa.case(
            (kind.in_(["number", "integer", "real"]), sa.cast(written, sa.Double)),
            (unusual == "inf", sa.literal(float("inf"), sa.Double)),
            (unusual == "-inf", sa.literal(float("-inf"), sa.Double)),
            else_=sa.null(),
        )
        text = sa.case((kind.in_(["string", "text"]), written))
        is_nested = sa.and_(kind.in_(["array", "object"]), unusual.is_(None))
        is_value = sa.and_(kind != "null", sa.func.coalesce(unusual, "") != "nan")
        return Operand(
            number=number,
            text=self._by_code_point(text),
            truth=truth,
            nested=self._by_code_point(sa.case((is_nested, written))),
            present=sa.func.coalesce(is_value, sa.false()),
        )


_MEMBERS = ((TRIAL.params, PARAMETER_PREFIX), (latest.c.metrics, METRIC_PREFIX))
"""The columns whose members have names."""


def _in_sqlite(column: Sql, key: str) -> tuple[Sql, Sql, Sql]:
    """The kind of a member, its value as text, and the name of a number that JSON does not have."""
    if json.dumps(key, ensure_ascii=False) == f'"{key}"':
        path = f'$."{key}"'
        written = sa.func.json_extract(column, path, type_=sa.Text)
        unusual = sa.func.json_extract(column, f'{path}."$float"')
        return sa.func.json_type(column, path), written, unusual
    # A path of SQLite cannot name it.
    rows = sa.func.json_each(column).table_valued("key", "value", "type").alias()
    inner = sa.case((rows.c.type == "object", sa.func.json_extract(rows.c.value, '$."$float"')))

    def member(found: Sql) -> Sql:
        return sa.select(found).where(rows.c.key == key).scalar_subquery()

    return member(rows.c.type), member(sa.cast(rows.c.value, sa.Text)), member(inner)


def _key_of(column: Sql) -> Sql:
    return sa.func.json_each(column).table_valued("key", joins_implicitly=True).c.key
