"""Reading data files, with errors for the person who wrote the path: CSV, TSV, Parquet, JSON
lines. `where` is the study file's key of the file."""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow

from trials.contract import Problem, TaskError
from trials.data import files
from trials.settings import some
from trials.tasks.datasets.labels import LONGEST, listed

"""Columns that a problem lists."""
SEPARATED = (".csv", ".tsv")  # suffixes of files whose separator is found
LARGEST = float(np.finfo(np.float32).max)
"""The largest number, by its absolute value, that a model can read."""


def read(path: Path, where: str) -> pd.DataFrame:
    """Read a data file by its suffix. The names of its columns are texts. Raises TaskError if there
    is no such file, or it is not what its suffix says."""
    suffix = path.suffix.lower()
    reader = READERS.get(suffix)
    if reader is None:
        known = ", ".join(READERS)
        raise TaskError.at(where, f"{path} has an unknown format; use a file that ends in {known}")
    demand_plain(path, where)
    try:
        table = reader(path)
    except pd.errors.EmptyDataError:
        raise TaskError.at(where, f"{path} is empty; name a file with data") from None
    except UnicodeDecodeError as error:
        raise TaskError.at(where, files.not_utf_8(path, error)) from None
    except (ValueError, OSError, pyarrow.ArrowException) as error:
        why = " ".join(str(error).split())
        kind = suffix.lstrip(".").upper()
        raise TaskError.at(where, f"{path} cannot be read as {kind}: {why}; fix the file") from None
    table.columns = table.columns.map(str)
    return table


def with_columns(wanted: Mapping[str, Iterable[str]], path: Path, where: str) -> pd.DataFrame:
    """Read a data file that must have rows, and some columns. `wanted` are the columns, by their
    study file's keys. Raises TaskError if the file cannot be read, lacks a column, or has no
    rows."""
    table = read(path, where)
    if missing := missing_columns(table, wanted, path):
        raise TaskError(missing)
    if len(table) == 0:
        raise TaskError.at(where, f"{path} has no rows; name a file with data")
    return table


def missing_columns(
    table: pd.DataFrame, wanted: Mapping[str, Iterable[str]], path: Path
) -> list[Problem]:
    """The problem of each column that a file does not have; `wanted` is as for `with_columns`."""
    shown = [_shown(name) for name in table.columns]
    named = some(shown)
    problems = []
    for where, columns in wanted.items():
        for column in columns:
            if column not in table.columns:
                what = f"{path} has no column {column!r}, it has {named}"
                hint = _near(column, shown)
                if len(shown) == 1 and path.suffix.lower() in SEPARATED:
                    hint = "name one of them, or separate them by commas, semicolons, tabs or bars"
                problems.append(Problem(where, f"{what}; {hint}"))
    return problems


def _near(name: str, others: Iterable[str], hint: str = "name one of them") -> str:
    close = difflib.get_close_matches(name, list(others), n=1)
    return f"did you mean {close[0]}?" if close else hint


def gaps_in(
    columns: Mapping[str, list[str | None]], fields: Mapping[str, str], path: Path
) -> list[Problem]:
    """The problem of each column that has rows without a value. `columns`: the texts of each
    column, by field."""
    problems = []
    for field, values in columns.items():
        rows = [row for row, value in enumerate(values, start=1) if value is None]
        if rows:
            what = missing_values(rows, fields[field], path)
            problems.append(Problem(f"task.{field}", what))
    return problems


def missing_values(rows: list[int], column: str, path: Path) -> str:
    """An error's text about rows, counted from 1, without a value."""
    return _rows_of(path, f"without {column!r}", list(map(str, rows)), "fill or remove them")


def unfit_values(unfit: Mapping[int, str], column: str, wanted: str, path: Path) -> str:
    """An error's text about rows, counted from 1, with unfit values."""
    shown = [f"{row} ({_shown(value)!r})" for row, value in unfit.items()]
    return _rows_of(path, f"where {column!r} is not {wanted}", shown, "correct or remove them")


def _rows_of(path: Path, what: str, rows: list[str], hint: str) -> str:
    many = "s" if len(rows) != 1 else ""
    found = f"{len(rows)} row{many} of {path} {what}: row{many} {listed(rows)}"
    return f"{found} (the first after the header is row 1); {hint}"


def _shown(name: str) -> str:
    printable = "".join(letter if letter.isprintable() else "?" for letter in name)
    return printable if len(printable) <= LONGEST else f"{printable[:LONGEST]}…"


def texts_in(table: pd.DataFrame, column: str) -> list[str | None]:
    """A column of any type as texts; None for no value, white space, a list or an object."""
    return [_as_text(value) for value in table[column].tolist()]


def _as_text(value: Any) -> str | None:
    if isinstance(value, str):
        return value if value.strip() else None
    if value is None or isinstance(value, list | dict | np.ndarray) or pd.isna(value):
        return None
    # A column of whole numbers with gaps is read as floats: 3.0 stands for 3.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip() or None


def demand_plain(path: Path, where: str) -> None:
    """Raise a TaskError if there is no plain file."""
    try:
        files.refuse_odd(path)
    except FileNotFoundError:
        others = [file.name for file in path.parent.glob("*")]
        hint = _near(path.name, others, "paths are relative to the study file")
        raise TaskError.at(where, f"no such file: {path}; {hint}") from None
    except ValueError as error:
        raise TaskError.at(where, f"{path} {error}") from None
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}; check the path and its permissions"
        raise TaskError.at(where, what) from None


def lines_of(path: Path, where: str) -> list[str]:
    """The lines of a text file, which end at a line feed or a carriage return with one. Raises
    TaskError if there is no such file, or it is not UTF-8 text."""
    demand_plain(path, where)
    try:
        return _lines(path)
    except UnicodeDecodeError as error:
        raise TaskError.at(where, files.not_utf_8(path, error)) from None


def _lines(path: Path) -> list[str]:
    # For `str.splitlines`, marks inside a text such as U+2028 end a line too.
    with path.open(encoding=files.encoding_of(path), newline="\n") as file:
        return [line.removesuffix("\n").removesuffix("\r") for line in file]


def _read_separated(path: Path, usual: str) -> pd.DataFrame:
    options: dict[str, Any] = {"dtype": str, **files.table_format(path, usual)}
    # With a header, pandas would rename the second of two columns of one name.
    names = pd.read_csv(path, header=None, nrows=1, **options).iloc[0].dropna()
    repeated = names[names.duplicated()]
    if repeated.size:
        raise ValueError(f"its header names the column {_shown(repeated.iloc[0])!r} twice")
    # Only an empty field is missing: "NA" and "null" are texts that people write.
    table: pd.DataFrame = pd.read_csv(path, keep_default_na=False, na_values=[""], **options)
    # Where all rows have more fields than the header, pandas takes the first for names of rows.
    if not isinstance(table.index, pd.RangeIndex):
        named = len(table.columns)
        raise ValueError(f"its rows have more fields than the {named} that its header names")
    return table


def _read_json_lines(path: Path) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"line {number}: {error}") from None
        if not isinstance(row, dict):
            raise ValueError(f"line {number}: is not an object")
        rows.append(row)
    if not rows:
        raise pd.errors.EmptyDataError
    return pd.DataFrame(rows)


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": partial(_read_separated, usual=","),
    ".tsv": partial(_read_separated, usual="\t"),
    ".parquet": pd.read_parquet,
    ".jsonl": _read_json_lines,
}
"""The readers of files, by suffix."""
