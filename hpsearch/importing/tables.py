"""Rows of CSV and Parquet files, each with its place."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpsearch.errors import UserError
from trials.data import files
from trials.settings import nearest

SUFFIXES = (".csv", ".tsv", ".parquet")
LONGEST_CELL = 10_000_000
"""Characters: an export may hold whole texts beside the numbers."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a table."""

    place: str
    """The file, and the row's line in it (of a Parquet file, its number from 1)."""
    cells: dict[str, Any]
    """By column; empty texts and missing values are None."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it was read."""

    path: Path
    columns: list[str]
    rows: list[Row]

    def require(self, columns: Iterable[str]) -> None:
        """Make sure that there are such columns.

        Raises:
            UserError: One is missing; names the nearest.
        """
        missing = [name for name in dict.fromkeys(columns) if name not in self.columns]
        if missing:
            told = "; ".join(f"{name}: {nearest(name, self.columns)}" for name in missing)
            raise UserError(f"{self.path} lacks columns that are asked for: {told}")


def read(path: Path) -> Table:
    """Read a table.

    Raises:
        UserError: It cannot be read, or is not a table; says where.
    """
    try:
        files.refuse_odd(path)
        if path.suffix.lower() == ".parquet":
            table = _parquet(path)
        else:
            files.refuse_binary(path)
            table = _separated(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file", "check the path") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = path.read_bytes().count(b"\n", 0, error.start) + 1
        what = f"{path}:{line} is not UTF-8 text ({error.reason})"
        raise UserError(what, "save the file as UTF-8") from None
    except ValueError as error:
        raise UserError(f"{path} {error}") from None
    if not table.rows:
        raise UserError(f"{path} has no rows", "a header and a row for each run are needed")
    return table


def _separated(path: Path) -> Table:
    text = path.read_bytes().decode("utf-8-sig")
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    limit = csv.field_size_limit(LONGEST_CELL)  # of this whole process
    try:
        return _with_header(path, reader)
    except csv.Error as error:
        raise UserError(f"{path}:{reader.line_num} is not CSV: {error}") from None
    finally:
        csv.field_size_limit(limit)


def _with_header(path: Path, reader: Any) -> Table:
    lines: Iterator[list[str]] = iter(reader)
    columns = next(lines, None)
    if not columns:
        raise UserError(f"{path} is empty", "a header and a row for each run are needed")
    twice = [name for name in columns if columns.count(name) > 1]
    if twice:
        raise UserError(f"{path}:1 has two columns named {twice[0]!r}", "rename one")
    rows = []
    begins = reader.line_num + 1
    for found in lines:
        place = f"{path.name}:{begins}"
        begins = reader.line_num + 1
        if not found:
            continue
        if len(found) != len(columns):
            what = f"{place} has {len(found)} cells, and the header has {len(columns)}"
            raise UserError(what, "is the file whole? Is a comma missing quotes?")
        cells = {name: cell or None for name, cell in zip(columns, found, strict=True)}
        rows.append(Row(place, cells))
    return Table(path, columns, rows)


def _parquet(path: Path) -> Table:
    # Imported here: it takes a while, and most tables are CSV.
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise ValueError(f"is not a Parquet file that can be read: {error}") from None
    rows = []
    for number, found in enumerate(table.to_pylist(), start=1):
        cells = {name: None if _is_missing(cell) else cell for name, cell in found.items()}
        rows.append(Row(f"{path.name} row {number}", cells))
    return Table(path, table.column_names, rows)


def _is_missing(cell: Any) -> bool:
    """Whether pandas wrote a cell as missing: it does not tell that from not a number."""
    return cell is None or cell == "" or (isinstance(cell, float) and math.isnan(cell))
