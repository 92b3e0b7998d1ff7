"""The encoding of a table as numbers for trees, learnt from the training rows alone.

Numbers stay as they are, and classes are numbered from 0; NaN stands for what is missing, and for a
class that no training row has.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.descriptions.cells import number_in
from trials.descriptions.tabular import CLASSIFICATION, REGRESSION
from trials.tasks.datasets import labels, tables
from trials.tasks.tabular.columns import Floats, TabularSpec, numbers_in

EXACT = 1e15  # a float does not distinguish larger numbers: they stay texts


@dataclass(frozen=True)
class TabularRows:
    """Encoded rows."""

    features: Floats  # the columns of numbers, then those of classes, shape (n, columns)
    target: npt.NDArray[np.int64 | np.float64]
    """The class (int64), or the standardised quantity (float64), shape (n,)."""


@dataclass(frozen=True)
class TabularEncoding:
    """The encoding of a table; a checkpoint describes its inputs by it."""

    numeric: tuple[str, ...]
    categorical: dict[str, tuple[str, ...]]
    """The columns of classes, each with its classes in the order of their numbers."""
    classes: tuple[str, ...] | None  # the names of the target's classes; None for a quantity
    target_mean: float  # of a quantity; 0 for classes
    target_deviation: float  # the same; 1 for classes


@dataclass(frozen=True)
class TabularData:
    train: TabularRows
    validation: TabularRows
    encoding: TabularEncoding

    @property
    def objective(self) -> str:
        return REGRESSION if self.encoding.classes is None else CLASSIFICATION


def learn(spec: TabularSpec, train: pd.DataFrame) -> TabularEncoding:
    """The encoding of a task's training rows; the part is settled."""
    categorical = {}
    for column in spec.categorical or ():
        found = set(classes_in(train, column)) - {None}
        categorical[column] = tuple(sorted(map(str, found)))
    numeric = tuple(spec.numeric or ())
    if spec.objective != REGRESSION:
        classes = tuple(labels.class_names(tables.texts_in(train, spec.target)))
        return TabularEncoding(numeric, categorical, classes, 0.0, 1.0)
    quantities, _ = numbers_in(train, spec.target)
    mean, deviation = float(quantities.mean()), float(quantities.std()) or 1.0
    return TabularEncoding(numeric, categorical, None, mean, deviation)


def encode(spec: TabularSpec, encoding: TabularEncoding, table: pd.DataFrame) -> TabularRows:
    """The rows of a table that has no problems."""
    return TabularRows(inputs(encoding, table), _target(spec, encoding, table))


def inputs(encoding: TabularEncoding, table: pd.DataFrame) -> Floats:
    """The inputs of a model: `TabularRows.features`."""
    features = np.full((len(table), len(encoding.numeric) + len(encoding.categorical)), np.nan)
    for place, column in enumerate(encoding.numeric):
        features[:, place], _ = numbers_in(table, column)
    for place, (column, names) in enumerate(encoding.categorical.items(), len(encoding.numeric)):
        numbers: dict[str | None, float] = {name: float(code) for code, name in enumerate(names)}
        features[:, place] = [numbers.get(value, np.nan) for value in classes_in(table, column)]
    return features


def _target(
    spec: TabularSpec, encoding: TabularEncoding, table: pd.DataFrame
) -> npt.NDArray[np.int64 | np.float64]:
    if encoding.classes is not None:
        found = tables.texts_in(table, spec.target)
        return labels.numbers_of(found, encoding.classes)
    numbers, _ = numbers_in(table, spec.target)
    return (numbers - encoding.target_mean) / encoding.target_deviation


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
