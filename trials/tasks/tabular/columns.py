"""The `task` part of a table, and the kinds of its columns: numbers or classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.contract import TaskError
from trials.descriptions.tabular import CLASSIFICATION, REGRESSION
from trials.tasks.datasets import tables
from trials.tasks.datasets.data_set import DataSpec

Floats = npt.NDArray[np.float64]

MISSING_WORDS = frozenset({"na", "n/a", "nan", "null", "none", "?"})
"""Texts that stand for a missing number."""
MOST_CLASSES = 20
"""A target of more different whole numbers is a quantity, not a class."""


@dataclass(frozen=True)
class TabularSpec(DataSpec):
    """The parsed part; None stands for a choice that follows from the data."""

    target: str
    objective: str | None
    numeric: tuple[str, ...] | None
    categorical: tuple[str, ...] | None

    @property
    def facts(self) -> tuple[object, ...]:
        return self.split_seed, self.target, self.objective, self.numeric, self.categorical

    @staticmethod
    def parse(task: Mapping[str, Any], base: Path) -> TabularSpec:
        """Parse a valid part.

        Raises:
            TaskError: A column is named twice.
        """
        stands_under: dict[str, str] = {task["target"]: "target"}
        for key in ("numeric", "categorical"):
            for column in task.get(key, ()):
                if column in stands_under:
                    also = f"names {column!r}, which stands under {stands_under[column]} too"
                    raise TaskError.at(f"task.{key}", f"{also}; keep it in one place")
                stands_under[column] = key
        return TabularSpec(
            **DataSpec.shared(task, base),
            target=task["target"],
            objective=task.get("objective_kind"),
            numeric=tuple(task["numeric"]) if "numeric" in task else None,
            categorical=tuple(task["categorical"]) if "categorical" in task else None,
        )


def numbers_in(table: pd.DataFrame, column: str) -> tuple[Floats, list[int]]:
    """A column as numbers, NaN for missing ones; and the rows (from 0) that are not numbers."""
    texts = pd.Series(tables.texts_in(table, column), dtype=object)
    is_missing = texts.isna() | texts.str.strip().str.lower().isin(MISSING_WORDS)
    numbers = pd.to_numeric(texts.mask(is_missing), errors="coerce")
    is_other = ~is_missing & ~(numbers.abs() <= tables.LARGEST)
    found: Floats = numbers.to_numpy(np.float64)
    return found, np.flatnonzero(is_other).tolist()


def objective(spec: TabularSpec, train: pd.DataFrame) -> str:
    """The stated objective; else regression for a target of fractions or of many whole numbers."""
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
    """The columns of numbers and of classes, without columns that have a single value.

    If the part states one list alone, the other is found among the rest of the columns; if it
    states both, no other column is read.
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
    """The part, with the choices that follow from its data."""
    numeric, categorical = columns(spec, table)
    return replace(
        spec,
        numeric=tuple(numeric),
        categorical=tuple(categorical),
        objective=objective(spec, table),
    )
