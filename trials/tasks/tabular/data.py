"""The data of a tabular task: files are read, checked, split and encoded."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.contract import Problem
from trials.descriptions.tabular import CLASSIFICATION, REGRESSION
from trials.settings import Settings
from trials.tasks.datasets import labels, tables
from trials.tasks.datasets import remarks as common_remarks
from trials.tasks.datasets.data_set import DataSet, Mask
from trials.tasks.tabular import remarks
from trials.tasks.tabular.columns import (
    TabularSpec,
    columns,
    numbers_in,
    objective,
    settled,
    texts_of,
)
from trials.tasks.tabular.encoding import TabularEncoding, TabularRows, encode, learn


@dataclass(frozen=True)
class TabularData:
    """Prepared data."""

    train: TabularRows
    validation: TabularRows
    encoding: TabularEncoding

    @property
    def objective(self) -> str:
        """Classification or regression."""
        return REGRESSION if self.encoding.classes is None else CLASSIFICATION


@dataclass(frozen=True)
class TableFile:
    """A table with its path and the key of the study file that names it."""

    table: pd.DataFrame
    path: Path
    where: str

    def __len__(self) -> int:
        return len(self.table)


class TabularDataSet(DataSet[TabularSpec, TableFile]):
    """The rows of tables."""

    TYPES = (TabularData, TabularRows, TabularEncoding)

    def examples(self, path: Path, where: str) -> tuple[TableFile, list[Problem]]:
        spec = self.spec
        named = {
            "task.target": (spec.target,),
            "task.numeric": spec.numeric or (),
            "task.categorical": spec.categorical or (),
        }
        found = TableFile(tables.with_columns(named, path, where), path, where)
        return found, [*_words_for_numbers(spec, found), *_gaps(spec, found)]

    def unfit(self, train: TableFile) -> Iterator[Problem]:
        spec, table = self.spec, train.table
        if objective(spec, table) == CLASSIFICATION:
            yield from labels.problems_with(tables.texts_in(table, spec.target), "task.target")
        else:
            yield from _words_in(replace(train, where="task.target"), spec.target)
            yield from _missing_numbers(spec, train)
        if not any(columns(spec, table)):
            what = f"{spec.train} has no column to predict from; add some"
            yield Problem("task.train", what)

    def misfits(self, train: TableFile, other: TableFile, where: str) -> Iterator[Problem]:
        spec, table = self.spec, train.table
        numeric, categorical = columns(spec, table)
        wanted = {where: [*numeric, *categorical]}
        yield from tables.missing_columns(other.table, wanted, other.path)
        if objective(spec, table) == CLASSIFICATION:
            trained = tables.texts_in(table, spec.target)
            yield from labels.unseen(trained, tables.texts_in(other.table, spec.target), where)
        else:
            numeric = [*numeric, spec.target]
            yield from _missing_numbers(spec, other)
        for column in numeric:
            if column in other.table.columns:
                known = texts_of(table, column).words
                yield from _words_in(other, column, known)

    def keys(self, examples: TableFile, train: TableFile) -> list[tuple[str | None, ...]]:
        numeric, categorical = columns(self.spec, train.table)
        used = (*numeric, *categorical, self.spec.target)
        texts = [tables.texts_in(examples.table, column) for column in used]
        return list(zip(*texts, strict=True))

    def remarks(self, train: TableFile) -> Iterator[tuple[str, str]]:
        spec, table = self.spec, train.table
        for what in remarks.on_table(spec, table):
            yield "task.train", what
        if objective(spec, table) == CLASSIFICATION:
            on_target = common_remarks.on_classes(tables.texts_in(table, spec.target), self.UNIT)
        else:
            numbers, _ = numbers_in(table, spec.target)
            on_target = common_remarks.on_quantities(numbers, self.UNIT)
        for what in on_target:
            yield "task.target", what

    def strata(self, train: TableFile) -> list[str]:
        if objective(self.spec, train.table) == REGRESSION:
            return [""] * len(train)
        return [str(label) for label in tables.texts_in(train.table, self.spec.target)]

    def taken(self, examples: TableFile, mask: Mask) -> TableFile:
        return replace(examples, table=examples.table[mask])

    def encode(self, train: TableFile, validation: TableFile, settings: Settings) -> TabularData:
        decisive = train.table
        if not isinstance(self.spec.validation, Path):
            # A word in a validation row would otherwise count as a missing number.
            decisive = pd.concat([train.table, validation.table])
        spec = settled(self.spec, decisive)
        encoding = learn(spec, train.table)
        learnt = encode(spec, encoding, train.table)
        held_out = encode(spec, encoding, validation.table)
        return TabularData(learnt, held_out, encoding)

    def with_test(self, data: TabularData, test: TableFile, settings: Settings) -> TabularData:
        return replace(data, validation=encode(self.spec, data.encoding, test.table))


def _words_for_numbers(spec: TabularSpec, file: TableFile) -> Iterator[Problem]:
    for column in spec.numeric or ():
        yield from _words_in(replace(file, where="task.numeric"), column)
    if spec.objective == REGRESSION:
        yield from _words_in(replace(file, where="task.target"), spec.target)


def _words_in(file: TableFile, column: str, known: Container[str] = ()) -> Iterator[Problem]:
    """The problem of texts for numbers, but for those that are known to stand for missing ones."""
    _, rows = numbers_in(file.table, column)
    if not rows:
        return
    texts = tables.texts_in(file.table, column)
    rows = [row for row in rows if texts[row] not in known]
    if not rows:
        return
    first = f"the first of them row {rows[0] + 1}: {texts[rows[0]]!r}"
    what = f"column {column!r} of {file.path} is not a number in {len(rows)} rows, {first}"
    yield Problem(file.where, f"{what}; correct them, or treat it as classes")


def _gaps(spec: TabularSpec, file: TableFile) -> Iterator[Problem]:
    missing = [text is None for text in tables.texts_in(file.table, spec.target)]
    if any(missing):
        yield _without_target(spec, file, missing)
    elif spec.objective == REGRESSION:
        yield from _missing_numbers(spec, file)


def _missing_numbers(spec: TabularSpec, file: TableFile) -> Iterator[Problem]:
    """The problem of a quantity that is missing, by an empty cell or by a word for it."""
    if spec.target in file.table.columns:
        numbers, words = numbers_in(file.table, spec.target)
        if np.isnan(numbers).any() and not words:  # words are another problem
            yield _without_target(spec, file, np.isnan(numbers))


def _without_target(spec: TabularSpec, file: TableFile, missing: npt.ArrayLike) -> Problem:
    rows: list[int] = (np.flatnonzero(missing) + 1).tolist()
    return Problem("task.target", tables.missing_values(rows, spec.target, file.path))
