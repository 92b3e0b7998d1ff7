"""`hpsearch init`: write a study file with comments, to start from."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from hpsearch.cli.output import note
from hpsearch.cli.places import refuse_taken, whole_file
from hpsearch.cli.study_files import schema
from hpsearch.errors import UserError
from hpsearch.starters import command_lines
from hpsearch.starters.starters import SCRATCH, STARTERS, objective, starter
from trials.contract import TaskError

if TYPE_CHECKING:
    import pandas as pd

    from hpsearch.starters.data_facts import DataFacts

TEXTS = ("text_classification", "text_regression")
"""The kinds that learn something of texts in a column."""
TABULAR = "tabular"
LOOKED_AT = (*TEXTS, TABULAR)
"""The kinds whose data is looked at: their columns are guessed, and the rest follows from them."""
WITH_MODEL = (*TEXTS, "token_classification", "language_modeling", "sequence_to_sequence")
PRETRAINED = "distilbert-base-uncased"
"""The model where there are too few texts for one from scratch, and it can be had."""
UNTOLD = re.compile(r"(train|training|data|dataset|all)?", re.IGNORECASE)
"""Names of data files that say nothing of the data."""

TEXT_NAMES = (
    "text",
    "sentence",
    "content",
    "review",
    "utterance",
    "question",
    "query",
    "message",
    "comment",
    "body",
)
"""Usual names of a column of texts, most usual first."""

LABEL_NAMES = ("label", "category", "class", "intent", "target", "sentiment", "topic", "tag", "y")
"""Usual names of a column of classes, most usual first."""
TARGET_NAMES = (*LABEL_NAMES, "outcome", "species", "diagnosis", "survived", "quality", "price")
"""Those of what is learnt from the other columns of a table."""

SAMPLE_ROWS = 200
"""Rows that are read to tell texts from classes where the names of columns do not."""


@dataclass(frozen=True)
class DataOptions:
    """What the command line says about the training data.

    Args:
        train: Its path.
        text: Of a task of `TEXTS`, the column with the texts, or the two of pairs; empty to guess
            it from the data.
        label: The column with the classes or numbers, or those of several labels; empty to guess it
            from the data.
        model: The model to start from; None to decide it by the data.
    """

    train: Path | None = None
    text: tuple[str, ...] = ()
    label: tuple[str, ...] = ()
    model: str | None = None

    @property
    def names_columns(self) -> bool:
        """Whether a column is given."""
        return bool(self.text or self.label)

    @property
    def given(self) -> bool:
        """Whether anything is given."""
        return self.train is not None or self.names_columns or self.model is not None


@dataclass(frozen=True)
class StudyOptions:
    """What the command line says about the study.

    Args:
        name: Its name; None to take that of the data.
        metric: What it optimizes; None to decide it by the data.
    """

    name: str | None = None
    metric: str | None = None


NOTHING = StudyOptions()


def write_starter(
    path: Path, kind: str | None, data: DataOptions, wanted: StudyOptions = NOTHING, *, force: bool
) -> None:
    """Write a study file, and beside it the schema that editors use to complete and check it.

    Args:
        path: The file; a folder gets a study.yaml.
        kind: One of `STARTERS`; None to decide it by the data.
        data: The training data.
        wanted: The study.
        force: Whether to replace a file that exists.

    Raises:
        UserError: The file exists or cannot be written, the data cannot be read or its columns
            cannot be guessed, or another program's file has the name of the schema.
    """
    path = _file_at(path)
    refuse_taken(path, force=force)
    table = None
    if data.train is not None and kind in (None, *LOOKED_AT):
        from hpsearch.starters import data_facts

        table = data_facts.read(data.train)
    kind = kind or _kind_of(table, data)
    _refuse_options(path, kind, data)
    names = {"study": _study_name(path, wanted.name, data.train)}
    if data.train is not None:
        names["train"] = _quoted(os.path.relpath(data.train.resolve(), path.resolve().parent))
    if data.model is not None:
        names["model"] = _quoted(data.model)
    if kind in LOOKED_AT:
        names |= _looked_at(kind, table, data, wanted.metric)
    else:
        names |= objective(kind, wanted.metric)
    if table is not None and names.get("model", SCRATCH) == SCRATCH:
        names |= _measured(kind, names, table, path)
    _write_both(path, starter(kind, **names), force=force)


def _kind_of(table: pd.DataFrame | None, data: DataOptions) -> str:
    """The kind of task where none is given: tabular where no column holds texts."""
    if table is None or data.text:
        return TEXTS[0]
    from hpsearch.starters.data_facts import holds_texts

    some = table.head(SAMPLE_ROWS)
    columns = list(table.columns)
    if _usual(TEXT_NAMES, columns) or any(holds_texts(some, column) for column in columns):
        return TEXTS[0]
    note(f"no column of {data.train} holds texts: the study learns from a table")
    return TABULAR


def _study_name(path: Path, name: str | None, train: Path | None) -> str:
    """The name of the study: as given, or that of the data, and none that a study file of the
    folder has."""
    if name is not None:
        return _quoted(name)
    name = "my-study"
    if train is not None:
        place = train.resolve()
        name = place.parent.name if UNTOLD.fullmatch(place.stem) else place.stem
        name = re.sub(r"[^A-Za-z0-9_]+", "-", name).strip("-")[:90] or "my-study"
    taken = set()
    for other in path.resolve().parent.glob("*.y*ml"):
        if other.name != path.name:
            taken.update(re.findall(r"^study: (\S+)", other.read_text("utf-8", "replace"), re.M))
    names = [name, *(f"{name}-{number}" for number in range(2, len(taken) + 2))]
    return _quoted(next(each for each in names if _quoted(each) not in taken))


def _looked_at(
    kind: str, table: pd.DataFrame | None, data: DataOptions, metric: str | None
) -> dict[str, str]:
    """What a starter names of a task whose data may be looked at."""
    columns = _columns(kind, table, data)
    text, label = columns["text"], columns["label"]
    variant = "several labels" if len(label) > 1 else kind
    names = {name: _named(each) for name, each in columns.items() if each}
    if table is None:
        return names | objective(variant, metric)
    for column in (*text, *label):
        if column not in table.columns:
            has = ", ".join(map(str, table.columns[:20]))
            raise UserError(f"{data.train} has no column {column!r}", f"it has {has}")
    from hpsearch.starters import data_facts

    if kind == TABULAR:
        predicts, instead = _predicted(table, label[0])
        names |= {"predicts": predicts, "instead": instead}
        variant = kind if predicts == "classification" else predicts
    has_classes = variant in (TEXTS[0], TABULAR)
    facts = data_facts.facts_of(table, text, label[0] if has_classes else None)
    if kind == TEXTS[0] and not data.label:
        _hint_at_numbers(table, label[0])
    names["validation"] = str(facts.validation)
    if text:
        names["max_length"] = str(facts.max_length)
        names |= _model(data, facts)
    return names | objective(variant, metric or ("macro_f1" if facts.rare else None))


def _predicted(table: pd.DataFrame, target: str) -> tuple[str, str]:
    """What the target of a table asks for, and the other."""
    from trials.descriptions.tabular import OBJECTIVES
    from trials.tasks.tabular.columns import objective as asked
    from trials.tasks.tabular.spec import TabularSpec

    task = {"train": "", "validation": 0.1, "target": target}
    predicts = asked(TabularSpec.parse(task, Path()), table)
    (instead,) = set(OBJECTIVES) - {predicts}
    return predicts, instead


def _model(data: DataOptions, facts: DataFacts) -> dict[str, str]:
    """The model of a task on texts, and what suits one that is pretrained."""
    from hpsearch.starters.data_facts import TEXTS_FROM_SCRATCH, can_be_had

    tuned = {"rates": "low: 1.0e-5, high: 2.0e-4", "total": "3"}
    if data.model not in (None, "scratch"):
        return tuned
    if data.model or facts.rows >= TEXTS_FROM_SCRATCH:
        return {"model": SCRATCH}
    what = f"{facts.rows} texts are too few for a model from scratch"
    if not can_be_had(PRETRAINED):
        note(f"{what}, but {PRETRAINED} is not on this machine and its hub is not reached")
        note("the study starts from scratch; name the folder of a pretrained model with --model")
        return {"model": SCRATCH}
    note(f"{what}: the study starts from {PRETRAINED} (--model names another one)")
    return tuned | {"model": PRETRAINED}


def _measured(kind: str, names: dict[str, str], table: pd.DataFrame, path: Path) -> dict[str, str]:
    """The budget of a trial, by how long one step takes here.

    Raises:
        UserError: Nothing can be learnt of the data.
    """
    from hpsearch.starters import data_facts
    from hpsearch.study_file.reading import parse

    spec = parse(starter(kind, **names), base=path.resolve().parent)
    try:
        step_s, samples = data_facts.step_seconds(spec, table)
    except TaskError as error:
        hint = "mend the data, or name other columns with --label and --text"
        raise UserError(f"{names['train']}: {error.problems[0].what}", hint) from None
    return data_facts.budget(names, table, step_s, samples)


def _file_at(path: Path) -> Path:
    try:
        return path / "study.yaml" if path.is_dir() else path
    except OSError as error:
        message = f"{path} cannot be written: {error.strerror}"
        raise UserError(message, "choose another name") from None


def _write_both(path: Path, content: str, *, force: bool) -> None:
    """Write a study file and the schema beside it, and say what comes next."""
    schema_path = path.parent / schema.NAME
    schema.refuse_others(schema_path)
    refuse_taken(path, force=force)
    with whole_file(path) as unfinished:
        unfinished.write_text(f"{schema.first_line(schema.NAME)}\n{content}", encoding="utf-8")
        schema.write(schema_path)
    note(f"wrote {path}, and {schema.NAME}, which editors use to complete and check it")
    note(f"edit it, then run: hpsearch check {path}")


def write_from_command(
    path: Path, line: str, wanted: StudyOptions = NOTHING, *, force: bool
) -> None:
    """Write a study file that searches the numbers of a command line.

    Args:
        path: The file; a folder gets a study.yaml.
        line: The command line.
        wanted: The study.
        force: Whether to replace a file that exists.

    Raises:
        UserError: The command has nothing to search, or as `write_starter` says.
    """
    found = command_lines.found_in(line)
    path = _file_at(path)
    names = {
        "study": _study_name(path, wanted.name, None),
        **objective("command", wanted.metric),
        **found.as_names(),
    }
    _write_both(path, starter("command", **names), force=force)
    for text in command_lines.lines(found):
        note(text)


def write_from_program(
    path: Path, source: str, wanted: StudyOptions = NOTHING, *, force: bool
) -> None:
    """Write the study file that another program's search becomes, and say what it lacks.

    Args:
        path: The file; a folder gets a study.yaml.
        source: The file of a W&B sweep, or a storage of Optuna's.
        wanted: The study, by its name.
        force: Whether to replace a file that exists.

    Raises:
        UserError: The source cannot be read or has nothing to search, or the study file exists.
    """
    from hpsearch.bridges.sources import translated

    text, remarks = translated(source, wanted.name)
    _write_both(_file_at(path), text, force=force)
    for remark in remarks:
        note(remark)


def _refuse_options(path: Path, kind: str, data: DataOptions) -> None:
    if kind not in STARTERS:
        message = f"there is no starter for tasks of the kind {kind!r}"
        raise UserError(message, f"use one of {', '.join(STARTERS)}")
    if kind in ("function", "command") and data.given:
        message = "--train, --text, --label and --model are for built-in tasks"
        raise UserError(message, "your own code reads its data")
    for option, given, kinds in (
        ("--text", data.text, TEXTS),
        ("--label", data.label, LOOKED_AT),
        ("--model", data.model, WITH_MODEL),
    ):
        if given and kind not in kinds:
            message = f"{option} is for {', '.join(kinds)}, and the task is {kind}"
            raise UserError(message, f"edit {path} once it is written")
    if len(data.text) > 2:
        message = f"--text is given {len(data.text)} times, and a pair has two texts"
        raise UserError(message, "give it once or twice")
    if kind != TEXTS[0] and len(data.label) > 1:
        message = f"--label is given {len(data.label)} times, and {kind} has one"
        raise UserError(message, f"give it once, or use --kind {TEXTS[0]}")


def _hint_at_numbers(table: pd.DataFrame, label: str) -> None:
    """Say which kind learns numbers, if the column that was guessed holds some with fractions."""
    from trials.tasks.datasets.tables import texts_in

    try:
        numbers = [float(cell) for cell in texts_in(table.head(SAMPLE_ROWS), label) if cell]
    except ValueError:
        return  # some are words: they are classes
    if any(math.isfinite(number) and not number.is_integer() for number in numbers):
        what = f"column {label} holds numbers, each of which would be a class"
        note(f"{what}; to learn a number for each text, use --kind {TEXTS[1]}")


def _named(columns: Sequence[str]) -> str:
    """Columns as YAML: one by its name, several as a list."""
    if len(columns) == 1:
        return _quoted(columns[0])
    quoted = yaml.safe_dump(
        list(columns), default_flow_style=True, allow_unicode=True, width=10_000
    )
    return quoted.strip()


def _columns(
    kind: str, table: pd.DataFrame | None, data: DataOptions
) -> dict[str, tuple[str, ...]]:
    """The columns of texts and of what is learnt: as given, by their usual names, or by what is in
    them. A table has none of texts, and its last or first column is often what is learnt.

    Raises:
        UserError: There are too few columns.
    """
    text, label = data.text, data.label
    if table is None:
        return {"text": text, "label": label}
    some = table.head(SAMPLE_ROWS)
    free = [name for name in some.columns if name not in (*text, *label)]
    if not text and kind in TEXTS:
        found = _usual(TEXT_NAMES, free) or _longest(some, free)
        text = () if found is None else (found,)
    free = [name for name in free if name not in text]
    if not label and free:
        if kind == TABULAR:
            label = (_usual(TARGET_NAMES, free) or _at_an_end(some, free),)
        else:
            label = (_usual(LABEL_NAMES, free) or _least_varied(some, free),)
        note(f"what is learnt is column {label[0]} (--label names another one)")
    if not label or (kind in TEXTS and not text):
        message = f"{data.train} has too few columns: {', '.join(table.columns)}"
        raise UserError(message, "name them with --text and --label")
    return {"text": text, "label": label}


def _usual(names: Sequence[str], among: list[str]) -> str | None:
    """The first of the usual names that is among the columns, in any case of letters."""
    lowered = {name.strip().lower(): name for name in reversed(among)}
    for name in names:
        if name in lowered:
            return lowered[name]
    return None


def _longest(some: pd.DataFrame, among: list[str]) -> str | None:
    """The column with the most characters."""
    return max(among, key=lambda name: some[name].astype(str).str.len().sum(), default=None)


def _least_varied(some: pd.DataFrame, among: list[str]) -> str:
    """The column with the fewest different values."""
    return min(among, key=lambda name: some[name].astype(str).nunique())


def _at_an_end(some: pd.DataFrame, among: list[str]) -> str:
    """The last column, or the first one where that alone has names of classes."""
    first, last = among[0], among[-1]
    return first if _names_classes(some, first) and not _names_classes(some, last) else last


def _names_classes(some: pd.DataFrame, column: str) -> bool:
    """Whether a column has words, each of which stands in several rows."""
    from trials.tasks.datasets.tables import texts_in

    words = [cell for cell in texts_in(some, column) if cell]
    has_numbers = all(re.fullmatch(r"[-+.,:/eE\d\s]+", word) for word in words)
    return not has_numbers and 1 < len(set(words)) <= len(words) / 2


def _quoted(text: str) -> str:
    """A text as YAML: plain where YAML reads it back as it is, in quotes elsewhere."""
    try:
        if yaml.safe_load(text) == text:
            return text
    except (yaml.YAMLError, ValueError):
        pass  # YAML reads something else in it
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10_000).strip()
