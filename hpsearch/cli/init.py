"""`hpsearch init`: write a commented study file to start from."""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from pathlib import Path

import yaml

from hpsearch.cli.output import note
from hpsearch.errors import UserError

KINDS = ("text_classification", "function")

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
        kind: One of `KINDS`.
        train: The training data, for a text classification.
        text: Its column with the texts; None to guess it from a CSV file.
        label: Its column with the classes; None to guess it from a CSV file.
        force: Whether to replace a file that is there.

    Raises:
        UserError: The file is there, cannot be written, or the training data does not tell its columns.
    """
    path = path / "study.yaml" if path.is_dir() else path
    if kind not in KINDS:
        raise UserError(f"there is no starter for tasks of the kind {kind!r}", f"use one of {', '.join(KINDS)}")
    if kind == "function" and any(option is not None for option in (train, text, label)):
        raise UserError("--train, --text and --label are for text_classification", "your own function reads its data")
    content = FUNCTION if kind == "function" else _text_classification(path, train, text, label)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(content)
    except FileExistsError:
        raise UserError(f"{path} is there already", "give another path, or replace it with --force") from None
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}", "check the folder and its permissions") from None
    note(f"wrote {path}; edit it, then: hpsearch check {path}")


def _text_classification(path: Path, train: Path | None, text: str | None, label: str | None) -> str:
    columns = {"text": text or "text", "label": label or "label"}
    written = "train.csv"
    if train is not None:
        columns = _columns(train, text, label)
        written = os.path.relpath(train.resolve(), path.resolve().parent)
    return TEXT_CLASSIFICATION.format(
        train=_quoted(written), text=_quoted(columns["text"]), label=_quoted(columns["label"])
    )


def _columns(train: Path, text: str | None, label: str | None) -> dict[str, str]:
    """The columns of texts and classes: as given, or as a CSV file's header and first rows suggest.

    Raises:
        UserError: The file cannot be read, or does not tell.
    """
    if text is not None and label is not None:
        return {"text": text, "label": label}
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
        with train.open(newline="", encoding="utf-8-sig") as file:
            rows = [row for row, _ in zip(csv.reader(file), range(SAMPLE_ROWS + 1), strict=False)]
    except OSError as error:
        raise UserError(f"{train} cannot be read: {error.strerror}", "check the path") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"{train} is no CSV file in UTF-8: {error}", "convert it first") from None
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


TEXT_CLASSIFICATION = """\
# A study: what is searched, for what, and with which budget. Check it with: hpsearch check
study: my-study                        # its name in the database
seed: 0                                # everything random follows from it

task:
  kind: text_classification
  train: {train}
  validation: 0.15                     # a fraction of the training data, or a file
  # test: test.csv                     # never seen by the search
  text: {text}
  label: {label}
  model: {{scratch: {{layers: 2, width: 128}}}}   # or a hub id such as distilbert-base-uncased, or a folder

settings:                              # fixed for every trial
  schedule: cosine

space:                                 # what is searched
  learning_rate: {{type: float, low: 1.0e-5, high: 3.0e-3, log: true}}   # YAML needs the point in 1.0e-5
  batch_size: {{type: categorical, choices: [16, 32, 64]}}
  warmup: {{type: float, low: 0.0, high: 0.3}}
  # momentum: {{type: float, low: 0.5, high: 0.99, when: {{optimizer: sgd}}}}   # only with that optimizer

objective: {{metric: accuracy, direction: maximize}}   # or macro_f1, mcc, loss

budget:
  trials: 20
  # gpu_hours: 1.5                     # what is reached first ends the study
  # wall_clock: 2h
  per_trial: {{epochs: 3}}               # or steps, samples, seconds

search:
  sampler: tpe                         # or random, gp, qmc and Optuna's others
  pruner: {{kind: promotion, eta: 3}}    # at each rung a third goes on; none trains every trial in full

resources: {{workers: auto, cpu: 1, gpu: auto}}   # for each worker; gpu: 0.5 puts two on a GPU
"""

FUNCTION = """\
# A study: what is searched, for what, and with which budget. Check it with: hpsearch check
study: my-study                        # its name in the database
seed: 0                                # everything random follows from it

# The function `train` of train.py beside this file:
#
#     def train(params, trial):
#         for epoch in range(1, trial.budget + 1):
#             ...
#             trial.report(epoch, {"accuracy": accuracy})
task:
  kind: train:train                    # module:function

space:                                 # what is searched; each parameter comes in `params`
  learning_rate: {type: float, low: 1.0e-5, high: 1.0e-1, log: true}   # YAML needs the point in 1.0e-5
  width: {type: int, low: 16, high: 256, log: true}
  optimizer: {type: categorical, choices: [adam, sgd]}
  momentum: {type: float, low: 0.5, high: 0.99, when: {optimizer: sgd}}

objective: {metric: accuracy, direction: maximize}   # a name that the function reports

budget:
  trials: 20
  # gpu_hours: 1.5                     # what is reached first ends the study
  # wall_clock: 2h
  per_trial: {epochs: 9}               # or steps, samples, seconds: the unit that the function reports in

search:
  sampler: tpe                         # or random, gp, qmc and Optuna's others
  pruner: {kind: promotion, eta: 3}    # at each rung a third goes on; none trains every trial in full

resources: {workers: auto, cpu: 1, gpu: auto}   # for each worker; gpu: 0.5 puts two on a GPU
"""
