"""`hpsearch export`: a study's trials, reports or attempts as a file, or a copy of the study for
Optuna."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from hpsearch.cli.opening import chosen_study, viewing
from hpsearch.cli.output import What, note
from hpsearch.cli.places import refuse_taken, whole_file
from hpsearch.errors import UserError
from hpsearch.store.connecting.url import display, parse_url
from hpsearch.store.reading.frames import attempts_frame, reports_frame, trials_frame
from hpsearch.store.store import Store
from hpsearch.views.numbers import cell, count

if TYPE_CHECKING:
    import pandas as pd

_FRAMES = {What.TRIALS: trials_frame, What.REPORTS: reports_frame, What.ATTEMPTS: attempts_frame}

NOTED_FROM = 1000
"""A copy for Optuna of so many trials takes long enough to say so."""


def one_place(to: Path | None, optuna: str | None, what: What) -> Path | str:
    """The one place that an export is written to: a file, or the URL of an Optuna storage.

    Raises:
        UserError: Neither is given, both are, or a copy for Optuna is to have a part only.
    """
    if to is None and optuna is None:
        message = "there is no place to export to"
        raise UserError(message, "add --to trials.csv, or --optuna sqlite:///optuna.db")
    if to is not None and optuna is not None:
        raise UserError("--to and --optuna exclude each other", "export twice")
    if optuna is not None and what is not What.TRIALS:
        message = "a copy for Optuna always has all of a study"
        raise UserError(message, "leave out --what, or name a file with --to")
    place = to or optuna
    assert place is not None
    return place


def export_for_optuna(name: str | None, to: str, storage: str, *, force: bool) -> None:
    """Write a copy of a study into a stock Optuna storage.

    Raises:
        UserError: The storage has a study of that name already, or cannot be one of Optuna's.
        StoreUnreachable: A database does not answer, or belongs to another program.
    """
    # Imported here: Optuna is slow to import, and files need none.
    from hpsearch.optuna_storage.exporting import export

    with viewing(storage) as connection:
        study = chosen_study(connection, name)
    with closing(Store.open(storage, create=False)) as store:
        history = store.load(study.name)
    trials = len(history.trials)
    if trials >= NOTED_FROM:
        note(f"writing {count(trials, 'trial')}, one transaction each; this may take minutes ...")
    export(history, to, replace=force)
    place = display(parse_url(to))
    note(f"wrote {count(trials, 'trial')} of {study.name} to {place}")


def export_study(name: str | None, to: Path, what: What, storage: str, *, force: bool) -> None:
    """Write a CSV or Parquet file, completely or not at all.

    Raises:
        UserError: The file's name has another ending, it already exists, or it cannot be written.
    """
    _refuse_place(to, force=force)
    with viewing(storage) as connection:
        study = chosen_study(connection, name)
        frame = _FRAMES[what](connection, study)
    _write(frame, to)
    note(f"wrote {count(len(frame), what.removesuffix('s'))} of {study.name} to {to}")


def _refuse_place(to: Path, *, force: bool) -> None:
    if to.suffix not in (".csv", ".parquet"):
        message = f"{to}: exports are .csv or .parquet files"
        raise UserError(message, f"for example: --to {to.stem or 'trials'}.csv")
    refuse_taken(to, force=force)


def _write(frame: pd.DataFrame, to: Path) -> None:
    with whole_file(to) as unfinished:
        if to.suffix == ".csv":
            frame.to_csv(unfinished, index=False)
        else:
            _with_one_type_per_column(frame).to_parquet(unfinished, index=False)


def _with_one_type_per_column(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with texts in columns of mixed types, because Parquet has one type per column."""
    frame = frame.copy(deep=False)
    for name in frame.columns:
        column = frame[name]
        if column.dtype != object:
            continue
        types = {_type(value) for value in column.dropna()}
        if len(types) > 1:
            frame[name] = [_text(value) for value in column]
    return frame


def _text(value: object) -> str | None:
    return None if value is None else cell(value)


def _type(value: object) -> type:
    """The type of a value; whole numbers count as numbers."""
    if isinstance(value, int) and not isinstance(value, bool):
        return float
    return type(value)
