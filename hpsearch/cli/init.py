"""`hpsearch init`: write a commented study file to start from."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from hpsearch.cli.output import note
from hpsearch.cli.starters import STARTERS, starter
from hpsearch.errors import UserError
from trials import files

TEXT = "text_classification"
"""The kind whose columns are guessed."""

TEXT_NAMES = ("text", "sentence", "content", "review", "utterance", "question", "query", "message", "comment", "body")
"""Usual names of a column of texts, most usual first."""

LABEL_NAMES = ("label", "category", "class", "intent", "target", "sentiment", "topic", "tag", "y")
"""Usual names of a column of classes, most usual first."""

SAMPLE_ROWS = 200
"""Rows looked at to tell texts from classes where the names do not tell."""


def init(path: Path, kind: str, train: Path | None, text: str | None, label: str | None, *, force: bool) -> None:
    """Write a study file.

    Args:
        path: Where; a folder gets a study.yaml.
        kind: One of `STARTERS`.
        train: The training data.
        text: Of a text classification, the column with the texts; None to guess it from a CSV file.
        label: And the column with the classes; None to guess it from a CSV file.
        force: Whether to replace a file that is there.

    Raises:
        UserError: The file is there, cannot be written, or the training data does not tell its columns.
    """
    try:
        path = path / "study.yaml" if path.is_dir() else path
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", "choose another name") from None
    if kind not in STARTERS:
        raise UserError(f"there is no starter for tasks of the kind {kind!r}", f"use one of {', '.join(STARTERS)}")
    if kind == "function" and any(option is not None for option in (train, text, label)):
        raise UserError("--train, --text and --label are for built-in tasks", "your own function reads its data")
    if kind != TEXT and (text is not None or label is not None):
        raise UserError(f"--text and --label are for {TEXT}", f"edit the columns in {path} once it is written")
    columns = _columns(train, text, label) if kind == TEXT else {}
    written = None if train is None else _quoted(os.path.relpath(train.resolve(), path.resolve().parent))
    content = starter(kind, written, **{name: _quoted(column) for name, column in columns.items()})
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise UserError(f"{path} is there already", "give another path, or replace it with --force") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", "check the folder and its permissions") from None
    note(f"wrote {path}; edit it, then: hpsearch check {path}")


def _columns(train: Path | None, text: str | None, label: str | None) -> dict[str, str]:
    """The columns of texts and classes: as given, or as a CSV file's header and first rows suggest, or the usual ones.

    Raises:
        UserError: The file cannot be read, or does not tell.
    """
    if train is None or (text is not None and label is not None):
        return {"text": text or "text", "label": label or "label"}
    if train.suffix.lower() != ".csv":
        raise UserError(f"{train} is no CSV file: its columns are not guessed", "name them with --text and --label")
    rows = _first_rows(train)
    header = rows[0]
    free = [name for name in header if name not in (text, label)]
    text = text or _usual(TEXT_NAMES, free) or _longest(rows, free)
    free = [name for name in free if name != text]
    label = label or _usual(LABEL_NAMES, free) or _least_varied(rows, free)
    if text is None or label is None:
        raise UserError(f"{train} has too few columns: {', '.join(header)}", "name them with --text and --label")
    return {"text": text, "label": label}


def _first_rows(train: Path) -> list[list[str]]:
    """The header and some rows."""
    try:
        files.refuse_odd(train)
        files.refuse_binary(train)
        with train.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row, _ in zip(csv.reader(file), range(SAMPLE_ROWS + 1), strict=False)]
    except OSError as error:
        raise UserError(f"{train} cannot be read: {error.strerror}", "check the path") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{train} is no CSV file in UTF-8: {error}", "convert it, or name --text and --label") from None
    except ValueError as error:
        raise UserError(f"{train} {error}", "or name its columns with --text and --label") from None
    if not rows or not rows[0]:
        raise UserError(f"{train} is empty", "it needs a header and rows")
    return rows


def _usual(names: Sequence[str], among: list[str]) -> str | None:
    lowered = {name.strip().lower(): name for name in reversed(among)}
    return next((lowered[name] for name in names if name in lowered), None)


def _longest(rows: list[list[str]], among: list[str]) -> str | None:
    return max(among, key=lambda name: sum(map(len, _cells(rows, name))), default=None)


def _least_varied(rows: list[list[str]], among: list[str]) -> str | None:
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
        pass  # it means something else to YAML: quotes it is
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=10_000).strip()
