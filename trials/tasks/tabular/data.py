"""The data of a tabular task: files are read, checked, split and encoded."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from trials.contract import Problem, TaskError
from trials.descriptions.tabular import CLASSIFICATION, REGRESSION
from trials.settings import Settings
from trials.tasks import labels, splitting, tables
from trials.tasks.tabular.columns import columns, numbers_in, objective, settled
from trials.tasks.tabular.encoding import TabularEncoding, TabularRows, encode, learn
from trials.tasks.tabular.spec import TabularSpec


@dataclass(frozen=True)
class TabularData:
    """Prepared data.

    Args:
        train: The training rows.
        validation: The validation rows.
        encoding: How they were made.
        fingerprint: SHA-256 of the arrays.
    """

    train: TabularRows
    validation: TabularRows
    encoding: TabularEncoding
    fingerprint: str

    @property
    def objective(self) -> str:
        """What the target asks for."""
        return REGRESSION if self.encoding.classes is None else CLASSIFICATION


TYPES: tuple[type, ...] = (TabularData, TabularRows, TabularEncoding)


def prepare(spec: TabularSpec, settings: Settings) -> TabularData:
    """Read, check, split and encode.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = _read(spec)
    if problems or train is None or validation is None:
        raise TaskError(problems)
    spec = settled(spec, _rows_that_decide(spec, train, validation))
    encoding = learn(spec, train)
    learnt, held_out = encode(spec, encoding, train), encode(spec, encoding, validation)
    return TabularData(learnt, held_out, encoding, _fingerprint(learnt, held_out))


def _fingerprint(*parts: TabularRows) -> str:
    digest = hashlib.sha256()
    for rows in parts:
        for array in (rows.numeric, rows.categorical, rows.target):
            shape = str(array.shape)
            digest.update(shape.encode())
            digest.update(array.tobytes())
    return digest.hexdigest()


def problems_with(spec: TabularSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems
    too."""
    train, validation, problems = _read(spec)
    if spec.test is None:
        return problems
    test, more = _table(spec, spec.test, "task.test")
    problems = problems + more
    if train is not None and test is not None:
        decided = settled(spec, _rows_that_decide(spec, train, validation))
        problems += _misfits(decided, train, _File(test, spec.test, "task.test"))
    return problems


def on_test(spec: TabularSpec, data: TabularData, settings: Settings) -> TabularData:
    """The data with the rows of the test file, which has no problems, in place of the validation
    rows."""
    assert spec.test is not None
    test, _ = _table(spec, spec.test, "task.test")
    assert test is not None
    return replace(data, validation=encode(spec, data.encoding, test))


# ------------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class _File:
    """A table, and where it comes from: its path, and the key of the study file that names it."""

    table: pd.DataFrame
    path: Path
    where: str


def _read(spec: TabularSpec) -> tuple[pd.DataFrame | None, pd.DataFrame | None, list[Problem]]:
    """The training and validation tables, as far as they can be read, and what is wrong with
    them."""
    train, problems = _table(spec, spec.train, "task.train")
    if train is not None:
        problems += _unfit_for_training(spec, train, readable=not problems)
    chosen = spec.validation
    if isinstance(chosen, Path):
        validation, more = _table(spec, chosen, "task.validation")
        problems += more
        if train is not None and validation is not None and not problems:
            other = _File(validation, chosen, "task.validation")
            problems += _misfits(spec, train, other)
        return train, validation, problems
    if train is None or problems:
        return train, None, problems
    held_out = _held_out(spec, train, chosen)
    problems = splitting.too_small(chosen, held_out)
    return train[~held_out], train[held_out], problems


def _unfit_for_training(
    spec: TabularSpec, train: pd.DataFrame, *, readable: bool
) -> Iterator[Problem]:
    """What a table lacks to be learnt from.

    Args:
        spec: The task.
        train: The table.
        readable: Whether nothing is wrong with its values.
    """
    problems = []
    if objective(spec, train) == CLASSIFICATION:
        problems = labels.problems_with(tables.texts_in(train, spec.target), "task.target")
        yield from problems
    if readable and not problems and not any(columns(spec, train)):
        what = f"{spec.train} has no column to predict from; add some"
        yield Problem("task.train", what)


def _rows_that_decide(
    spec: TabularSpec, train: pd.DataFrame, validation: pd.DataFrame | None
) -> pd.DataFrame:
    """The rows that decide which columns are numbers. TabularRows that were split off for
    validation are among them: a word in one of them would otherwise be taken for a missing
    number."""
    if validation is None or isinstance(spec.validation, Path):
        return train
    return pd.concat([train, validation])


def _held_out(spec: TabularSpec, train: pd.DataFrame, fraction: float) -> splitting.Taken:
    if objective(spec, train) == REGRESSION:
        return splitting.shuffled(len(train), fraction, spec.split_seed)
    names = [str(label) for label in tables.texts_in(train, spec.target)]
    return splitting.stratified(names, fraction, spec.split_seed)


def _table(spec: TabularSpec, path: Path, where: str) -> tuple[pd.DataFrame | None, list[Problem]]:
    """A file's table, or None if it has none to give; and its problems."""
    try:
        table = tables.read(path, where)
    except TaskError as error:
        return None, error.problems
    table.columns = table.columns.map(str)
    named = {
        "task.target": (spec.target,),
        "task.numeric": spec.numeric or (),
        "task.categorical": spec.categorical or (),
    }
    if missing := tables.missing_columns(table, named, path):
        return None, missing
    if len(table) == 0:
        return None, [Problem(where, f"{path} has no rows; name a file with data")]
    return table, [*_words_for_numbers(spec, table, path), *_gaps(spec, table, path)]


def _words_for_numbers(spec: TabularSpec, table: pd.DataFrame, path: Path) -> Iterator[Problem]:
    """The problems of the stated columns of numbers, and of a target that is a quantity."""
    for column in spec.numeric or ():
        yield from _words_in(_File(table, path, "task.numeric"), column)
    if spec.objective == REGRESSION:
        yield from _words_in(_File(table, path, "task.target"), spec.target)


def _words_in(file: _File, column: str) -> Iterator[Problem]:
    """The problem of a column of numbers that has something else."""
    _, words = numbers_in(file.table, column)
    if not words:
        return
    row = words[0]
    value = tables.texts_in(file.table, column)[row]
    first = f"the first of them row {row + 1}: {value!r}"
    what = f"column {column!r} of {file.path} is not a number in {len(words)} rows, {first}"
    yield Problem(file.where, f"{what}; correct them, or treat it as classes")


def _gaps(spec: TabularSpec, table: pd.DataFrame, path: Path) -> Iterator[Problem]:
    """The problem of rows without a target. It is not looked for where a quantity holds words."""
    target = spec.target
    values = tables.texts_in(table, target)
    missing = np.array([value is None for value in values])
    if spec.objective == REGRESSION:
        numbers, words = numbers_in(table, target)
        if words:
            return
        missing |= np.isnan(numbers)
    rows: list[int] = (np.flatnonzero(missing) + 1).tolist()
    if rows:
        yield Problem("task.target", tables.missing_values(rows, target, path))


def _misfits(spec: TabularSpec, train: pd.DataFrame, other: _File) -> list[Problem]:
    """What another file lacks or has that the training file does not agree with."""
    numeric, categorical = columns(spec, train)
    wanted = {other.where: [*numeric, *categorical]}
    problems = tables.missing_columns(other.table, wanted, other.path)
    if objective(spec, train) == CLASSIFICATION:
        known = tables.texts_in(train, spec.target)
        found = tables.texts_in(other.table, spec.target)
        problems += labels.unseen(known, found, other.where)
    else:
        numeric = [*numeric, spec.target]
    for column in numeric:
        if column in other.table.columns:
            problems += _words_in(other, column)
    return problems
