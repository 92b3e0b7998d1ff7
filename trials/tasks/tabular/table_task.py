"""Tables: boosted trees learn to predict one column of a table from the others."""

import functools
import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from trials.contract import Problem, Run, Setup, TaskError, Unit
from trials.descriptions.tabular import CLASSIFICATION, REGRESSION, TABULAR, TabularSettings
from trials.settings import Settings, nearest
from trials.tasks.datasets import labels, tables
from trials.tasks.datasets import remarks as common_remarks
from trials.tasks.datasets.data_set import DataSet
from trials.tasks.datasets.splits import Mask
from trials.tasks.tabular import remarks
from trials.tasks.tabular.columns import (
    ColumnTexts,
    TabularSpec,
    columns,
    numbers_in,
    objective,
    settled,
    texts_in,
)
from trials.tasks.tabular.encoding import TabularData, TabularEncoding, TabularRows, encode, learn
from trials.tasks.workloads.trained_task import BuiltInTask


@dataclass(frozen=True)
class TableFile:
    table: pd.DataFrame
    path: Path
    where: str

    def __len__(self) -> int:
        return len(self.table)

    @functools.cached_property
    def texts(self) -> dict[str, ColumnTexts]:
        return texts_in(self.table)


class TabularDataSet(DataSet[TabularSpec, TableFile]):
    TYPES = (TabularData, TabularRows, TabularEncoding)

    def examples(self, path: Path, where: str) -> tuple[TableFile, list[Problem]]:
        spec = self.spec
        named = {
            "task.target": (spec.target,),
            "task.numeric": spec.numeric or (),
            "task.categorical": spec.categorical or (),
            "task.group": spec.groups_in(where),
        }
        found = TableFile(tables.with_columns(named, path, where), path, where)
        return found, [*_words_for_numbers(spec, found), *_gaps(spec, found)]

    def unfit(self, train: TableFile) -> Iterator[Problem]:
        spec = self.spec
        if objective(spec, train.texts) == CLASSIFICATION:
            yield from labels.problems_with(train.texts[spec.target].rows, "task.target")
        else:
            yield from _words_in(replace(train, where="task.target"), spec.target)
            yield from _missing_numbers(spec, train)
        if not any(columns(spec, train.texts)):
            why = next(remarks.left_out(train.texts), "add some")
            yield Problem("task.train", f"{spec.train} has no column to predict from; {why}")

    def misfits(self, train: TableFile, other: TableFile, where: str) -> Iterator[Problem]:
        target, texts = self.spec.target, train.texts
        numeric, categorical = columns(self.spec, texts)
        wanted = {where: [*numeric, *categorical]}
        yield from tables.missing_columns(other.table, wanted, other.path)
        if objective(self.spec, texts) == CLASSIFICATION:
            found = tables.texts_in(other.table, target)
            yield from labels.unseen(list(texts[target].rows), found, where)
        else:
            numeric = [*numeric, target]
            yield from _missing_numbers(self.spec, other)
        for column in numeric:
            if column in other.texts:
                yield from _words_in(other, column, texts[column].words)

    def keys(self, examples: TableFile, train: TableFile) -> list[tuple[str | float | None, ...]]:
        numeric, categorical = columns(self.spec, train.texts)
        values: list[list[str | float | None]] = []
        for column in (*numeric, *categorical, self.spec.target):
            numbers = examples.texts[column].numbers
            texts = tables.texts_in(examples.table, column)
            values.append([None if text is None else numbers.get(text, text) for text in texts])
        return list(zip(*values, strict=True))

    def remarks(self, train: TableFile) -> Iterator[tuple[str, str]]:
        spec, target = self.spec, train.texts[self.spec.target]
        for what in remarks.on_table(spec, train.table, train.texts):
            yield "task.train", what
        on_target = common_remarks.on_quantities(target.all_numbers, self.UNIT)
        if objective(spec, train.texts) == CLASSIFICATION:
            counts = Counter(target.rows)
            on_target = itertools.chain(
                remarks.on_classes(target), common_remarks.on_classes(counts, self.UNIT)
            )
        for what in on_target:
            yield "task.target", what

    def strata(self, train: TableFile) -> list[str]:
        if objective(self.spec, train.texts) == REGRESSION:
            return [""] * len(train)
        return [str(label) for label in tables.texts_in(train.table, self.spec.target)]

    def groups(self, train: TableFile) -> list[str] | None:
        group = self.spec.group
        return None if group is None else list(map(str, tables.texts_in(train.table, group)))

    def taken(self, examples: TableFile, mask: Mask) -> TableFile:
        return replace(examples, table=examples.table[mask])

    def encode(self, train: TableFile, validation: TableFile, settings: Settings) -> TabularData:
        decisive = train.table
        if not isinstance(self.spec.validation, Path):
            # A word in a validation row would otherwise count as a missing number.
            decisive = pd.concat([train.table, validation.table])
        spec = settled(self.spec, texts_in(decisive))
        encoding = learn(spec, train.table)
        learnt = encode(spec, encoding, train.table)
        held_out = encode(spec, encoding, validation.table)
        return TabularData(learnt, held_out, encoding)

    def on_test(self, settings: Settings) -> TabularData:
        data: TabularData = self.prepare(settings)
        test = self.test_examples()
        return replace(data, validation=encode(self.spec, data.encoding, test.table))


def _words_for_numbers(spec: TabularSpec, file: TableFile) -> Iterator[Problem]:
    for column in spec.numeric or ():
        yield from _words_in(replace(file, where="task.numeric"), column)
    if spec.objective == REGRESSION:
        yield from _words_in(replace(file, where="task.target"), spec.target)


def _words_in(file: TableFile, column: str, known: Iterable[str] = ()) -> Iterator[Problem]:
    """The problem of texts for numbers, but for those that are known to stand for missing ones."""
    words = file.texts[column].words.keys() - set(known)
    if not words:
        return
    texts = tables.texts_in(file.table, column)
    rows = [row for row, text in enumerate(texts) if text in words]
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
    texts = file.texts[spec.target]
    if len(texts.numbers) < len(texts.rows) and not texts.words:  # words are another problem
        numbers, _ = numbers_in(file.table, spec.target)
        yield _without_target(spec, file, np.isnan(numbers))


def _without_target(spec: TabularSpec, file: TableFile, missing: npt.ArrayLike) -> Problem:
    rows: list[int] = (np.flatnonzero(missing) + 1).tolist()
    return Problem("task.target", tables.missing_values(rows, spec.target, file.path))


class Tabular(BuiltInTask[TabularSpec]):
    DESCRIPTION = TABULAR
    SETTINGS = TabularSettings
    DATA = TabularDataSet

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base, TabularSpec.parse(task, base))

    def start(self, setup: Setup, data: TabularData) -> Run:
        from trials.tasks.tabular.table_run import TableRun

        monitor, metrics = setup.params.get("monitor", "loss"), self.metrics or frozenset()
        if monitor not in metrics:
            what = f"{monitor!r} is not a metric of this task; {nearest(monitor, metrics)}"
            raise TaskError.at("settings.monitor", what)
        return TableRun(data, TabularSettings.parse(setup.params), setup)

    def rehearse(self, setup: Setup, data: TabularData) -> dict[str, float]:
        from trials.tasks.tabular.table_run import TableRun

        run = TableRun(data, TabularSettings.parse(setup.params), setup)
        began = time.perf_counter()
        run.boosting.grow()
        grown = time.perf_counter()
        run.measured()
        found = {"step_seconds": grown - began, "evaluation_seconds": time.perf_counter() - grown}
        if setup.budget.unit is Unit.STEPS:
            size = len(run.boosting.trees.text) * setup.budget.total
            found |= {"weights_bytes": size, "checkpoint_bytes": size}
        return found

    def evaluate(self, folder: Path, data: TabularData, setup: Setup) -> dict[str, float]:
        from trials.tasks.tabular.boosting import scores_of_text
        from trials.tasks.tabular.table_run import MODEL, measure

        text = (folder / MODEL).read_text(encoding="utf-8")
        rows = data.validation
        return measure(data, rows, scores_of_text(text, rows.features))
