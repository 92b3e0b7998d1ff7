"""The parts of a starter that follow from training data: its task, columns, metric and sizes."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from hpsearch.errors import UserError
from hpsearch.study_file.starters.starters import SCRATCH, objective, quoted
from trials.contract import TaskError
from trials.descriptions.tabular import OBJECTIVES
from trials.settings import some
from trials.tasks.datasets import tables
from trials.tasks.tabular import columns as tabular_columns
from trials.tasks.tabular.columns import ColumnUse

TEXTS = ("text_classification", "text_regression")  # the kinds of task on texts in a column
TABULAR = "tabular"
TEXT_NAMES = (
    *("text", "sentence", "content", "review", "utterance", "question", "query", "message"),
    *("comment", "body"),
)
"""Usual names of a column of texts, most usual first."""
LABEL_NAMES = ("label", "category", "class", "intent", "target", "sentiment", "topic", "tag", "y")
"""Usual names of the column that is learnt, most usual first."""
IDENTIFIER = re.compile(r"(.*[^a-z])?(id|uuid|guid|key|index|row|number|no|nr)\.?|unnamed: *\d+|#|")
"""Usual names of a column that numbers or names the rows, in lower case."""
SAMPLE_ROWS = 200  # rows that are read to find the columns of texts and classes
WORDS_OF_A_TEXT = 5  # the fewest words in the middle cell of a column of texts
FILLED, DIFFERENT = 0.5, 0.5
"""The least part of the rows of a column of texts that have one, and of these the least part that
are different."""
SHOWN = 8  # the most columns that a message names
ENOUGH_TO_VALIDATE = 1000
LARGEST_FRACTION, SMALLEST_FRACTION = 0.3, 0.05  # of the rows, for validation
RARE = 1 / 3  # the part of an equal number of rows below which a class is rare
BYTES_A_TOKEN = 3
SHORTEST, LONGEST = 16, 512  # tokens of a text
EPOCHS = (9, 27, 81)
"""Budgets of a trial whose model starts from scratch: rungs at a ninth, a third and the whole."""
NEEDED_SAMPLES = 40_000  # samples, counted in every epoch, that such a model needs
PRETRAINED = {"rates": "low: 1.0e-5, high: 2.0e-4", "total": "3"}
"""The rates and epochs of a pretrained model."""


@dataclass(frozen=True)
class TaskData:
    """Training data, and the options of the command line on its task."""

    train: Path
    table: pd.DataFrame  # at least one row
    text: tuple[str, ...]  # the columns with the texts; empty to guess it
    label: tuple[str, ...]  # the columns that are learnt; empty to guess it
    model: str | None  # the model to start from; None for one from scratch


def read(train: Path) -> pd.DataFrame:
    try:
        table = tables.read(train, "--train")
    except TaskError as error:
        hint = None if train.is_file() else "check the path, or leave out --train"
        raise UserError(error.problems[0].what, hint) from None
    if table.empty:
        raise UserError(f"{train} has no rows", "it needs a header and rows")
    return table


def kind_of(table: pd.DataFrame, text: Sequence[str], label: Sequence[str]) -> str:
    """The kind of a task on a table: tabular where no column holds texts."""
    free = [column for column in _learnable(table) if column not in label]
    has_texts = text or _usual(TEXT_NAMES, free) or any(_holds_texts(table[c]) for c in free)
    return TEXTS[0] if has_texts else TABULAR


def _holds_texts(column: pd.Series) -> bool:
    """True for a column of texts, and not of words, classes or numbers, nor of some remarks."""
    cells = column.dropna()
    some = cells.head(SAMPLE_ROWS)
    words = some.map(lambda cell: len(str(cell).split()))
    if len(cells) < FILLED * len(column) or some.nunique() < DIFFERENT * len(some):
        return False
    return not words.empty and bool(words.median() >= WORDS_OF_A_TEXT)


def _learnable(table: pd.DataFrame) -> list[str]:
    """The columns that may be learnt, or learnt from: those that do not only name the rows."""
    return [column for column in table.columns if not _teaches_nothing(table, column)]


def _teaches_nothing(table: pd.DataFrame, column: str) -> bool:
    """True for a column with one value, and for one that numbers or names the rows."""
    texts = tabular_columns.texts_of(table, column)
    use = texts.use
    if use is ColumnUse.ONE_VALUE:
        return True
    rows = sum(texts.rows.values())
    if rows < len(table) or len(texts.rows) < rows:
        return False
    if use is ColumnUse.NUMBERS:
        numbers = sorted(texts.numbers.values())
        is_whole = all(number.is_integer() for number in numbers)
        counts_on = is_whole and numbers[-1] - numbers[0] == rows - 1
        return counts_on or (is_whole and bool(IDENTIFIER.fullmatch(column.strip().lower())))
    return not _holds_texts(table[column]) and rows > tabular_columns.MOST_CLASSES


def names_of(data: TaskData, kind: str, metric: str | None) -> tuple[dict[str, str], str | None]:
    """The names of a starter for its data (`starters.starter`), and the column that is learnt if it
    was guessed; without a metric, the data decides it. Raises UserError if a column is missing or
    has nothing to learn, or the kind has no such metric."""
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
    validation = max(ENOUGH_TO_VALIDATE / len(table), SMALLEST_FRACTION)
    validation = min(validation, LARGEST_FRACTION)
    names = {"label": quoted(*label), "validation": str(round(validation, 2))}
    variant = "several labels" if len(label) > 1 else kind
    if kind == TABULAR:
        predicts = _predicted(table, label[0])
        (instead,) = set(OBJECTIVES) - {predicts}
        names |= {"predicts": predicts, "instead": instead, **_features(table, label[0])}
        variant = kind if predicts == "classification" else predicts
    else:
        names |= {"text": quoted(*text), "max_length": str(_max_length(table, text))}
    counts = table[label[0]].value_counts()
    has_rare = bool((counts < RARE * counts.mean()).any())
    if variant in (TEXTS[0], TABULAR) and metric is None and has_rare:
        metric = "macro_f1"
    if kind == TABULAR:
        return names | objective(variant, metric), None if data.label else label[0]
    if data.model in (None, "scratch"):
        names |= {"model": SCRATCH, **_budget(len(table))}
    else:
        names |= PRETRAINED
    return names | objective(variant, metric), None if data.label else label[0]


def _columns(data: TaskData, kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of texts, and those that are learnt: as given, by their usual names, or because
    nothing else is left. Raises UserError if there are too few, or several might be meant."""
    text, label = data.text, data.label
    sample = data.table.head(SAMPLE_ROWS).astype(str)
    free = [name for name in _learnable(data.table) if name not in (*text, *label)]
    usual = _usual(LABEL_NAMES, [name for name in sample.columns if name not in text])
    if kind in TEXTS and not text and free:
        others = [name for name in free if name != usual] or free
        longest = max(others, key=lambda name: sample[name].str.len().sum())
        text = (_usual(TEXT_NAMES, others) or longest,)
    free = [name for name in free if name not in text]
    if not label and usual is not None and usual not in text:
        label = (usual,)
    elif not label and free:
        free = [name for name in free if data.table[name].nunique() > 1] or free
        if len(free) > 1:
            raise UserError(f"{data.train}: which column is to be learnt?", _to_choose(data, free))
        label = (free[0],)
    if not label or len(sample.columns) < 2 or (kind in TEXTS and not text):
        message = f"{data.train} has too few columns: {', '.join(data.table.columns)}"
        raise UserError(message, "name them with --text and --label")
    return text, label


def _to_choose(data: TaskData, columns: Sequence[str]) -> str:
    """A hint that names the columns that may be learnt, those with the fewest values first."""
    values = {name: data.table[name].nunique() for name in columns}
    fewest_first = sorted(columns, key=lambda name: values[name])
    named = (f"{name} ({values[name]} values)" for name in fewest_first)
    return f"name it with --label: {some(named, SHOWN)}"


def _usual(names: Sequence[str], among: Sequence[str]) -> str | None:
    """The first of the usual names that is among the columns, in any case of letters."""
    lowered = {name.strip().lower(): name for name in reversed(among)}
    return next((lowered[name] for name in names if name in lowered), None)


def _predicted(table: pd.DataFrame, target: str) -> str:
    task = {"train": "", "validation": 0.1, "target": target}
    spec = tabular_columns.TabularSpec.parse(task, Path())
    return tabular_columns.objective(spec, {target: tabular_columns.texts_of(table, target)})


def _features(table: pd.DataFrame, target: str) -> dict[str, str]:
    """The lists of columns to learn from, where the task itself would also learn from numbers of
    rows; nothing where it finds them itself."""
    task = {"train": "", "validation": 0.1, "target": target}
    spec = tabular_columns.TabularSpec.parse(task, Path())
    found = tabular_columns.columns(spec, tabular_columns.texts_in(table))
    kept = set(_learnable(table))
    numeric, categorical = ([column for column in some if column in kept] for some in found)
    if not numeric + categorical or kept.issuperset(found[0] + found[1]):
        return {}
    lists = {"numeric": numeric, "categorical": categorical}
    lines = [f"  {name}: [{', '.join(map(quoted, some))}]" for name, some in lists.items()]
    return {"features": "\n".join([*lines, "  # those that name or number the rows are left out"])}


def _max_length(table: pd.DataFrame, text: Sequence[str]) -> int:
    """The tokens that a text may have, enough for 99 of 100 texts."""
    joined = table[list(text)].astype(str).sum(axis=1)
    sizes = joined.map(lambda row: len(row.encode("utf-8", "replace")))
    sixteens = math.ceil(sizes.quantile(0.99) / BYTES_A_TOKEN / 16)
    return min(max(16 * sixteens, SHORTEST), LONGEST)


def _budget(rows: int) -> dict[str, str]:
    total = next((each for each in EPOCHS if each * rows >= NEEDED_SAMPLES), EPOCHS[-1])
    return {"total": str(total), "first": f", first_rung: {total // 9}" if total > 9 else ""}
