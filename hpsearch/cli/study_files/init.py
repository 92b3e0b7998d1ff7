"""`hpsearch init`: write a study file with comments, to start from."""

from __future__ import annotations

import csv
import itertools
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from hpsearch.cli.output import note
from hpsearch.cli.places import refuse_taken, whole_file
from hpsearch.cli.study_files import command_starter, schema
from hpsearch.cli.study_files.starters import ONE_CLASS, SEVERAL_LABELS, STARTERS, starter
from hpsearch.errors import UserError
from trials.data import files

TEXTS = ("text_classification", "text_regression")
"""The kinds whose columns are guessed."""

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

SAMPLE_ROWS = 200
"""Rows that are read to tell texts from classes where the names of columns do not."""


@dataclass(frozen=True)
class DataOptions:
    """What the command line says about the training data.

    Args:
        train: Its path.
        text: Of a task of `TEXTS`, the column with the texts, or the two of pairs; empty to guess
            it from a CSV file.
        label: The column with the classes or numbers, or those of several labels; empty to guess it
            from a CSV file.
    """

    train: Path | None = None
    text: tuple[str, ...] = ()
    label: tuple[str, ...] = ()

    @property
    def names_columns(self) -> bool:
        """Whether a column is given."""
        return bool(self.text or self.label)

    @property
    def given(self) -> bool:
        """Whether anything is given."""
        return self.train is not None or self.names_columns


def write_starter(path: Path, kind: str, data: DataOptions, *, force: bool) -> None:
    """Write a study file, and beside it the schema that editors use to complete and check it.

    Args:
        path: The file; a folder gets a study.yaml.
        kind: One of `STARTERS`.
        data: The training data.
        force: Whether to replace a file that exists.

    Raises:
        UserError: The file exists or cannot be written, its columns cannot be guessed, or another
            program's file has the name of the schema.
    """
    path = _file_at(path)
    _refuse_options(path, kind, data)
    names = _names(path, kind, data)
    _write_both(path, starter(kind, **names), force=force)


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


def write_from_command(path: Path, line: str, *, force: bool) -> None:
    """Write a study file that searches the numbers of a command line.

    Args:
        path: The file; a folder gets a study.yaml.
        line: The command line.
        force: Whether to replace a file that exists.

    Raises:
        UserError: The command has nothing to search, or as `write_starter` says.
    """
    found = command_starter.found_in(line)
    _write_both(_file_at(path), starter("command", **found.as_names()), force=force)
    for text in command_starter.lines(found):
        note(text)


def _refuse_options(path: Path, kind: str, data: DataOptions) -> None:
    if kind not in STARTERS:
        message = f"there is no starter for tasks of the kind {kind!r}"
        raise UserError(message, f"use one of {', '.join(STARTERS)}")
    if kind in ("function", "command") and data.given:
        message = "--train, --text and --label are for built-in tasks"
        raise UserError(message, "your own code reads its data")
    if kind not in TEXTS and data.names_columns:
        message = f"--text and --label are for {' and '.join(TEXTS)}"
        raise UserError(message, f"edit the columns in {path} once it is written")
    if len(data.text) > 2:
        message = f"--text is given {len(data.text)} times, and a pair has two texts"
        raise UserError(message, "give it once or twice")
    if kind != TEXTS[0] and len(data.label) > 1:
        message = f"--label is given {len(data.label)} times, and {kind} has one number for a text"
        raise UserError(message, f"give it once, or use --kind {TEXTS[0]}")


def _names(path: Path, kind: str, data: DataOptions) -> dict[str, str]:
    """What a starter names, as YAML: its columns and its data, as far as they are known."""
    names = {}
    if kind in TEXTS:
        columns = _columns(data)
        names = {name: _named(each) for name, each in columns.items()}
        several = len(columns["label"]) > 1
        names |= SEVERAL_LABELS if several else ONE_CLASS
        if kind == TEXTS[0] and data.train is not None and not data.label:
            _hint_at_numbers(data.train, columns["label"])
    if data.train is not None:
        folder = path.resolve().parent
        names["train"] = _quoted(os.path.relpath(data.train.resolve(), folder))
    return names


def _hint_at_numbers(train: Path, label: tuple[str, ...]) -> None:
    """Say which kind learns numbers, if the column that was guessed holds some with fractions."""
    if train.suffix.lower() != ".csv":
        return
    try:
        numbers = [float(cell) for cell in _cells(_first_rows(train), label[0]) if cell]
    except ValueError:
        return  # some are words: they are classes
    if any(math.isfinite(number) and not number.is_integer() for number in numbers):
        what = f"column {label[0]} holds numbers, each of which would be a class"
        note(f"{what}; to learn a number for each text, use --kind {TEXTS[1]}")


def _named(columns: Sequence[str]) -> str:
    """Columns as YAML: one by its name, several as a list."""
    if len(columns) == 1:
        return _quoted(columns[0])
    quoted = yaml.safe_dump(
        list(columns), default_flow_style=True, allow_unicode=True, width=10_000
    )
    return quoted.strip()


def _columns(data: DataOptions) -> dict[str, tuple[str, ...]]:
    """The columns of texts and classes: as given, as a CSV file suggests, or the usual ones.

    Raises:
        UserError: The file cannot be read, or its columns cannot be guessed.
    """
    train, text, label = data.train, data.text, data.label
    if train is None or (text and label):
        return {"text": text or ("text",), "label": label or ("label",)}
    if train.suffix.lower() != ".csv":
        message = f"{train} is not a CSV file: its columns are not guessed"
        raise UserError(message, "name them with --text and --label")
    return _guessed_columns(train, text, label)


def _guessed_columns(
    train: Path, text: tuple[str, ...], label: tuple[str, ...]
) -> dict[str, tuple[str, ...]]:
    """The columns of a CSV file: as given, by their usual names, or by what is in them."""
    rows = _first_rows(train)
    header = rows[0]
    free = [name for name in header if name not in (*text, *label)]
    if not text:
        found = _usual(TEXT_NAMES, free) or _longest(rows, free)
        text = () if found is None else (found,)
    free = [name for name in free if name not in text]
    if not label:
        found = _usual(LABEL_NAMES, free) or _least_varied(rows, free)
        label = () if found is None else (found,)
    if not text or not label:
        message = f"{train} has too few columns: {', '.join(header)}"
        raise UserError(message, "name them with --text and --label")
    return {"text": text, "label": label}


def _first_rows(train: Path) -> list[list[str]]:
    """The header and some rows."""
    try:
        files.refuse_odd(train)
        files.refuse_binary(train)
        with train.open(newline="", encoding="utf-8-sig") as file:
            rows = list(itertools.islice(csv.reader(file), SAMPLE_ROWS + 1))
    except OSError as error:
        message = f"{train} cannot be read: {error.strerror}"
        raise UserError(message, "check the path") from None
    except (UnicodeDecodeError, csv.Error) as error:
        message = f"{train} is not a CSV file in UTF-8: {error}"
        raise UserError(message, "convert it, or name --text and --label") from None
    except ValueError as error:
        message = f"{train} {error}"
        raise UserError(message, "or name its columns with --text and --label") from None
    if not rows or not rows[0]:
        raise UserError(f"{train} is empty", "it needs a header and rows")
    return rows


def _usual(names: Sequence[str], among: list[str]) -> str | None:
    """The first of the usual names that is among the columns, in any case of letters."""
    lowered = {name.strip().lower(): name for name in reversed(among)}
    for name in names:
        if name in lowered:
            return lowered[name]
    return None


def _longest(rows: list[list[str]], among: list[str]) -> str | None:
    """The column with the most characters."""
    return max(among, key=lambda name: sum(map(len, _cells(rows, name))), default=None)


def _least_varied(rows: list[list[str]], among: list[str]) -> str | None:
    """The column with the fewest different values."""
    return min(among, key=lambda name: len(set(_cells(rows, name))), default=None)


def _cells(rows: list[list[str]], name: str) -> list[str]:
    column = rows[0].index(name)
    return [row[column] for row in rows[1:] if len(row) > column]


def _quoted(text: str) -> str:
    """A text as YAML: plain where YAML reads it back as it is, in quotes elsewhere."""
    try:
        if yaml.safe_load(text) == text:
            return text
    except (yaml.YAMLError, ValueError):
        pass  # YAML reads something else in it
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10_000).strip()
