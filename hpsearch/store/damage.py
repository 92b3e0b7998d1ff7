"""Damaged cells: values that this program never writes, found by reading each cell by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, select, type_coerce
from sqlalchemy.types import NULLTYPE

from hpsearch.errors import Damaged
from hpsearch.store.schema import cell_of, metadata, studies


@dataclass(frozen=True, slots=True)
class Violation:
    """Something in the database that must not be."""

    study: str
    trial: int | None
    what: str

    def __str__(self) -> str:
        if self.trial is None:
            return f"{self.study}: {self.what}"
        return f"{self.study}, trial {self.trial}: {self.what}"


def damaged_cells(connection: Connection, study_id: int | None = None) -> Iterator[Violation]:
    """All cells of one study, or of all studies, that cannot be read, by table."""
    for table in metadata.sorted_tables:
        for row in connection.execute(_cells(table, study_id)):
            yield from _damage_in(table, row)


def _cells(table: Table, study_id: int | None) -> Select[Any]:
    """Each row, as it is stored, after the name of its study."""
    cells: list[ColumnElement[Any]] = [type_coerce(studies.c.name, NULLTYPE).label("study_")]
    for column in table.c:
        cells.append(type_coerce(column, NULLTYPE).label(column.name))
    statement = select(*cells)
    if table is not studies:
        statement = statement.join_from(table, studies, table.c.study_id == studies.c.id)
    if study_id is not None:
        statement = statement.where(studies.c.id == study_id)
    return statement.order_by(*table.primary_key)


def _damage_in(table: Table, row: Row[Any]) -> Iterator[Violation]:
    cells = row._mapping
    trial = cells["number"] if table.name == "trials" else cells.get("trial")
    for column in table.c:
        cell = cells[column.name]
        if cell is None:
            continue
        try:
            cell_of(column).read(cell)
        except Damaged as damage:
            yield Violation(str(row.study_), trial, damage.what)
