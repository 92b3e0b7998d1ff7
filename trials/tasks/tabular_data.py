"""The data of a tabular task: from a table to arrays of numbers, whose encoding is learnt from the training rows alone.

Numbers are standardised; a missing one becomes the mean, with a column beside it that tells so. Classes are numbered
from 1; 0 stands for a missing class and for one that no training row has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.contract import Problem, TaskError
from trials.tasks import labels, splitting, tables
from trials.tasks.tabular import CLASSIFICATION, REGRESSION, TabularSpec

Floats = npt.NDArray[np.float64]

MISSING_WORDS = frozenset({"na", "n/a", "nan", "null", "none", "?"})
"""Texts that stand for a missing number."""
LARGEST = float(np.finfo(np.float32).max)
"""What is above it, by its absolute value, is no number to a network."""
MOST_CLASSES = 20
"""A target of more different whole numbers than this is a quantity, not a class."""


@dataclass(frozen=True)
class Rows:
    """Encoded rows.

    Args:
        numeric: Standardised numbers and the indicators of missing ones, float32, shape (n, numbers).
        categorical: Numbers of classes, int32, shape (n, categorical columns).
        target: The class (int64), or the standardised quantity (float32), shape (n,).
    """

    numeric: npt.NDArray[np.float32]
    categorical: npt.NDArray[np.int32]
    target: npt.NDArray[np.int64 | np.float32]


@dataclass(frozen=True)
class Encoding:
    """How a table becomes arrays, as learnt from the training rows; also what a checkpoint says of its inputs.

    Args:
        numeric: The columns of numbers.
        means, deviations: Of each of them.
        flagged: Those with a column that tells missing values.
        categorical: The columns of classes, each with its classes in order; class i has number i + 1.
        classes: The names of the target's classes; None for a quantity.
        target_mean, target_deviation: Of a quantity; 0 and 1 for classes.
    """

    numeric: tuple[str, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    flagged: tuple[str, ...]
    categorical: dict[str, tuple[str, ...]]
    classes: tuple[str, ...] | None
    target_mean: float
    target_deviation: float


@dataclass(frozen=True)
class TabularData:
    """Prepared data.

    Args:
        train: The training rows.
        validation: The validation rows.
        encoding: How they were made.
        fingerprint: SHA-256 of the arrays.
    """

    train: Rows
    validation: Rows
    encoding: Encoding
    fingerprint: str

    @property
    def objective(self) -> str:
        """What the target asks for."""
        return REGRESSION if self.encoding.classes is None else CLASSIFICATION


def prepare(spec: TabularSpec) -> TabularData:
    """Read, check, split and encode.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = _read(spec)
    if problems or train is None or validation is None:
        raise TaskError(problems)
    encoding = _learn(spec, train)
    encoded = [_encode(spec, encoding, table) for table in (train, validation)]
    digest = hashlib.sha256()
    for rows in encoded:
        for array in (rows.numeric, rows.categorical, rows.target):
            digest.update(f"{array.shape}".encode() + array.tobytes())
    return TabularData(encoded[0], encoded[1], encoding, digest.hexdigest())


def problems_with(spec: TabularSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems too."""
    train, _, problems = _read(spec)
    if spec.test is not None:
        test, more = _table(spec, spec.test, "task.test")
        problems = problems + more
        if train is not None and test is not None:
            problems += _misfits(spec, train, test, spec.test, "task.test")
    return problems


def on_test(spec: TabularSpec, data: TabularData) -> TabularData:
    """The data with the rows of the test file, which has no problems, in place of the validation rows."""
    assert spec.test is not None
    test, _ = _table(spec, spec.test, "task.test")
    assert test is not None
    return replace(data, validation=_encode(spec, data.encoding, test))


# --------------------------------------------------------------------------------------------------- reading


def _read(spec: TabularSpec) -> tuple[pd.DataFrame | None, pd.DataFrame | None, list[Problem]]:
    """The training and validation tables, as far as they can be read, and what is wrong with them."""
    train, problems = _table(spec, spec.train, "task.train")
    if train is not None and _objective(spec, train) == CLASSIFICATION:
        problems += labels.problems_with(tables.texts_in(train, spec.target), "task.target")
    if train is not None and not problems and not any(_columns(spec, train)):
        problems.append(Problem("task.train", f"{spec.train} has no column to predict from; add some"))
    if isinstance(spec.validation, Path):
        validation, more = _table(spec, spec.validation, "task.validation")
        problems += more
        if train is not None and validation is not None and not problems:
            problems += _misfits(spec, train, validation, spec.validation, "task.validation")
        return train, validation, problems
    if train is None or problems:
        return train, None, problems
    held_out = _held_out(spec, train, spec.validation)
    problems = splitting.too_small(spec.validation, held_out)
    return train[~held_out], train[held_out], problems


def _held_out(spec: TabularSpec, train: pd.DataFrame, fraction: float) -> splitting.Rows:
    if _objective(spec, train) == REGRESSION:
        return splitting.shuffled(len(train), fraction, spec.split_seed)
    names = [str(label) for label in tables.texts_in(train, spec.target)]
    return splitting.stratified(names, fraction, spec.split_seed)


def _table(spec: TabularSpec, path: Path, where: str) -> tuple[pd.DataFrame | None, list[Problem]]:
    """A file's table, or None where it has none to give; and its problems."""
    try:
        table = tables.read(path, where)
    except TaskError as error:
        return None, error.problems
    table.columns = table.columns.map(str)
    named = [("numeric", c) for c in spec.numeric or ()] + [("categorical", c) for c in spec.categorical or ()]
    columns = [("target", spec.target), *named]
    if missing := [p for key, c in columns if (p := tables.missing_column(table, c, f"task.{key}", path))]:
        return None, missing
    if len(table) == 0:
        return None, [Problem(where, f"{path} has no rows; name a file with data")]
    quantity = spec.objective == REGRESSION
    words = [
        p for column in [*(spec.numeric or ()), *([spec.target] if quantity else [])]
        if (p := _words_in(table, column, "task.target" if column == spec.target else "task.numeric", path))
    ]  # fmt: skip
    empty = numbers_in(table, spec.target)[0] if quantity else None
    values = tables.texts_in(table, spec.target)
    gaps = [r for r, v in enumerate(values, start=1) if v is None or (empty is not None and np.isnan(empty[r - 1]))]
    if gaps and not any(problem.where == "task.target" for problem in words):
        words.append(Problem("task.target", tables.missing_values(gaps, spec.target, path)))
    return table, words


def _words_in(table: pd.DataFrame, column: str, where: str, path: Path) -> Problem | None:
    """The problem of a column of numbers that has something else."""
    _, words = numbers_in(table, column)
    if not words:
        return None
    row = words[0]
    value = tables.texts_in(table, column)[row]
    what = f"column {column!r} of {path} is no number in {len(words)} rows, the first of them row {row + 1}: {value!r}"
    return Problem(where, f"{what}; mend them, or treat it as classes")


def _misfits(spec: TabularSpec, train: pd.DataFrame, other: pd.DataFrame, path: Path, where: str) -> list[Problem]:
    """What another file lacks or has that the training file does not agree with."""
    numeric, categorical = _columns(spec, train)
    problems = [p for c in [*numeric, *categorical] if (p := tables.missing_column(other, c, where, path))]
    if _objective(spec, train) == CLASSIFICATION:
        known = tables.texts_in(train, spec.target)
        return problems + labels.unseen(known, tables.texts_in(other, spec.target), where)
    present = [column for column in [*numeric, spec.target] if column in other.columns]
    return problems + [p for column in present if (p := _words_in(other, column, where, path))]


# --------------------------------------------------------------------------------------------- what columns are


def numbers_in(table: pd.DataFrame, column: str) -> tuple[Floats, list[int]]:
    """A column as numbers, not-a-number where it has none; and the rows (from 0) that hold something else."""
    values = tables.texts_in(table, column)
    numbers = np.full(len(values), np.nan)
    words = []
    for row, text in enumerate(values):
        if text is None or text.strip().lower() in MISSING_WORDS:
            continue
        try:
            numbers[row] = float(text)
        except ValueError:
            words.append(row)
        else:
            if abs(numbers[row]) > LARGEST:
                words.append(row)
    return numbers, words


def _objective(spec: TabularSpec, train: pd.DataFrame) -> str:
    """Regression for numbers that are no whole ones, or many different whole ones."""
    if spec.objective is not None:
        return spec.objective
    numbers, words = numbers_in(train, spec.target)
    present = numbers[~np.isnan(numbers)]
    if words or len(present) == 0:
        return CLASSIFICATION
    whole = bool((present == np.round(present)).all())
    return CLASSIFICATION if whole and len(np.unique(present)) <= MOST_CLASSES else REGRESSION


def _columns(spec: TabularSpec, train: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns of numbers and those of classes; ones that have a single value say nothing and are left out.

    Where one list is given alone, the other has what is found of its kind among the rest; where both are, they are all.
    """
    numeric, categorical = list(spec.numeric or ()), list(spec.categorical or ())
    if spec.numeric is not None and spec.categorical is not None:
        return numeric, categorical
    for column in train.columns:
        if column == spec.target or column in numeric or column in categorical or _constant(train, column):
            continue
        is_number = not numbers_in(train, column)[1] and not pd.api.types.is_bool_dtype(train[column])
        if is_number and spec.numeric is None:
            numeric.append(column)
        elif not is_number and spec.categorical is None:
            categorical.append(column)
    return numeric, categorical


def _constant(table: pd.DataFrame, column: str) -> bool:
    return len(set(tables.texts_in(table, column))) < 2


# -------------------------------------------------------------------------------------------------- encoding


def _learn(spec: TabularSpec, train: pd.DataFrame) -> Encoding:
    numeric, categorical = _columns(spec, train)
    moments, flagged = [], []
    for column in numeric:
        numbers, _ = numbers_in(train, column)
        moments.append(_moments(numbers))
        if np.isnan(numbers).any():
            flagged.append(column)
    target = _moments(numbers_in(train, spec.target)[0])
    regression = _objective(spec, train) == REGRESSION
    return Encoding(
        numeric=tuple(numeric),
        means=tuple(mean for mean, _ in moments),
        deviations=tuple(deviation for _, deviation in moments),
        flagged=tuple(flagged),
        categorical={c: tuple(sorted({v for v in tables.texts_in(train, c) if v is not None})) for c in categorical},
        classes=None if regression else tuple(labels.class_names(tables.texts_in(train, spec.target))),
        target_mean=target[0] if regression else 0.0,
        target_deviation=target[1] if regression else 1.0,
    )


def _moments(numbers: Floats) -> tuple[float, float]:
    """Mean and deviation of the numbers there are; a deviation of 1 where they do not differ."""
    present = numbers[~np.isnan(numbers)]
    if len(present) == 0:
        return 0.0, 1.0
    return float(present.mean()), float(present.std()) or 1.0


def _encode(spec: TabularSpec, encoding: Encoding, table: pd.DataFrame) -> Rows:
    return Rows(*inputs(encoding, table), _target(spec, encoding, table))


def inputs(encoding: Encoding, table: pd.DataFrame) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """The numbers and the classes that a model reads of the rows of a table: `Rows.numeric` and `Rows.categorical`."""
    columns, flags = [], []
    for column, mean, deviation in zip(encoding.numeric, encoding.means, encoding.deviations, strict=True):
        numbers, _ = numbers_in(table, column)
        columns.append(np.nan_to_num((numbers - mean) / deviation, nan=0.0))
        if column in encoding.flagged:
            flags.append(np.isnan(numbers).astype(np.float64))
    classes = [_numbered(tables.texts_in(table, column), names, 1) for column, names in encoding.categorical.items()]
    numeric = _side_by_side([*columns, *flags], len(table)).astype(np.float32)
    return numeric, _side_by_side(classes, len(table)).astype(np.int32)


def _target(spec: TabularSpec, encoding: Encoding, table: pd.DataFrame) -> npt.NDArray[np.int64 | np.float32]:
    if encoding.classes is not None:
        return _numbered(tables.texts_in(table, spec.target), encoding.classes, 0)
    numbers, _ = numbers_in(table, spec.target)
    return ((numbers - encoding.target_mean) / encoding.target_deviation).astype(np.float32)


def _numbered(values: Sequence[str | None], names: Sequence[str], first: int) -> npt.NDArray[np.int64]:
    """The number of each value's name, from `first`; 0 for one without a number."""
    numbers = {name: number for number, name in enumerate(names, start=first)}
    return np.array([numbers.get(str(value), 0) if value is not None else 0 for value in values], dtype=np.int64)


def _side_by_side(columns: Sequence[npt.NDArray[np.generic]], rows: int) -> npt.NDArray[np.generic]:
    return np.stack(columns, axis=1) if columns else np.zeros((rows, 0))
