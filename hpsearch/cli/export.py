"""`hpsearch export`: a study's trials, reports or attempts as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import What, note
from hpsearch.errors import UserError
from hpsearch.store.frames import attempts_frame, reports_frame, trials_frame
from hpsearch.views.numbers import cell, count

if TYPE_CHECKING:
    import pandas as pd


_FRAMES = {What.TRIALS: trials_frame, What.REPORTS: reports_frame, What.ATTEMPTS: attempts_frame}


def export(name: str | None, to: Path, what: What, storage: str, *, force: bool) -> None:
    """Write a CSV or Parquet file, whole or not at all.

    Raises:
        UserError: The file's name has another ending, it is there already, or it cannot be written.
    """
    if to.suffix not in (".csv", ".parquet"):
        raise UserError(f"{to}: exports are .csv or .parquet files", f"such as: --to {to.stem or 'trials'}.csv")
    try:
        there = to.exists()
    except OSError as error:
        raise UserError(f"{to} cannot be written: {error.strerror}", "choose another name") from None
    if there and not force:
        raise UserError(f"{to} is there already", "choose another name, or replace it with --force")
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        frame = _FRAMES[what](connection, study)
    unfinished = to.with_name(f".{to.name}.unfinished")
    try:
        if to.suffix == ".csv":
            frame.to_csv(unfinished, index=False)
        else:
            _with_one_type_a_column(frame).to_parquet(unfinished, index=False)
        unfinished.replace(to)
    except OSError as error:
        hint = "check the folder and its permissions"
        raise UserError(f"{to} cannot be written: {error.strerror or error}", hint) from error
    finally:
        unfinished.unlink(missing_ok=True)
    note(f"wrote {count(len(frame), what.removesuffix('s'))} of {study.name} to {to}")


def _with_one_type_a_column(frame: pd.DataFrame) -> pd.DataFrame:
    """Parquet has one type a column: a parameter that is a number here and a text there is written as text."""
    frame = frame.copy(deep=False)
    for name in frame.columns:
        if frame[name].dtype != object:
            continue
        kinds = {float if isinstance(v, int) and not isinstance(v, bool) else type(v) for v in frame[name].dropna()}
        if len(kinds) > 1:
            frame[name] = [None if v is None else cell(v) for v in frame[name]]
    return frame
