"""The data of a text classification task: from files to flat arrays of tokens.

Everything a trial needs is in one `TextData`, made once a node and shared by its workers: the tokens, the labels,
and the tokenizer's files, which a worker only copies into its checkpoints.
"""

from __future__ import annotations

import dataclasses
import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from trials.batching import Sequences
from trials.contract import Problem, TaskError
from trials.tasks import labels, splitting, tables, text_tokenizer
from trials.tasks.pretrained import Pretrained
from trials.tasks.text_classification import Scratch, TextSpec

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
    """Texts and their labels, row by row; None where the file has nothing."""

    texts: list[str | None]
    labels: list[str | None]


def prepare(spec: TextSpec, model: Pretrained | Scratch, max_length: int) -> TextData:
    """Read, check, split and tokenise.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = _read(spec)
    if problems or train is None or validation is None:
        raise TaskError(problems)
    names = labels.class_names(train.labels)
    numbers = {name: number for number, name in enumerate(names)}
    train_texts, validation_texts = _texts(train), _texts(validation)
    tokenizer = text_tokenizer.load(model, train_texts, max_length)
    return TextData(
        train=_tokenise(tokenizer, train_texts, max_length),
        train_labels=np.array([numbers[str(label)] for label in train.labels], dtype=np.int64),
        validation=_tokenise(tokenizer, validation_texts, max_length),
        validation_labels=np.array([numbers[str(label)] for label in validation.labels], dtype=np.int64),
        labels=tuple(names),
        padding=text_tokenizer.padding_of(tokenizer),
        vocabulary=len(tokenizer),
        tokenizer_files=_files_of(tokenizer),
        fingerprint=_fingerprint(train, validation),
    )


def problems_with(spec: TextSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems too."""
    train, _, problems = _read(spec)
    if spec.test is not None:
        test, more = _examples(spec, spec.test, "task.test")
        problems = problems + more
        if test is not None and train is not None:
            problems += labels.unseen(train.labels, test.labels, "task.test")
    return problems


def on_test(spec: TextSpec, model: Pretrained | Scratch, data: TextData, max_length: int) -> TextData:
    """The data with the test texts in the place of the validation texts.

    Args:
        spec: The task, with a test file that has no problems.
        model: Whose tokenizer made the data.
        data: What `prepare` made of it.
        max_length: The longest text, in tokens.
    """
    assert spec.test is not None
    test, _ = _examples(spec, spec.test, "task.test")
    assert test is not None
    tokenizer = text_tokenizer.again(model, data.tokenizer_files)
    numbers = {name: number for number, name in enumerate(data.labels)}
    return dataclasses.replace(
        data,
        validation=_tokenise(tokenizer, _texts(test), max_length),
        validation_labels=np.array([numbers[str(label)] for label in test.labels], dtype=np.int64),
    )


# --------------------------------------------------------------------------------------------------- reading


def _read(spec: TextSpec) -> tuple[Examples | None, Examples | None, list[Problem]]:
    """The training and validation examples, as far as they can be read, and what is wrong with them."""
    train, problems = _examples(spec, spec.train, "task.train")
    if train is not None:
        problems += labels.problems_with(train.labels, "task.label")
    if isinstance(spec.validation, Path):
        validation, more = _examples(spec, spec.validation, "task.validation")
        problems += more
        if train is not None and validation is not None:
            problems += labels.unseen(train.labels, validation.labels, "task.validation")
        return train, validation, problems
    if train is None or problems:
        return train, None, problems
    held_out = splitting.stratified(_labels(train), spec.validation, spec.split_seed)
    if problems := splitting.too_small(spec.validation, held_out):
        return train, None, problems
    return _rows(train, ~held_out), _rows(train, held_out), []


def _examples(spec: TextSpec, path: Path, where: str) -> tuple[Examples | None, list[Problem]]:
    """The examples in a file, or None where it has none to give; and its problems."""
    try:
        table = tables.read(path, where)
    except TaskError as error:
        return None, error.problems
    columns = (("task.text", spec.text), ("task.label", spec.label))
    problems = [p for key, column in columns if (p := tables.missing_column(table, column, key, path))]
    if problems:
        return None, problems
    if len(table) == 0:
        return None, [Problem(where, f"{path} has no rows; name a file with data")]
    examples = Examples(tables.texts_in(table, spec.text), tables.texts_in(table, spec.label))
    for (key, column), values in zip(columns, (examples.texts, examples.labels), strict=True):
        if missing := [row for row, value in enumerate(values, start=1) if value is None]:
            problems.append(Problem(key, tables.missing_values(missing, column, path)))
    return examples, problems


# ------------------------------------------------------------------------------------------------- splitting


def _rows(examples: Examples, mask: npt.NDArray[np.bool_]) -> Examples:
    rows = np.flatnonzero(mask)
    return Examples([examples.texts[row] for row in rows], [examples.labels[row] for row in rows])


def _texts(examples: Examples) -> list[str]:
    return [str(text) for text in examples.texts]


def _labels(examples: Examples) -> list[str]:
    return [str(label) for label in examples.labels]


# ------------------------------------------------------------------------------------------------ tokenising


def _tokenise(tokenizer: PreTrainedTokenizerBase, texts: list[str], max_length: int) -> Sequences:
    encoded = tokenizer(texts, truncation=True, max_length=max_length, return_attention_mask=False)
    return Sequences.of(encoded["input_ids"])


def _files_of(tokenizer: PreTrainedTokenizerBase) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save_pretrained(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir()) if path.is_file()}


def _fingerprint(*parts: Examples) -> str:
    digest = hashlib.sha256()
    for part in parts:
        for text, label in zip(part.texts, part.labels, strict=True):
            digest.update(f"{text}\0{label}\0".encode())
        digest.update(b"\1")
    return digest.hexdigest()
