"""Reading data files, with errors for the person who wrote the path: CSV, TSV, Parquet, JSON lines."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow

from trials import files
from trials.contract import Problem, TaskError
from trials.settings import nearest
from trials.tasks.labels import FIRST

MOST_NAMED = 20
"""Columns that a problem lists."""
LONGEST_SHOWN = 60
"""Characters of a column's name in a problem."""


def read(path: Path, where: str) -> pd.DataFrame:
    """Read a data file by its suffix.

    Args:
        path: The file.
        where: The study file's key that names it.

    Raises:
        TaskError: There is no such file, or it is not what its suffix says.
    """
    reader = READERS.get(path.suffix.lower())
    if reader is None:
        what = f"{path} is of an unknown format; use a file that ends in {', '.join(READERS)}"
        raise TaskError([Problem(where, what)])
    demand_plain(path, where, text=reader is not READERS[".parquet"])
    try:
        return reader(path)
    except pd.errors.EmptyDataError:
        raise TaskError([Problem(where, f"{path} is empty; name a file with data")]) from None
    except UnicodeDecodeError as error:
        what = f"{path} is not UTF-8 text (byte {error.object[error.start]:#04x}); save it as UTF-8"
        raise TaskError([Problem(where, what)]) from None
    except (ValueError, OSError, pyarrow.ArrowException) as error:
        why = " ".join(str(error).split())
        what = f"{path} cannot be read as {path.suffix.lstrip('.').upper()}: {why}; mend the file"
        raise TaskError([Problem(where, what)]) from None


def demand_plain(path: Path, where: str, *, text: bool) -> None:
    """See that there is a plain file, and no binary one where it is to be text.

    Args:
        path: The file.
        where: The study file's key that names it.
        text: Whether it is to be text.

    Raises:
        TaskError: There is none, or it is something else.
    """
    try:
        files.refuse_odd(path)
        if text:
            files.refuse_binary(path)
    except FileNotFoundError:
        raise TaskError([Problem(where, f"no such file: {path}; {_neighbour_of(path)}")]) from None
    except ValueError as error:
        raise TaskError([Problem(where, f"{path} {error}")]) from None
    except OSError as error:
        what = f"{path} cannot be read: {error.strerror}; check the path and its permissions"
        raise TaskError([Problem(where, what)]) from None


def missing_column(table: pd.DataFrame, column: str, where: str, path: Path) -> Problem | None:
    """The problem of a file without `column`; None where it has it."""
    columns = [str(name) for name in table.columns]
    if column in columns:
        return None
    shown = [_shown(name) for name in columns]
    close = difflib.get_close_matches(column, shown, n=1)
    hint = nearest(column, shown) if close else "name one of them"
    named = ", ".join(shown[:MOST_NAMED]) + (f" and {len(shown) - MOST_NAMED} more" if len(shown) > MOST_NAMED else "")
    return Problem(where, f"{path} has no column {column!r}, it has {named}; {hint}")


def _shown(name: str) -> str:
    """A column's name for people: no control characters, and not for ever."""
    printable = "".join(c if c.isprintable() else "?" for c in name)
    return printable if len(printable) <= LONGEST_SHOWN else f"{printable[:LONGEST_SHOWN]}…"


def lines_of(path: Path, where: str) -> list[str]:
    """The lines of a text file.

    Raises:
        TaskError: There is no such file, or it is not UTF-8 text.
    """
    demand_plain(path, where, text=True)
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        what = f"{path} is not UTF-8 text (byte {error.object[error.start]:#04x}); save it as UTF-8"
        raise TaskError([Problem(where, what)]) from None
    except OSError as error:
        raise TaskError([Problem(where, f"{path} cannot be read: {error.strerror}; mend the file")]) from None


def missing_values(rows: list[int], column: str, path: Path) -> str:
    """What is wrong with a file whose `rows` (counted from 1) have no value in `column`."""
    named = ", ".join(map(str, rows[:FIRST])) + (", ..." if len(rows) > FIRST else "")
    many = "s" if len(rows) != 1 else ""
    return (
        f"{len(rows)} row{many} of {path} without {column!r}: row{many} {named} "
        f"(the first after the header is row 1); fill or remove them"
    )


def texts_in(table: pd.DataFrame, column: str) -> list[str | None]:
    """A column as texts, whatever its type: None where it has no value, only white space, or a list or object."""
    return [_as_text(value) for value in table[column].tolist()]


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, list | dict) or (not isinstance(value, str) and pd.isna(value)):
        return None
    # A column of whole numbers with gaps is read as floats: 3.0 was written as 3.
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return text if text.strip() else None


def _neighbour_of(path: Path) -> str:
    if not path.parent.is_dir():
        return "its folder does not exist either; paths are relative to the study file"
    names = [file.name for file in path.parent.iterdir() if file.name != path.name]
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"did you mean {close[0]}?" if close else "paths are relative to the study file"


def _read_csv(path: Path) -> pd.DataFrame:
    return _read_separated(path, ",")


def _read_tsv(path: Path) -> pd.DataFrame:
    return _read_separated(path, "\t")


def _read_separated(path: Path, separator: str) -> pd.DataFrame:
    refuse_repeated_names(path, separator)
    # Only an empty field is missing: "NA" and "null" are texts that people write.
    table = pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False, na_values=[""], encoding="utf-8-sig")
    refuse_shifted(table)
    return table


def refuse_shifted(table: pd.DataFrame) -> None:
    """See that the columns read are those that the header names.

    Raises:
        ValueError: All rows have more fields; pandas takes the first ones for names of the rows.
    """
    if not isinstance(table.index, pd.RangeIndex):
        raise ValueError(f"its rows have more fields than the {len(table.columns)} that its header names")


def refuse_repeated_names(path: Path, separator: str = ",") -> None:
    """See that no two columns have the same name: pandas would give the second one another.

    Raises:
        ValueError: Two have.
    """
    names = pd.read_csv(path, sep=separator, dtype=str, header=None, nrows=1, encoding="utf-8-sig").iloc[0].dropna()
    if (repeated := names[names.duplicated()]).size:
        raise ValueError(f"its header names the column {_shown(repeated.iloc[0])!r} twice")


def _read_json_lines(path: Path) -> pd.DataFrame:
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        except RecursionError:
            raise ValueError(f"line {number}: is nested too deeply") from None
        if not isinstance(row, dict):
            raise ValueError(f"line {number}: is no object")
        rows.append(row)
    if not rows:
        raise pd.errors.EmptyDataError
    return pd.DataFrame(rows)


READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": _read_csv,
    ".tsv": _read_tsv,
    ".parquet": pd.read_parquet,
    ".jsonl": _read_json_lines,
}
"""How to read a file, by its suffix."""
