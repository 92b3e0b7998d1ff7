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
    texts = pd.Series(tables.texts_in(table, column), dtype=object)
    is_missing = texts.isna() | texts.str.strip().str.lower().isin(MISSING_WORDS)
    numbers = pd.to_numeric(texts.mask(is_missing), errors="coerce")
    is_other = ~is_missing & ~(numbers.abs() <= LARGEST)
    found: Floats = numbers.to_numpy(np.float64)
    return found, np.flatnonzero(is_other).tolist()


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
    numeric, categorical = list(spec.numeric or ()), list(spec.categorical or ())
    if spec.numeric is not None and spec.categorical is not None:
        return numeric, categorical
    stated = {spec.target, *numeric, *categorical}
    for column in train.columns:
        is_constant = len(set(tables.texts_in(train, column))) < 2
        if column in stated or is_constant:
            continue
        if _holds_numbers(train, column):
            if spec.numeric is None:
                numeric.append(column)
        elif spec.categorical is None:
            categorical.append(column)
    return numeric, categorical


def _holds_numbers(table: pd.DataFrame, column: str) -> bool:
    _, others = numbers_in(table, column)
    if others:
        return False
    return not pd.api.types.is_bool_dtype(table[column])


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
