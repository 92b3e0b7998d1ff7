"""A study's trials, reports or attempts as a CSV or Parquet file."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from hpsearch.words.numbers import cell

SUFFIXES = (".csv", ".parquet")


def write(frame: pd.DataFrame, to: Path, suffix: str) -> None:
    """Write a frame into a file whose name will end with this suffix, one of `SUFFIXES`."""
    if suffix == ".csv":
        frame.to_csv(to, index=False)
        return
    frame = frame.copy(deep=False)
    for name in frame.columns:
        column = frame[name]
        # Parquet has one type per column: mixed ones become texts.
        if column.dtype == object and len({_type(value) for value in column.dropna()}) > 1:
            frame[name] = [None if value is None else cell(value) for value in column]
    frame.to_parquet(to, index=False)


def _type(value: object) -> type:
    """The type of a value; whole numbers count as numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float
    return type(value)
