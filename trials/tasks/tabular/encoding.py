"""The encoding of a table as arrays of numbers, learnt from the training rows alone.

Numbers are standardised; one that lies far from all others counts as the end of their usual range.
A missing one becomes the mean, with a mark in a column beside it. Classes are numbered from 1; 0
stands for a missing or unknown class.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.descriptions.cells import number_in
from trials.descriptions.tabular import REGRESSION
from trials.tasks.datasets import labels, tables
from trials.tasks.datasets.remarks import usual_range, within
from trials.tasks.tabular.columns import Floats, TabularSpec, numbers_in

EXACT = 1e15
"""A float does not distinguish larger numbers: they stay texts."""


@dataclass(frozen=True)
class TabularRows:
    """Encoded rows.

    Args:
        numeric: Standardised numbers and the indicators of missing ones, float32, shape (n,
            numbers).
        categorical: Numbers of classes, int32, shape (n, categorical columns).
        target: The class (int64), or the standardised quantity (float32), shape (n,).
    """

    numeric: npt.NDArray[np.float32]
    categorical: npt.NDArray[np.int32]
    target: npt.NDArray[np.int64 | np.float32]


@dataclass(frozen=True)
class TabularEncoding:
    """The encoding of a table; a checkpoint describes its inputs by it.

    Args:
        ranges: The usual range of each, to which its numbers are cut.
        means, deviations: Of the numbers in that range.
        flagged: The columns of numbers with a column that marks missing values.
        categorical: The columns of classes, each with its classes; class i has number i + 1.
        classes: The names of the target's classes; None for a quantity.
        target_mean, target_deviation: Of a quantity; 0 and 1 for classes.
    """

    numeric: tuple[str, ...]
    ranges: tuple[tuple[float, float], ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    flagged: tuple[str, ...]
    categorical: dict[str, tuple[str, ...]]
    classes: tuple[str, ...] | None
    target_mean: float
    target_deviation: float


def learn(spec: TabularSpec, train: pd.DataFrame) -> TabularEncoding:
    """The encoding of a task's training rows; the part is settled."""
    numeric = spec.numeric or ()
    ranges, means, deviations, flagged = [], [], [], []
    for column in numeric:
        numbers, _ = numbers_in(train, column)
        present = numbers[~np.isnan(numbers)]
        usual = usual_range(present)
        mean, deviation = _moments(within(present, usual))
        ranges.append(usual)
        means.append(mean)
        deviations.append(deviation)
        if np.isnan(numbers).any():
            flagged.append(column)

    categorical = {}
    for column in spec.categorical or ():
        found = set(classes_in(train, column)) - {None}
        categorical[column] = tuple(sorted(map(str, found)))

    classes, target_mean, target_deviation = None, 0.0, 1.0
    if spec.objective == REGRESSION:
        quantities, _ = numbers_in(train, spec.target)
        target_mean, target_deviation = _moments(quantities)
    else:
        classes = tuple(labels.class_names(tables.texts_in(train, spec.target)))
    return TabularEncoding(
        numeric=tuple(numeric),
        ranges=tuple(ranges),
        means=tuple(means),
        deviations=tuple(deviations),
        flagged=tuple(flagged),
        categorical=categorical,
        classes=classes,
        target_mean=target_mean,
        target_deviation=target_deviation,
    )


def _moments(numbers: Floats) -> tuple[float, float]:
    if len(numbers) == 0:
        return 0.0, 1.0
    return float(numbers.mean()), float(numbers.std()) or 1.0


def encode(spec: TabularSpec, encoding: TabularEncoding, table: pd.DataFrame) -> TabularRows:
    """The rows of a table that has no problems."""
    numeric, categorical = inputs(encoding, table)
    return TabularRows(numeric, categorical, _target(spec, encoding, table))


def inputs(
    encoding: TabularEncoding, table: pd.DataFrame
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int32]]:
    """The inputs of a model: `TabularRows.numeric` and `TabularRows.categorical`."""
    rows = len(table)
    numeric = _side_by_side(_standardised(encoding, table), rows)
    classes = []
    for column, names in encoding.categorical.items():
        numbers: dict[str | None, int] = {name: place for place, name in enumerate(names, start=1)}
        found = [numbers.get(value, 0) for value in classes_in(table, column)]
        classes.append(np.array(found, dtype=np.int64))
    categorical = _side_by_side(classes, rows)
    return numeric.astype(np.float32), categorical.astype(np.int32)


def _standardised(encoding: TabularEncoding, table: pd.DataFrame) -> list[Floats]:
    standardised, flags = [], []
    scales = zip(encoding.ranges, encoding.means, encoding.deviations, strict=True)
    for column, (usual, mean, deviation) in zip(encoding.numeric, scales, strict=True):
        numbers, _ = numbers_in(table, column)
        scaled = (np.clip(numbers, *usual) - mean) / deviation
        standardised.append(np.nan_to_num(scaled, nan=0.0))
        if column in encoding.flagged:
            missing = np.isnan(numbers)
            flags.append(missing.astype(np.float64))
    return [*standardised, *flags]


def _side_by_side(found: Sequence[npt.NDArray[np.generic]], rows: int) -> npt.NDArray[np.generic]:
    if not found:
        return np.zeros((rows, 0))
    return np.stack(found, axis=1)


def _target(
    spec: TabularSpec, encoding: TabularEncoding, table: pd.DataFrame
) -> npt.NDArray[np.int64 | np.float32]:
    if encoding.classes is not None:
        found = tables.texts_in(table, spec.target)
        return labels.numbers_of(found, encoding.classes)
    numbers, _ = numbers_in(table, spec.target)
    scaled = (numbers - encoding.target_mean) / encoding.target_deviation
    return scaled.astype(np.float32)


def classes_in(table: pd.DataFrame, column: str) -> list[str | None]:
    """The classes of a column; None for a row without a value. Equal values are one class: `true`
    of a CSV is `True` of Parquet, and `01` is 1."""
    return [None if text is None else _by_value(text) for text in tables.texts_in(table, column)]


def _by_value(text: str) -> str:
    plain = text.strip()
    if plain.lower() in ("true", "false"):
        return plain.lower()
    number = number_in(plain)
    return text if number is None or not abs(number) < EXACT else f"{float(number):.15g}"
