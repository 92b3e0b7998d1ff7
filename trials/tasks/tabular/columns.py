"""The kinds of a table's columns, numbers or classes, and the objective."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.descriptions.tabular import CLASSIFICATION, REGRESSION
from trials.tasks.datasets import tables
from trials.tasks.tabular.spec import TabularSpec

Floats = npt.NDArray[np.float64]

MISSING_WORDS = frozenset({"na", "n/a", "nan", "null", "none", "?"})
"""Texts that stand for a missing number."""
LARGEST = float(np.finfo(np.float32).max)
"""A value above it, by its absolute value, is not a number to a network."""
MOST_CLASSES = 20
"""A target of more different whole numbers than this is a quantity, not a class."""


def numbers_in(table: pd.DataFrame, column: str) -> tuple[Floats, list[int]]:
    """A column as numbers, not-a-number where it has none; and the rows (from 0) that hold
    something else."""
    values = tables.texts_in(table, column)
    numbers = np.full(len(values), np.nan)
    others = []
    for row, text in enumerate(values):
        if text is None or text.strip().lower() in MISSING_WORDS:
            continue
        try:
            numbers[row] = float(text)
        except ValueError:
            others.append(row)
            continue
        if abs(numbers[row]) > LARGEST:
            others.append(row)
    return numbers, others


def objective(spec: TabularSpec, train: pd.DataFrame) -> str:
    """The stated objective, else regression where the target holds numbers that are not whole, or
    many different whole ones."""
    if spec.objective is not None:
        return spec.objective
    numbers, others = numbers_in(train, spec.target)
    present = numbers[~np.isnan(numbers)]
    if others or len(present) == 0:
        return CLASSIFICATION
    if (present != np.round(present)).any():
        return REGRESSION
    if len(np.unique(present)) > MOST_CLASSES:
        return REGRESSION
    return CLASSIFICATION


def columns(spec: TabularSpec, train: pd.DataFrame) -> tuple[list[str], list[str]]:
    """The columns of numbers and those of classes. Columns that have a single value are left out.

    Where one list is stated alone, the other has what is found of its kind among the rest; where
    both are stated, no other column is read.
    """
    stated_numeric, stated_categorical = spec.numeric, spec.categorical
    if stated_numeric is not None and stated_categorical is not None:
        return list(stated_numeric), list(stated_categorical)
    numeric, categorical = _rest(spec, train)
    if stated_numeric is not None:
        numeric = list(stated_numeric)
    if stated_categorical is not None:
        categorical = list(stated_categorical)
    return numeric, categorical


def _rest(spec: TabularSpec, train: pd.DataFrame) -> tuple[list[str], list[str]]:
    stated = {spec.target, *(spec.numeric or ()), *(spec.categorical or ())}
    numeric: list[str] = []
    categorical: list[str] = []
    for column in train.columns:
        if column in stated or _constant(train, column):
            continue
        kind = numeric if _holds_numbers(train, column) else categorical
        kind.append(column)
    return numeric, categorical


def _holds_numbers(table: pd.DataFrame, column: str) -> bool:
    _, others = numbers_in(table, column)
    if others:
        return False
    return not pd.api.types.is_bool_dtype(table[column])


def _constant(table: pd.DataFrame, column: str) -> bool:
    return len(set(tables.texts_in(table, column))) < 2


def settled(spec: TabularSpec, table: pd.DataFrame) -> TabularSpec:
    """The task with what its file leaves open: which columns are numbers, and what the target asks
    for."""
    numeric, categorical = columns(spec, table)
    return replace(
        spec,
        numeric=tuple(numeric),
        categorical=tuple(categorical),
        objective=objective(spec, table),
    )
