"""The parts of a starter that follow from training data: its task, columns, metric and sizes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hpsearch.errors import UserError
from hpsearch.starters.starters import SCRATCH, objective, quoted
from trials.contract import TaskError
from trials.descriptions.tabular import OBJECTIVES
from trials.tasks.datasets import tables
from trials.tasks.tabular import columns as tabular_columns

TEXTS = ("text_classification", "text_regression")
"""The kinds of task on texts in a column."""
TABULAR = "tabular"
TEXT_NAMES = (
    *("text", "sentence", "content", "review", "utterance", "question", "query", "message"),
    *("comment", "body"),
)
"""Usual names of a column of texts, most usual first."""
LABEL_NAMES = ("label", "category", "class", "intent", "target", "sentiment", "topic", "tag", "y")
"""Usual names of a column of classes, most usual first."""
TARGET_NAMES = (*LABEL_NAMES, "outcome", "species", "diagnosis", "survived", "quality", "price")
"""Usual names of the column that is learnt from the others of a table."""
SAMPLE_ROWS = 200
"""Rows that are read to find the columns of texts and classes."""
WORDS_OF_A_TEXT = 5
"""The fewest words in the middle cell of a column of texts."""
ENOUGH_TO_VALIDATE = 1000
LARGEST_SHARE, SMALLEST_SHARE = 0.3, 0.05
"""Of the rows, for validation."""
RARE = 1 / 3
"""The part of an equal share of the rows below which a class is rare."""
BYTES_A_TOKEN = 3
SHORTEST, LONGEST = 16, 512
"""Tokens of a text."""
EPOCHS = (9, 27, 81)
"""Budgets of a trial whose model starts from scratch: rungs at a ninth, a third and the whole."""
NEEDED_SAMPLES = 40_000
"""Samples, counted in every epoch, that such a model needs."""
PRETRAINED = {"rates": "low: 1.0e-5, high: 2.0e-4", "total": "3"}
"""The rates and epochs of a pretrained model."""


@dataclass(frozen=True)
class TaskData:
    """Training data, and the options of the command line on its task."""

    train: Path
    table: pd.DataFrame
    """At least one row."""
    text: tuple[str, ...]
    """The columns with the texts; empty to guess it."""
    label: tuple[str, ...]
    """The columns that are learnt; empty to guess it."""
    model: str | None
    """The model to start from; None for one from scratch."""


def read(train: Path) -> pd.DataFrame:
    """The table of a data file.

    Raises:
        UserError: It cannot be read.
    """
    try:
        table = tables.read(train, "--train")
    except TaskError as error:
        hint = None if train.is_file() else "check the path, or leave out --train"
        raise UserError(error.problems[0].what, hint) from None
    if table.empty:
        raise UserError(f"{train} has no rows", "it needs a header and rows")
    return table


def kind_of(table: pd.DataFrame, text: Sequence[str]) -> str:
    """The kind of a task on a table: tabular where no column holds texts."""
    columns = list(table.columns)
    some = table.head(SAMPLE_ROWS)
    has_texts = text or _usual(TEXT_NAMES, columns) or any(_holds_texts(some[c]) for c in columns)
    return TEXTS[0] if has_texts else TABULAR


def _holds_texts(column: pd.Series) -> bool:
    """True for a column of texts, and not of words, classes or numbers."""
    words = column.dropna().map(lambda cell: len(str(cell).split()))
    return not words.empty and words.median() >= WORDS_OF_A_TEXT


def names_of(data: TaskData, kind: str, metric: str | None) -> tuple[dict[str, str], str | None]:
    """The names of a starter for its data (`starters.starter`), and the column that is learnt if it
    was guessed. Without a metric, the data decides it.

    Raises:
        UserError: A column is missing, there are too few, there is nothing to learn in one, or the
            kind has no such metric.
    """
    table = data.table
    text, label = _columns(data, kind)
    for column in (*text, *label):
        if column not in table.columns:
            has = ", ".join(map(str, table.columns[:20]))
            raise UserError(f"{data.train} has no column {column!r}", f"it has {has}")
    for column in label:
        if table[column].nunique() < 2:
            what = f"column {column!r} of {data.train} has fewer than two values to learn"
            raise UserError(what, "name another one with --label")
    names = {"label": quoted(*label), "validation": str(_validation(table))}
    variant = "several labels" if len(label) > 1 else kind
    if kind == TABULAR:
        predicts = _predicted(table, label[0])
        (instead,) = set(OBJECTIVES) - {predicts}
        names |= {"predicts": predicts, "instead": instead}
        variant = kind if predicts == "classification" else predicts
    else:
        names |= {"text": quoted(*text), "max_length": str(_max_length(table, text))}
    if variant in (TEXTS[0], TABULAR) and metric is None and _has_rare(table[label[0]]):
        metric = "macro_f1"
    if data.model in (None, "scratch"):
        names |= {"model": SCRATCH, **_budget(len(table))}
    else:
        names |= PRETRAINED
    return names | objective(variant, metric), None if data.label else label[0]


def _columns(data: TaskData, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of texts, and those that are learnt: as given, by their usual names, or by their
    contents. The last column of a table is often learnt.

    Raises:
        UserError: There are too few columns.
    """
    text, label = data.text, data.label
    some = data.table.head(SAMPLE_ROWS).astype(str)
    free = [name for name in some.columns if name not in (*text, *label)]
    if kind in TEXTS and not text and free:
        longest = max(free, key=lambda name: some[name].str.len().sum())
        text = (_usual(TEXT_NAMES, free) or longest,)
    free = [name for name in free if name not in text]
    if not label and free and kind == TABULAR:
        label = (_usual(TARGET_NAMES, free) or free[-1],)
    elif not label and free:
        least_varied = min(free, key=lambda name: some[name].nunique())
        label = (_usual(LABEL_NAMES, free) or least_varied,)
    if not label or len(some.columns) < 2 or (kind in TEXTS and not text):
        message = f"{data.train} has too few columns: {', '.join(data.table.columns)}"
        raise UserError(message, "name them with --text and --label")
    return text, label


def _usual(names: Sequence[str], among: Sequence[str]) -> str | None:
    """The first of the usual names that is among the columns, in any case of letters."""
    lowered = {name.strip().lower(): name for name in reversed(among)}
    return next((lowered[name] for name in names if name in lowered), None)


def _predicted(table: pd.DataFrame, target: str) -> str:
    """The objective that the target of a table asks for: classification or regression."""
    task = {"train": "", "validation": 0.1, "target": target}
    spec = tabular_columns.TabularSpec.parse(task, Path())
    return tabular_columns.objective(spec, {target: tabular_columns.texts_of(table, target)})


def _validation(table: pd.DataFrame) -> float:
    """The share of the rows that validates a study."""
    share = ENOUGH_TO_VALIDATE / len(table)
    return round(min(max(share, SMALLEST_SHARE), LARGEST_SHARE), 2)


def _max_length(table: pd.DataFrame, text: Sequence[str]) -> int:
    """The tokens that a text may have, enough for 99 of 100 texts."""
    joined = table[list(text)].astype(str).sum(axis=1)
    sizes = joined.map(lambda row: len(row.encode("utf-8", "replace")))
    sixteens = math.ceil(sizes.quantile(0.99) / BYTES_A_TOKEN / 16)
    return min(max(16 * sixteens, SHORTEST), LONGEST)


def _has_rare(classes: pd.Series) -> bool:
    counts = classes.value_counts()
    return bool((counts < RARE * counts.mean()).any())


def _budget(rows: int) -> dict[str, str]:
    """The epochs of a trial from scratch."""
    total = next((each for each in EPOCHS if each * rows >= NEEDED_SAMPLES), EPOCHS[-1])
    return {"total": str(total), "first": f", first_rung: {total // 9}" if total > 9 else ""}
