"""What the program itself knows of studies and trials moves from their attributes into columns.

The JSON is moved as it is written, escapes of `hpsearch.store.codec` and all. An attribute whose
value its column does not take, and a row whose JSON is damaged, stay as they are:
`hpsearch db check` reports the damage.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "hpsearch_0003"
down_revision = "hpsearch_0002"

Json = sa.JSON(none_as_null=True)

Cells = dict[str, Any]
"""New values of columns by name; those of JSON columns still as values."""

OF_STUDIES = {
    "user_attrs": {
        "hpsearch:base": "base",
        "hpsearch:checkpoints": "checkpoints",
        "hpsearch:former_checkpoints": "former_checkpoints",
    },
    "system_attrs": {
        "hpsearch:step_scale": "step_scale",
        "hpsearch:enqueued": "enqueued",
        "hpsearch:memory": "memory",
        "hpsearch:race": "race",
    },
}
OF_TRIALS = {
    "user_attrs": {"hpsearch:findings": "findings"},
    "system_attrs": {
        "hpsearch:left": "left_as",
        "hpsearch:forgiven": "forgiven",
        "hpsearch:failed": "error_kind",
    },
}
"""By column of attributes, the column that each attribute moves to."""

SCALARS = {
    "base": str,
    "checkpoints": str,
    "step_scale": int | float,
    "left_as": str,
    "forgiven": int,
    "error_kind": str,
}
"""The types of what columns that hold no JSON take."""


def upgrade() -> None:
    op.add_column("studies", sa.Column("base", sa.Text()))
    op.add_column("studies", sa.Column("checkpoints", sa.Text()))
    op.add_column("studies", _json("former_checkpoints", "[]"))
    op.add_column(
        "studies", sa.Column("step_scale", sa.Double(), server_default="1", nullable=False)
    )
    op.add_column("studies", _json("enqueued", "[]"))
    op.add_column("studies", _json("memory", "{}"))
    op.add_column("studies", sa.Column("race", Json))
    op.add_column("trials", _json("findings", "[]"))
    op.add_column("trials", sa.Column("left_as", sa.Text()))
    op.add_column("trials", sa.Column("forgiven", sa.Integer(), server_default="0", nullable=False))
    _move("studies", ("id",), OF_STUDIES)
    _move("trials", ("study_id", "number"), OF_TRIALS)


def _json(name: str, default: str) -> sa.Column[Any]:
    return sa.Column(name, Json, server_default=default, nullable=False)


def _move(table: str, key: tuple[str, ...], moves: dict[str, dict[str, str]]) -> None:
    """Move attributes of every row of a table into its columns."""
    connection = op.get_bind()
    for row in list(_with_our_attributes(connection, table, key)):
        cells: Cells = {}
        for column, columns_of in moves.items():
            cells |= _moved(column, row[column], columns_of)
        if cells:
            row_key = {name: row[name] for name in key}
            _update(connection, table, row_key, cells)


def _with_our_attributes(
    connection: sa.Connection, table: str, key: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """The key and attributes, as they are written, of the rows that have attributes of this
    program."""
    kind = "BLOB" if connection.dialect.name == "sqlite" else "TEXT"
    user, system = (f"CAST({name} AS {kind})" for name in ("user_attrs", "system_attrs"))
    ours = "LIKE '%\"hpsearch:%'"
    columns = f"{', '.join(key)}, {user} AS user_attrs, {system} AS system_attrs"
    statement = (
        f"SELECT {columns} FROM {table}"  # noqa: S608 - our names
        f" WHERE CAST(user_attrs AS TEXT) {ours} OR CAST(system_attrs AS TEXT) {ours}"
    )
    for row in connection.execute(sa.text(statement.replace(":%", "\\:%"))):
        yield dict(row._mapping)


def _moved(column: str, written: str | bytes, columns_of: dict[str, str]) -> Cells:
    """What becomes of a cell of attributes: the cells that they move to, and what stays; nothing if
    it is damaged."""
    try:
        attributes = json.loads(written)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(attributes, dict):
        return {}
    cells: Cells = {}
    for attribute, to in columns_of.items():
        if attribute in attributes and _takes(to, attributes[attribute]):
            cells[to] = attributes.pop(attribute)
    if cells:
        cells[column] = attributes
    return cells


def _takes(column: str, value: Any) -> bool:
    if column not in SCALARS:
        return value is not None
    return isinstance(value, SCALARS[column]) and not isinstance(value, bool)


def _update(connection: sa.Connection, table: str, key: Cells, cells: Cells) -> None:
    as_json = "CAST(:{0} AS JSON)" if connection.dialect.name == "postgresql" else ":{0}"
    settings = []
    values = {}
    for name, value in cells.items():
        if name in SCALARS:
            values[name] = value
            placeholder = f":{name}"
        else:
            values[name] = _written(value)
            placeholder = as_json.format(name)
        settings.append(f"{name} = {placeholder}")
    which = " AND ".join(f"{name} = :{name}" for name in key)
    statement = f"UPDATE {table} SET {', '.join(settings)} WHERE {which}"  # noqa: S608 - our names
    connection.execute(sa.text(statement), {**values, **key})


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
