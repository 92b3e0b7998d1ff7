"""Statements compiled once for a database: inserts of records, and others of each commit.

SQLAlchemy prepares every execution of a statement anew: a commit of one trial takes 1.3 times the
processor time that way, and one of a thousand trials 1.5 times.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection, CursorResult, Dialect, Insert, UpdateBase
from sqlalchemy.sql.compiler import SQLCompiler

Process = Callable[[Any], Any]


@lru_cache(maxsize=64)
def _compiled(statement: UpdateBase, dialect: Dialect) -> SQLCompiler:
    return statement.compile(dialect=dialect)


def run(
    connection: Connection, statement: UpdateBase, *values: Mapping[str, Any]
) -> CursorResult[Any]:
    """Execute a statement that is one object as long as the program runs, with values that need no
    processor; with several of them, as a batch. Rows come as the database's driver gives them."""
    compiled = _compiled(statement, connection.dialect)
    rows: list[Any] = [{**compiled.params, **each} for each in values]
    if compiled.positiontup is not None:
        rows = [tuple(row[name] for name in compiled.positiontup) for row in rows]
    return connection.exec_driver_sql(compiled.string, rows if len(rows) > 1 else rows[0])


class Prepared:
    """An insert, or an upsert, of records.

    Args:
        columns: By field of the record, the column that takes it.
        more: Columns whose values stand beside a record, such as its study's.
        computed: Columns whose values follow from a record, and how.
        dialect: Of the database's engine.
    """

    def __init__(
        self,
        statement: Insert,
        columns: Mapping[str, str],
        more: Collection[str],
        computed: Mapping[str, Callable[[Any], Any]],
        dialect: Dialect,
    ) -> None:
        names = [*columns.values(), *more, *computed]
        compiled = statement.compile(dialect=dialect, column_keys=names)
        self._text = compiled.string
        self._is_positional = compiled.positional
        self._names = list((compiled.positional and compiled.positiontup) or compiled.params)
        """The parameters, in the order of their columns."""
        self._computed = computed
        field_of = {column: field for field, column in columns.items()}
        places = enumerate(self._names)
        self._beside = [(place, name) for place, name in places if name not in field_of]
        self._fields = attrgetter(*[field_of[name] for name in self._names if name in field_of])
        self._processors: list[tuple[int, Process]] = []
        for place, name in enumerate(self._names):
            process = statement.table.c[name].type.bind_processor(dialect)
            if process is not None:
                self._processors.append((place, process))

    def write(
        self, connection: Connection, records: Sequence[Any], more: Mapping[str, Any]
    ) -> None:
        """Write the records in one batch; without any, do nothing."""
        if not records:
            return
        rows: list[Any] = [self._row(record, more) for record in records]
        if not self._is_positional:
            rows = [dict(zip(self._names, row, strict=True)) for row in rows]
        connection.exec_driver_sql(self._text, rows)

    def _row(self, record: Any, more: Mapping[str, Any]) -> tuple[Any, ...]:
        values = list(self._fields(record))
        for place, name in self._beside:
            compute = self._computed.get(name)
            values.insert(place, more[name] if compute is None else compute(record))
        for place, process in self._processors:
            values[place] = process(values[place])
        return tuple(values)
