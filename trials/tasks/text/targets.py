"""The targets of texts - a class, several labels, or a number: read, checked, and encoded as an
array."""

from __future__ import annotations

import abc
import collections
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.contract import Problem
from trials.descriptions.text import BALANCED, CLASS, LABELS, NUMBER, TEXT_REGRESSION
from trials.settings import nearest
from trials.tasks.datasets import labels, tables
from trials.tasks.huggingface.spec import TextSpec

LABEL = "label"
"""The field of the task that names the column, or the columns."""
MARKS = {"1": True, "true": True, "0": False, "false": False}
"""The values of a column of 0 and 1, in any case of letters."""
LARGEST = float(np.finfo(np.float32).max)
"""A value above it, by its absolute value, is not a number to a model."""
MOST_ALONE = 20
"""If more rows than this have a number each, and all differ, they are no classes."""

Values = Sequence[Any]
"""The target of each row; None where it cannot be read."""


@dataclass(frozen=True)
class TargetEncoding:
    """How targets become arrays, as learnt from the training rows.

    Args:
        labels: The names of the classes or labels, by number; of a number, its one name.
        mean: What a number of 0 stands for; 0 for classes.
        deviation: What a difference of 1 stands for; 1 for classes.
    """

    labels: tuple[str, ...]
    mean: float = 0.0
    deviation: float = 1.0


class TextTarget(abc.ABC):
    """The target of a text.

    Args:
        spec: The `task` part.
    """

    KIND: ClassVar[str]

    def __init__(self, spec: TextSpec) -> None:
        self._columns = spec.columns(LABEL)
        self._weights = spec.options.get("class_weights")

    @property
    def _column(self) -> str:
        return self._columns[LABEL]

    @abc.abstractmethod
    def read(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        """The target of each row of a file, and its problems."""

    @abc.abstractmethod
    def unfit(self, train: Values, path: Path) -> Iterator[Problem]:
        """Reasons why the training rows cannot be learnt from."""

    def unseen(self, train: Values, other: Values, where: str) -> list[Problem]:
        """The problem of other data that has what the training rows never have.

        Args:
            other: What the rows of the other data state.
            where: The study file's key that names it.
        """
        return []

    def strata(self, values: Values) -> Sequence[str]:
        """The name of a group for each row, of every one of which a validation fraction takes its
        share."""
        return [""] * len(values)

    def lost(self, train: Values, validation: Values) -> Iterator[str]:
        """The labels that a split leaves no training row of."""
        return iter(())

    @abc.abstractmethod
    def encoding(self, train: Values) -> TargetEncoding:
        """The encoding of training rows without problems."""

    @abc.abstractmethod
    def encoded(self, values: Values, encoding: TargetEncoding) -> npt.NDArray[Any]:
        """The targets of rows without problems, shape (n,) or (n, labels)."""

    def weights(
        self, targets: npt.NDArray[Any], encoding: TargetEncoding
    ) -> npt.NDArray[np.float32] | None:
        """The weight of each class in the loss, shape (labels,); None where all weigh the same."""
        stated = self._weights
        if stated is None:
            return None
        if stated == BALANCED:
            return self._balanced(targets).astype(np.float32)
        by_name = {str(name): weight for name, weight in stated.items()}
        return np.array([by_name.get(name, 1.0) for name in encoding.labels], dtype=np.float32)

    def _balanced(self, targets: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        raise NotImplementedError

    def _strangers(self, known: Iterable[str]) -> Iterator[Problem]:
        if not isinstance(self._weights, Mapping):
            return
        names = sorted(known)
        for name in self._weights:
            if str(name) not in names:
                what = "is not a class of the training data"
                yield Problem(f"task.class_weights.{name}", f"{what}; {nearest(name, names)}")


class OneClass(TextTarget):
    """The class of a text: a row states its name."""

    KIND = CLASS

    def read(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        column = self._column
        for row, value in enumerate(table[column].tolist(), start=1):
            if _is_list(value):
                what = f"row {row} of {path} has a list in {column!r}"
                hint = 'if a text may have several labels, add separator: ","'
                return [None] * len(table), [Problem("task.label", f"{what}; {hint}")]
        columns = {LABEL: tables.texts_in(table, column)}
        return columns[LABEL], tables.gaps_in(columns, self._columns, path)

    def unfit(self, train: Values, path: Path) -> Iterator[Problem]:
        yield from labels.problems_with(train, "task.label")
        all_different = len(set(train)) == len(train) > MOST_ALONE
        if all_different and None not in map(_number, train):
            what = f"every row of {path} has a number of its own in {self._column!r}"
            hint = f"to learn a number for each text, use kind: {TEXT_REGRESSION.kind}"
            yield Problem("task.label", f"{what}, which would be its class; {hint}")
        yield from self._strangers(set(train) - {None})

    def unseen(self, train: Values, other: Values, where: str) -> list[Problem]:
        return labels.unseen(train, other, where)

    def strata(self, values: Values) -> Sequence[str]:
        return list(map(str, values))

    def encoding(self, train: Values) -> TargetEncoding:
        return TargetEncoding(tuple(labels.class_names(train)))

    def encoded(self, values: Values, encoding: TargetEncoding) -> npt.NDArray[np.int64]:
        return labels.numbers_of(values, encoding.labels)

    def _balanced(self, targets: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        from sklearn.utils.class_weight import compute_class_weight  # a second to import

        classes = np.unique(targets)  # a class without a training row is refused
        found: npt.NDArray[np.float64] = compute_class_weight(BALANCED, classes=classes, y=targets)
        return found


class SeveralLabels(TextTarget):
    """Which labels a text has: a row states their names, perhaps none.

    A file has a column of 0 and 1 for each label, or one column with the names, joined by a
    separator; in Parquet and JSON lines also as lists.
    """

    KIND = LABELS

    def __init__(self, spec: TextSpec) -> None:
        super().__init__(spec)
        self._separator = spec.options.get("separator")

    def read(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        if self._separator is not None:
            return self._joined(table, path)
        rows: list[list[str]] = [[] for _ in range(len(table))]
        problems: list[Problem] = []
        for field, column in self._columns.items():
            found = {field: tables.texts_in(table, column)}
            problems += tables.gaps_in(found, self._columns, path)
            unfit = {}
            for row, text in enumerate(found[field]):
                mark = None if text is None else MARKS.get(text.strip().lower())
                if mark:
                    rows[row].append(column)
                elif mark is None and text is not None:
                    unfit[row + 1] = text
            if unfit:
                what = tables.unfit_values(unfit, column, "0 or 1", path)
                problems.append(Problem(f"task.{field}", what))
        return list(map(tuple, rows)), problems

    def _joined(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        column, separator = self._column, self._separator
        assert separator is not None
        rows, unfit = [], {}
        texts = tables.texts_in(table, column)
        for row, (value, text) in enumerate(zip(table[column].tolist(), texts, strict=True)):
            if isinstance(value, Mapping):
                unfit[row + 1] = str(value)
            parts = map(str, value) if _is_list(value) else (text or "").split(separator)
            names = [part.strip() for part in parts]
            rows.append(tuple(dict.fromkeys(name for name in names if name)))
        if not unfit:
            return rows, []
        what = tables.unfit_values(unfit, column, "labels", path)
        return rows, [Problem("task.label", what)]

    def unfit(self, train: Values, path: Path) -> Iterator[Problem]:
        counts = _counts(train)
        if self._separator is not None:
            yield from self._not_joined(train, counts, path)
        known = counts if self._separator is not None else list(self._columns.values())
        yield from self._strangers(known)
        for field, name in self._named(known):
            count = counts[name]
            if count == 0:
                what = f"no row of {path} has the label {name!r}"
                yield Problem(field, f"{what}; leave it out, or add texts that have it")
            elif count == len(train):
                what = f"all rows of {path} have the label {name!r}"
                yield Problem(field, f"{what}; leave it out, or add texts that do not have it")

    def _named(self, known: Iterable[str]) -> Iterator[tuple[str, str]]:
        places = {column: field for field, column in self._columns.items()}
        for name in known:
            yield f"task.{places.get(name, LABEL)}", name

    def _not_joined(
        self, train: Values, counts: Mapping[str, int], path: Path
    ) -> Iterator[Problem]:
        yield from labels.too_long(counts, "task.label")
        if not counts:
            yield Problem("task.label", f"no row of {path} has a label; name another column")
        elif all(len(row) == 1 for row in train):
            what = f"every row of {path} has one label by the separator {self._separator!r}"
            hint = "correct it, or remove it if a text has one class"
            yield Problem("task.separator", f"{what}; {hint}")

    def unseen(self, train: Values, other: Values, where: str) -> list[Problem]:
        return labels.unseen(_flat(train), _flat(other), where)

    def strata(self, values: Values) -> Sequence[str]:
        counts = _counts(values)
        return [min(row, key=lambda name: (counts[name], name), default="") for row in values]

    def lost(self, train: Values, validation: Values) -> Iterator[str]:
        return iter(sorted(set(_flat(validation)) - set(_flat(train))))

    def encoding(self, train: Values) -> TargetEncoding:
        if self._separator is None:
            return TargetEncoding(tuple(self._columns.values()))
        return TargetEncoding(tuple(labels.class_names(_flat(train))))

    def encoded(self, values: Values, encoding: TargetEncoding) -> npt.NDArray[np.float32]:
        numbers = {name: number for number, name in enumerate(encoding.labels)}
        found = np.zeros((len(values), len(numbers)), dtype=np.float32)
        for row, names in enumerate(values):
            found[row, [numbers[name] for name in names]] = 1.0
        return found

    def _balanced(self, targets: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        having = np.maximum(targets.sum(axis=0, dtype=np.float64), 1.0)
        found: npt.NDArray[np.float64] = (len(targets) - having) / having
        return found


class OneNumber(TextTarget):
    """A number for a text."""

    KIND = NUMBER

    def read(self, table: pd.DataFrame, path: Path) -> tuple[Values, list[Problem]]:
        column = self._column
        columns = {LABEL: tables.texts_in(table, column)}
        problems = tables.gaps_in(columns, self._columns, path)
        numbers: list[float | None] = []
        unfit = {}
        for row, text in enumerate(columns[LABEL], start=1):
            number = None if text is None else _number(text)
            if number is None and text is not None:
                unfit[row] = text
            numbers.append(number)
        if unfit:
            what = tables.unfit_values(unfit, column, "a finite number", path)
            problems.append(Problem("task.label", what))
        return numbers, problems

    def unfit(self, train: Values, path: Path) -> Iterator[Problem]:
        different = set(train) - {None}
        if len(different) == 1:
            what = f"all rows of {path} have the number {different.pop():g} in {self._column!r}"
            yield Problem("task.label", f"{what}; two different ones are needed")

    def encoding(self, train: Values) -> TargetEncoding:
        numbers = np.array(train, dtype=np.float64)
        name = f"{self._column} (standardised)"
        return TargetEncoding((name,), float(numbers.mean()), float(numbers.std()) or 1.0)

    def encoded(self, values: Values, encoding: TargetEncoding) -> npt.NDArray[np.float32]:
        numbers = np.array(values, dtype=np.float64)
        standardised = (numbers - encoding.mean) / encoding.deviation
        return standardised.astype(np.float32)


def _is_list(value: Any) -> bool:
    return isinstance(value, list | np.ndarray)


def _flat(rows: Values) -> list[str]:
    return list(itertools.chain.from_iterable(rows))


def _counts(rows: Values) -> collections.Counter[str]:
    return collections.Counter(_flat(rows))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) <= LARGEST else None
