"""Tables of a study as CSV and Parquet files."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from hpsearch.domain.numbers import cell
from hpsearch.store.reading.frames import StudyTable
from trials.settings import as_scalar


def write(table: StudyTable, to: Path, suffix: str) -> int:
    """Write a table, part by part, as .csv or .parquet (`suffix`). Returns the number of rows."""
    return _write_csv(table, to) if suffix == ".csv" else _write_parquet(table, to)


def _write_csv(table: StudyTable, to: Path) -> int:
    rows = 0
    with to.open("w", encoding="utf-8", newline="") as file:
        for part in table.frames():
            part.map(as_scalar).to_csv(file, index=False, header=rows == 0)
            rows += len(part)
    return rows


def _write_parquet(table: StudyTable, to: Path) -> int:
    from pyarrow.parquet import ParquetWriter

    schema, mixed = _schema_of(table)
    rows = 0
    with ParquetWriter(to, schema) as writer:
        for part in table.frames():
            for name in mixed:
                part[name] = [None if value is None else cell(value) for value in part[name]]
            writer.write_table(pa.Table.from_pandas(part, schema, preserve_index=False))
            rows += len(part)
    return rows


def _schema_of(table: StudyTable) -> tuple[pa.Schema, set[str]]:
    """The type of each column in all of the file, and the columns of mixed types, as texts."""
    types: defaultdict[str, set[type]] = defaultdict(set)
    mixed: set[str] = set()
    found = pa.schema([])
    for part in table.frames():
        for name in part.columns:
            types[name] |= {_type(value) for value in part[name].dropna()}
        mixed = {name for name, of in types.items() if len(of) > 1 or of & {list, dict}}
        clear = pa.Schema.from_pandas(part.drop(columns=list(mixed)), preserve_index=False)
        found = pa.unify_schemas([found, clear], promote_options="permissive")
    fields = []
    for name in types:
        fields.append(pa.field(name, pa.string()) if name in mixed else found.field(name))
    return pa.schema(fields), mixed


def _type(value: Any) -> type:
    if isinstance(value, int) and not isinstance(value, bool):
        return float
    return type(value)
