"""The data of a text classification task: from files to flat arrays of tokens.

Everything a trial needs is in one `TextData`, made once a node and shared by its workers: the
tokens, the labels, and the tokenizer's files, which a worker only copies into its checkpoints.
"""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from trials.contract import Problem, TaskError
from trials.data.batching import Sequences
from trials.settings import Settings
from trials.tasks import labels, splitting, tables
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.spec import TextSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class TextData:
    """Prepared data: plain arrays, which may be read-only, and a little metadata.

    Args:
        train: The training texts as tokens, special tokens included.
        train_labels: Their classes, int64, shape (n,).
        validation: The validation texts as tokens.
        validation_labels: Their classes.
        labels: The names of the classes; a class's number is its place.
        padding: The token that fills a batch.
        vocabulary: How many tokens the tokenizer knows.
        tokenizer_files: The tokenizer as `save_pretrained` writes it, by file name.
        fingerprint: SHA-256 of the texts, labels and their split.
    """

    train: Sequences
    train_labels: npt.NDArray[np.int64]
    validation: Sequences
    validation_labels: npt.NDArray[np.int64]
    labels: tuple[str, ...]
    padding: int
    vocabulary: int
    tokenizer_files: dict[str, bytes]
    fingerprint: str


@dataclass(frozen=True)
class Examples:
    """Texts and their labels, row by row; None if the file has nothing."""

    texts: list[str | None]
    labels: list[str | None]


TYPES: tuple[type, ...] = (TextData, Sequences)


def prepare(spec: TextSpec, settings: Settings) -> TextData:
    """Read, check, split and tokenise.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = _read(spec)
    if problems or train is None or validation is None:
        raise TaskError(problems)
    names = tuple(labels.class_names(train.labels))
    train_texts = _as_texts(train.texts)
    validation_texts = _as_texts(validation.texts)
    length = settings.max_length
    tokenizer = text_tokenizer.load(spec.model, train_texts, length)
    return TextData(
        train=_tokenise(tokenizer, train_texts, length),
        train_labels=labels.numbers_of(train.labels, names),
        validation=_tokenise(tokenizer, validation_texts, length),
        validation_labels=labels.numbers_of(validation.labels, names),
        labels=names,
        padding=text_tokenizer.padding_of(tokenizer),
        vocabulary=len(tokenizer),
        tokenizer_files=text_tokenizer.files_of(tokenizer),
        fingerprint=_fingerprint(train, validation),
    )


def problems_with(spec: TextSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems
    too."""
    train, _, problems = _read(spec)
    if spec.test is not None:
        test, more = _examples(spec, spec.test, "task.test")
        problems = problems + more
        if test is not None and train is not None:
            problems += labels.unseen(train.labels, test.labels, "task.test")
    return problems


def on_test(spec: TextSpec, data: TextData, settings: Settings) -> TextData:
    """The data with the texts of the test file, which has no problems, in place of the validation
    texts."""
    assert spec.test is not None
    test, _ = _examples(spec, spec.test, "task.test")
    assert test is not None
    tokenizer = text_tokenizer.again(spec.model, data.tokenizer_files)
    return dataclasses.replace(
        data,
        validation=_tokenise(tokenizer, _as_texts(test.texts), settings.max_length),
        validation_labels=labels.numbers_of(test.labels, data.labels),
    )


# ------------------------------------------------------------------------------------------ reading


def _read(spec: TextSpec) -> tuple[Examples | None, Examples | None, list[Problem]]:
    """The training and validation examples, as far as they can be read, and what is wrong with
    them."""
    train, problems = _examples(spec, spec.train, "task.train")
    if train is not None:
        problems += labels.problems_with(train.labels, "task.label")
    chosen = spec.validation
    if isinstance(chosen, Path):
        validation, more = _examples(spec, chosen, "task.validation")
        problems += more
        if train is not None and validation is not None:
            problems += labels.unseen(train.labels, validation.labels, "task.validation")
        return train, validation, problems
    if train is None or problems:
        return train, None, problems
    held_out = splitting.stratified(_as_texts(train.labels), chosen, spec.split_seed)
    if problems := splitting.too_small(chosen, held_out):
        return train, None, problems
    return _rows(train, ~held_out), _rows(train, held_out), []


def _examples(spec: TextSpec, path: Path, where: str) -> tuple[Examples | None, list[Problem]]:
    """The examples in a file, or None if it has none to give; and its problems."""
    try:
        columns = tables.text_columns(spec.fields, path, where)
    except TaskError as error:
        return None, error.problems
    problems = tables.gaps_in(columns, spec.fields, path)
    return Examples(columns["text"], columns["label"]), problems


# ---------------------------------------------------------------------------------------- splitting


def _rows(examples: Examples, mask: npt.NDArray[np.bool_]) -> Examples:
    texts = list(itertools.compress(examples.texts, mask))
    names = list(itertools.compress(examples.labels, mask))
    return Examples(texts, names)


def _as_texts(values: list[str | None]) -> list[str]:
    return list(map(str, values))


# --------------------------------------------------------------------------------------- tokenising


def _tokenise(tokenizer: PreTrainedTokenizerBase, texts: list[str], max_length: int) -> Sequences:
    encoded = tokenizer(texts, truncation=True, max_length=max_length, return_attention_mask=False)
    return Sequences.of(encoded["input_ids"])


def _fingerprint(*parts: Examples) -> str:
    digest = hashlib.sha256()
    for part in parts:
        for text, label in zip(part.texts, part.labels, strict=True):
            digest.update(f"{text}\0{label}\0".encode())
        digest.update(b"\1")
    return digest.hexdigest()
