"""The damage in a database, which this program never writes, and its place: all, or what a reader
has found.

Reading a damaged cell raises `Damaged`, which knows the cell but not its place. `located` then
looks for the place, so that readers need not keep track of it for so rare a case. Here each cell is
read by itself, with the type of its column (`hpsearch.store.cells`), so that one that is damaged
hides no other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    ForeignKeyConstraint,
    Row,
    Select,
    Table,
    literal_column,
    null,
    select,
    type_coerce,
)
from sqlalchemy.types import NULLTYPE

from hpsearch.errors import Damaged
from hpsearch.store import shapes
from hpsearch.store.cells import NOTHING, Cell
from hpsearch.store.schema import metadata, studies, trials

LONGEST_KEY = 40  # how many characters of a damaged key are shown


@dataclass(frozen=True, slots=True)
class Violation:
    """Something in the database that must not be."""

    study: str
    trial: int | str | None  # its number, or how the cell in place of one is written
    what: str

    def __str__(self) -> str:
        if self.trial is None:
            return f"{self.study}: {self.what}"
        return f"{self.study}, trial {self.trial}: {self.what}"


@dataclass(frozen=True, slots=True)
class DamagedRow(Violation):
    """A violation in one row."""

    table: Table
    row: str  # the row as the database itself names it, in SQL


Which = ColumnElement[bool] | None  # which studies to check; None for all

Check = Callable[[Connection, Which], Iterator[Violation]]
"""Finds where something does not hold that must always be true."""


def damaged_rows(connection: Connection, which: Which = None) -> list[DamagedRow]:
    """All that is damaged, by table."""
    found: list[DamagedRow] = []
    directions: dict[int, Sequence[str]] = {}
    for table in metadata.sorted_tables:
        for row in connection.execute(_cells(connection, table, which)):
            damaged = list(_damaged_cells(table, row))
            if table is studies and not damaged:
                directions[row.id] = _read(studies.c.directions, row)
            if table is trials and not damaged:
                damaged += _apart(row, directions.get(row.study_id))
            found += damaged
    return found


def located(connection: Connection, error: Damaged) -> Damaged:
    """The error of a reader, with the study, trial and column of the cell that it found; unchanged
    if they are not found.

    If several cells are damaged in the same way, it names one of them.
    """
    found = damaged_rows(connection)
    same = [each for each in found if error.what in each.what]
    return summed_up(error.what, same + [each for each in found if each not in same])


def summed_up(what: str, found: Sequence[Violation], then: str = "") -> Damaged:
    """The error that names the first of some violations, how many more there are, and `then`, what
    becomes of them. `what` is the value that was met."""
    if not found:
        return Damaged(what)
    others = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return Damaged(what, f"{found[0]}{others}{then}")


def without(rows: Sequence[DamagedRow], dialect: str) -> str:
    """SQL that, put before a SELECT, hides rows from it, and those that belong to them."""
    by_table: defaultdict[str, set[str]] = defaultdict(set)
    for each in rows:
        by_table[each.table.name].add(each.row)
    schema = "main." if dialect == "sqlite" else ""
    parts = []
    for table in metadata.sorted_tables:
        name = table.name
        conditions = [_has_parent(key) for key in table.foreign_key_constraints]
        if by_table[name]:
            conditions.append(f"{_ROW[dialect]} NOT IN ({', '.join(sorted(by_table[name]))})")
        whole = " AND ".join(conditions) or "1 = 1"
        rows_left = f"SELECT * FROM {schema}{name} WHERE {whole}"  # noqa: S608 - of our own tables
        parts.append(f"{name} AS NOT MATERIALIZED ({rows_left})")
    return f"WITH {', '.join(parts)} "


_ROW = {"sqlite": "rowid", "postgresql": "ctid"}  # how each database names a row


def _has_parent(key: ForeignKeyConstraint) -> str:
    pairs = []
    for element in key.elements:
        parent, child = element.column, element.parent
        pairs.append(f"parent.{parent.name} = {child.table.name}.{child.name}")
    are_same = " AND ".join(pairs)
    name = key.referred_table.name
    return f"EXISTS (SELECT 1 FROM {name} AS parent WHERE {are_same})"  # noqa: S608 - as above


def _cells(connection: Connection, table: Table, which: Which) -> Select[Any]:
    row: ColumnElement[Any] = literal_column(f"{table.name}.{_ROW[connection.dialect.name]}")
    cells = [type_coerce(column, NULLTYPE).label(column.name) for column in table.c]
    study = type_coerce(studies.c.name, NULLTYPE) if table is not studies else null()
    statement = select(row.label("row_"), study.label("study_"), *cells).select_from(table)
    if table is not studies:
        is_of = table.c.study_id == studies.c.id
        statement = statement.select_from(table.outerjoin(studies, is_of))
    if which is not None:
        statement = statement.where(which)
    return statement.order_by(row)


def _damaged_cells(table: Table, row: Row[Any]) -> Iterator[DamagedRow]:
    cells = row._mapping
    for column in table.c:
        what = _problem(column, cells[column.name])
        if what is not None:
            yield _damaged(table, row, f"{column} holds {what}{_key(table, cells)}")


def _problem(column: Column[Any], cell: Any) -> str | None:
    """The fault of a cell, as a reader would say it; None if nothing is."""
    if cell is None:
        return None if column.nullable else NOTHING
    assert isinstance(column.type, Cell)
    try:
        column.type.read(cell)
    except Damaged as damage:
        return damage.what
    return None


def _damaged(table: Table, row: Row[Any], what: str) -> DamagedRow:
    cells = row._mapping
    name = cells["name"] if table is studies else row.study_
    number = cells["id" if table is studies else "study_id"]
    study = name if _problem(studies.c.name, name) is None else f"study {number!r}"
    trial = cells["number"] if table is trials else cells.get("trial")
    if not isinstance(trial, int | None):
        trial = ascii(trial)[:LONGEST_KEY]
    sql = str(row.row_) if isinstance(row.row_, int) else f"'{row.row_}'"
    return DamagedRow(study, trial, what, table, sql)


def _key(table: Table, cells: Any) -> str:
    named = (studies.c.id, trials.c.number)
    shown_keys = []
    for column in table.primary_key:
        if column.name not in ("study_id", "trial") and column not in named:
            cell = cells[column.name]
            shown = f"{cell:g}" if isinstance(cell, float) else ascii(cell)[:LONGEST_KEY]
            shown_keys.append(f"{column.name} {shown}")
    return f" ({', '.join(shown_keys)})" if shown_keys else ""


def _apart(row: Row[Any], directions: Sequence[str] | None) -> Iterator[DamagedRow]:
    if directions is not None:
        values = _read(trials.c.objective_values, row)
        miscounted = shapes.miscounted(values, directions)
        if miscounted is not None:
            yield _damaged(trials, row, f"trials.objective_values holds {miscounted}")
    params = _read(trials.c.params, row)
    unlike = shapes.unlike(params, _read(trials.c.distributions, row))
    if unlike is not None:
        yield _damaged(trials, row, f"trials.params holds {unlike}")


def _read(column: Column[Any], row: Row[Any]) -> Any:
    assert isinstance(column.type, Cell)
    cell = row._mapping[column.name]
    return None if cell is None else column.type.read(cell)
