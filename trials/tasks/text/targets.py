"""The targets of texts: a class, several labels, or a number."""

import abc
import collections
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.contract import Problem
from trials.descriptions.cells import number_in
from trials.descriptions.text import CLASS, LABELS, NUMBER
from trials.tasks.datasets import labels, remarks, tables
from trials.tasks.huggingface.text_base import TextSpec

LABEL = "label"  # the field of the task for the column, or the columns
MARKS = {"1": True, "true": True, "0": False, "false": False}
"""The values of a column of 0 and 1, in any case of letters."""

Values = Sequence[Any]  # the target of each row; None for one that cannot be read


@dataclass(frozen=True)
class TargetEncoding:
    """The encoding of targets as arrays, learnt from the training rows.

    Args:
        labels: The names of the classes or labels, by number; the one name of a number.
        mean, deviation: Of the numbers; 0 and 1 for classes.
    """

    labels: tuple[str, ...]
    mean: float = 0.0
    deviation: float = 1.0


class TextTarget(abc.ABC):
    """The target of a text."""

    KIND: ClassVar[str]

    def __init__(self, spec: TextSpec) -> None:
        self._columns = spec.columns(LABEL)
        self._is_balanced = spec.is_balanced

    @property
    def _column(self) -> str:
        return self._columns[LABEL]

    @abc.abstractmethod
    def read(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        """The target of each row of a file, and its problems."""

    @abc.abstractmethod
    def unfit(self, train: Values, path: Path) -> list[Problem]:
        """Reasons why the training rows cannot be learnt from."""

    @abc.abstractmethod
    def remarks(self, train: Values) -> Iterator[str]:
        """Sentences on the training rows, as for `DataSet.remarks`."""

    def unseen(self, train: Values, other: Values, where: str) -> list[Problem]:
        """The problem of other data with targets that no training row has."""
        return []

    def strata(self, values: Values) -> Sequence[str]:
        """A group name for each row, as for `DataSet.strata`."""
        return [""] * len(values)

    def lost(self, train: Values, validation: Values) -> list[str]:
        """The labels without a training row after a split."""
        return []

    @abc.abstractmethod
    def encoding(self, train: Values) -> TargetEncoding:
        """The encoding of training rows without problems."""

    @abc.abstractmethod
    def encoded(self, values: Values, encoding: TargetEncoding) -> npt.NDArray[Any]:
        """The targets of rows without problems, shape (n,) or (n, labels)."""

    def weights(self, targets: npt.NDArray[Any]) -> npt.NDArray[np.float32] | None:
        """The weight of each class in the loss, shape (labels,); None for equal weights."""
        return self._balanced(targets).astype(np.float32) if self._is_balanced else None

    def _balanced(self, targets: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        raise NotImplementedError


class OneClass(TextTarget):
    KIND = CLASS

    def read(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        columns = {LABEL: tables.texts_in(table, self._column)}
        return columns[LABEL], tables.gaps_in(columns, self._columns, path)

    def unfit(self, train: Values, path: Path) -> list[Problem]:
        return labels.problems_with(train, "task.label")

    def remarks(self, train: Values) -> Iterator[str]:
        return remarks.on_classes(collections.Counter(train), "text")

    def unseen(self, train: Values, other: Values, where: str) -> list[Problem]:
        return labels.unseen(train, other, where)

    def strata(self, values: Values) -> Sequence[str]:
        return list(map(str, values))

    def encoding(self, train: Values) -> TargetEncoding:
        return TargetEncoding(tuple(labels.class_names(train)))

    def encoded(self, values: Values, encoding: TargetEncoding) -> npt.NDArray[np.int64]:
        return labels.numbers_of(values, encoding.labels)

    def _balanced(self, targets: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        # As scikit-learn's `compute_class_weight`.
        counts = np.bincount(targets)
        return len(targets) / (len(counts) * np.maximum(counts, 1.0))


class SeveralLabels(TextTarget):
    """Any of several labels, each in a column of 0 and 1."""

    KIND = LABELS

    def read(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        rows: list[list[str]] = [[] for _ in range(len(table))]
        problems: list[Problem] = []
        for field, column in self._columns.items():
            texts = tables.texts_in(table, column)
            problems += tables.gaps_in({field: texts}, self._columns, path)
            unfit = {}
            for row, text in enumerate(texts):
                mark = MARKS.get((text or "").strip().lower())
                if mark:
                    rows[row].append(column)
                elif mark is None and text is not None:
                    unfit[row + 1] = text
            if unfit:
                what = tables.unfit_values(unfit, column, "0 or 1", path)
                problems.append(Problem(f"task.{field}", what))
        return list(map(tuple, rows)), problems

    def unfit(self, train: Values, path: Path) -> list[Problem]:
        if any(train):
            return []
        return [Problem("task.label", f"no row of {path} has a label; name another column")]

    def remarks(self, train: Values) -> Iterator[str]:
        counts = collections.Counter(itertools.chain.from_iterable(train))
        for name in self._columns.values():
            if counts[name] in (0, 1, len(train)):
                many = {0: "no text has", 1: "only 1 text has", len(train): "all texts have"}
                yield f"{many[counts[name]]} the label {name!r}: it cannot be learnt"

    def strata(self, values: Values) -> Sequence[str]:
        return labels.rarest(values)

    def lost(self, train: Values, validation: Values) -> list[str]:
        known, held_out = itertools.chain(*train), itertools.chain(*validation)
        return sorted(set(held_out) - set(known))

    def encoding(self, train: Values) -> TargetEncoding:
        return TargetEncoding(tuple(self._columns.values()))

    def encoded(self, values: Values, encoding: TargetEncoding) -> npt.NDArray[np.float32]:
        numbers = {name: number for number, name in enumerate(encoding.labels)}
        found = np.zeros((len(values), len(numbers)), dtype=np.float32)
        for row, names in enumerate(values):
            found[row, [numbers[name] for name in names]] = 1.0
        return found

    def _balanced(self, targets: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        # For each label, the texts without it for each text with it.
        having = np.maximum(targets.sum(axis=0, dtype=np.float64), 1.0)
        found: npt.NDArray[np.float64] = (len(targets) - having) / having
        return found


class OneNumber(TextTarget):
    KIND = NUMBER

    def read(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        texts = tables.texts_in(table, self._column)
        problems = tables.gaps_in({LABEL: texts}, self._columns, path)
        numbers: list[float | None] = []
        unfit = {}
        for row, text in enumerate(texts, start=1):
            number = None if text is None else _number(text)
            if number is None and text is not None:
                unfit[row] = text
            numbers.append(number)
        if unfit:
            what = tables.unfit_values(unfit, self._column, "a finite number", path)
            problems.append(Problem("task.label", what))
        return numbers, problems

    def unfit(self, train: Values, path: Path) -> list[Problem]:
        if len(set(train)) > 1:
            return []
        what = f"all rows of {path} have one number in {self._column!r}; two are needed"
        return [Problem("task.label", what)]

    def remarks(self, train: Values) -> Iterator[str]:
        return remarks.on_quantities(np.array(train, dtype=np.float64), "text")

    def encoding(self, train: Values) -> TargetEncoding:
        numbers = np.array(train, dtype=np.float64)
        name = f"{self._column} (standardised)"
        return TargetEncoding((name,), float(numbers.mean()), float(numbers.std()) or 1.0)

    def encoded(self, values: Values, encoding: TargetEncoding) -> npt.NDArray[np.float32]:
        numbers = np.array(values, dtype=np.float64)
        standardised = (numbers - encoding.mean) / encoding.deviation
        return standardised.astype(np.float32)


def _number(text: str) -> float | None:
    number = number_in(text)
    return None if number is None or not abs(number) <= tables.LARGEST else float(number)
