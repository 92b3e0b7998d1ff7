"""The `task` part of a table, and the kinds of its columns: numbers or classes."""

import collections
import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.contract import TaskError
from trials.descriptions.cells import number_in
from trials.descriptions.tabular import CLASSIFICATION, REGRESSION
from trials.tasks.datasets import tables
from trials.tasks.datasets.data_set import DataSpec

Floats = npt.NDArray[np.float64]

MISSING_WORDS = frozenset(
    {
        "na", "n/a", "n.a.", "nan", "-nan", "nat", "<na>", "#n/a", "#na", "null", "none", "nil",
        "missing", "unknown", "?", "-", "--", "–", "—", ".", "..",
        "#value!", "#div/0!", "#ref!", "#num!",
    }
)  # fmt: skip
"""Texts that stand for a missing number."""
MOST_CLASSES = 20  # a target of more different whole numbers is a quantity, not a class
FEW = 0.05
"""The share of the filled rows of a column of numbers that may hold other texts; any share, if they
are one text."""
NAMES = 0.9  # the share of different texts among the filled rows from which on they name the row


class ColumnUse(enum.Enum):
    """The use that is made of a column where the study file does not state it."""

    NUMBERS = "numbers"
    CLASSES = "classes"
    ONE_VALUE = "one value"  # left out: all rows are alike
    NAMES = "names"  # left out: a class of one row teaches the model that row alone


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

    @classmethod
    def parse(cls, task: Mapping[str, Any], base: Path) -> Self:
        """Parse a valid part. Raises TaskError if a column is named twice."""
        stands_under: dict[str, str] = {task["target"]: "target"}
        for key in ("numeric", "categorical"):
            for column in task.get(key, ()):
                if column in stands_under:
                    also = f"names {column!r}, which stands under {stands_under[column]} too"
                    raise TaskError.at(f"task.{key}", f"{also}; keep it in one place")
                stands_under[column] = key
        return cls(
            **DataSpec.shared(task, base),
            target=task["target"],
            objective=task.get("objective_kind"),
            numeric=tuple(task["numeric"]) if "numeric" in task else None,
            categorical=tuple(task["categorical"]) if "categorical" in task else None,
        )


@dataclass(frozen=True)
class ColumnTexts:
    """The texts of a column. `rows`: the number of rows with each text. `is_bool`: whether its type
    says that it holds true and false."""

    rows: Mapping[str, int]
    empty: int
    numbers: Mapping[str, float]
    is_bool: bool

    @property
    def words(self) -> dict[str, int]:
        """The rows with each text that neither is a number nor stands for a missing one."""
        others = [text for text in self.rows if text not in self.numbers]
        return {text: self.rows[text] for text in others if not _is_missing(text)}

    @property
    def all_numbers(self) -> Floats:
        """The number of each row that has one, in no order."""
        counts = [self.rows[text] for text in self.numbers]
        return np.repeat(np.array(list(self.numbers.values()), dtype=np.float64), counts)

    @property
    def use(self) -> ColumnUse:
        texts, filled = len(self.rows), sum(self.rows.values())
        if texts + (self.empty > 0) < 2:
            return ColumnUse.ONE_VALUE
        if self.holds_numbers:
            return ColumnUse.NUMBERS
        if texts > MOST_CLASSES and texts >= NAMES * filled:
            return ColumnUse.NAMES
        return ColumnUse.CLASSES

    @property
    def holds_numbers(self) -> bool:
        """True if all texts are numbers, but for a few among many different numbers: one that
        stands for a missing number, or some mistakes."""
        if self.is_bool or not self.numbers:
            return False
        words = self.words
        if not words:
            return True
        of_numbers, of_words = sum(self.rows[text] for text in self.numbers), sum(words.values())
        is_few = len(words) == 1 or of_words <= FEW * (of_numbers + of_words)
        different = len(set(self.numbers.values()))
        return is_few and different > min(MOST_CLASSES, of_numbers / 2)


def texts_in(table: pd.DataFrame) -> dict[str, ColumnTexts]:
    return {column: texts_of(table, column) for column in table.columns}


def texts_of(table: pd.DataFrame, column: str) -> ColumnTexts:
    counted = collections.Counter(tables.texts_in(table, column))
    rows = {text: count for text, count in counted.items() if text is not None}
    parsed = zip(rows, _numbers(pd.Series(list(rows), dtype=object)).tolist(), strict=True)
    numbers = {text: float(number) for text, number in parsed if not math.isnan(number)}
    is_bool = pd.api.types.is_bool_dtype(table[column])
    return ColumnTexts(rows, counted[None], numbers, is_bool)


def numbers_in(table: pd.DataFrame, column: str) -> tuple[Floats, list[int]]:
    """A column as numbers, NaN for all other texts; and the rows (from 0) of those that do not
    stand for a missing number."""
    texts = pd.Series(tables.texts_in(table, column), dtype=object)
    numbers = _numbers(texts)
    others = np.flatnonzero(numbers.isna() & texts.notna())
    found: Floats = numbers.to_numpy(np.float64)
    return found, [row for row in others.tolist() if not _is_missing(texts[row])]


def _numbers(texts: pd.Series) -> pd.Series:
    found = [math.nan if text is None else number_in(text) for text in texts]
    numbers = pd.Series(found, texts.index, dtype=np.float64)
    return numbers.where(numbers.abs() <= tables.LARGEST)


def _is_missing(text: str) -> bool:
    return text.strip().lower() in MISSING_WORDS


Texts = Mapping[str, ColumnTexts]  # the texts of a table, by column


def objective(spec: TabularSpec, train: Texts) -> str:
    """The stated objective; else regression for a target of fractions or of many whole numbers."""
    if spec.objective is not None:
        return spec.objective
    texts = train[spec.target]
    if not texts.holds_numbers:
        return CLASSIFICATION
    different = set(texts.numbers.values())
    if len(different) > MOST_CLASSES or not all(number.is_integer() for number in different):
        return REGRESSION
    return CLASSIFICATION


def columns(spec: TabularSpec, train: Texts) -> tuple[list[str], list[str]]:
    """The columns of numbers and of classes, without those that have a single value or name rows.
    If the part states one list alone, the other is found among the rest of the columns; if it
    states both, no other column is read."""
    numeric, categorical = list(spec.numeric or ()), list(spec.categorical or ())
    if spec.numeric is not None and spec.categorical is not None:
        return numeric, categorical
    stated = {spec.target, spec.group, *numeric, *categorical}
    for column, texts in train.items():
        if column in stated:
            continue
        use = texts.use
        if use is ColumnUse.NUMBERS and spec.numeric is None:
            numeric.append(column)
        elif use is ColumnUse.CLASSES and spec.categorical is None:
            categorical.append(column)
    return numeric, categorical


def settled(spec: TabularSpec, train: Texts) -> TabularSpec:
    numeric, categorical = columns(spec, train)
    return replace(
        spec,
        numeric=tuple(numeric),
        categorical=tuple(categorical),
        objective=objective(spec, train),
    )
