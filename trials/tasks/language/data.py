"""The data of a language modelling task: documents one after the other, cut into blocks of tokens,
or each by itself.

A document is a row of a table, or a paragraph of a text file (a line, where there is only one
paragraph). Documents are split into training and validation first, so that no document is on both
sides. Every token but a split's first is a target once: the target of each place of a block is the
token that follows it. Where documents are samples, it is every token but the first of a document,
and a document that is too long is cut into several samples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trials.contract import Problem, TaskError
from trials.data.batching import Sequences
from trials.descriptions.text import BLOCKS
from trials.settings import Settings
from trials.tasks import tables
from trials.tasks.huggingface import data as sequence_data
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.data import SEQUENCE_TYPES, SequenceData, Split, data_of, demand, read
from trials.tasks.huggingface.spec import TextSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


TYPES: tuple[type, ...] = SEQUENCE_TYPES


def prepare(spec: TextSpec, settings: Settings) -> SequenceData:
    """Read, check, split, tokenise and cut.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = read(spec, lambda path, where: _documents(spec, path, where))
    demand(problems)
    tokenizer = text_tokenizer.load(
        spec.model, train, settings.max_length, text_tokenizer.byte_pairs
    )
    length, samples = settings.max_length, spec.fields["samples"]
    learnt = _cut(tokenizer, train, length, samples)
    held_out = _cut(tokenizer, validation, length, samples)
    return data_of(tokenizer, (learnt, held_out))


def problems_with(spec: TextSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems
    too."""
    return sequence_data.problems_with(spec, lambda path, where: _documents(spec, path, where))


def on_test(spec: TextSpec, data: SequenceData, settings: Settings) -> SequenceData:
    """The data with the documents of the test file, which has no problems, in place of the
    validation documents."""
    assert spec.test is not None
    documents, _ = _documents(spec, spec.test, "task.test")
    tokenizer = text_tokenizer.again(spec.model, data.tokenizer_files)
    length, samples = settings.max_length, spec.fields["samples"]
    return replace(data, validation=_cut(tokenizer, documents or [], length, samples))


def _documents(spec: TextSpec, path: Path, where: str) -> tuple[list[str] | None, list[Problem]]:
    """The documents in a file, or None if it has none to give; and its problems."""
    try:
        if path.suffix.lower() == ".txt":
            documents = _paragraphs(path, where)
        else:
            documents = _rows(spec, path, where)
    except TaskError as error:
        return None, error.problems
    longest = max(map(len, documents), default=0)
    if longest < 2:  # a single letter has no next token
        return None, [Problem(where, f"{path} has no text; name a file with data")]
    return documents, []


def _paragraphs(path: Path, where: str) -> list[str]:
    lines = tables.lines_of(path, where)
    text = "\n".join(lines)
    paragraphs = []
    for part in re.split(r"\n\s*\n", text):
        if part.strip():
            paragraphs.append(part.strip("\n"))
    if len(paragraphs) > 1:
        return paragraphs
    return [line for line in lines if line.strip()]


def _rows(spec: TextSpec, path: Path, where: str) -> list[str]:
    """The texts of a table; rows without one are left out."""
    table = tables.read(path, where)
    column = spec.fields["text"]
    if missing := tables.missing_column(table, column, "task.text", path):
        raise TaskError([missing])
    return [text for text in tables.texts_in(table, column) if text is not None]


def _cut(
    tokenizer: PreTrainedTokenizerBase, documents: Sequence[str], size: int, samples: str
) -> Split:
    """Samples of at most `size` tokens."""
    # Documents may be longer than the model reads: no warning is due, as they are cut here.
    encoded = tokenizer(
        list(documents), add_special_tokens=False, return_attention_mask=False, verbose=False
    )
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    ended = [[*tokens, *end] for tokens in encoded["input_ids"]]
    return _blocks(ended, size) if samples == BLOCKS else _apart(ended, size)


def _blocks(documents: Sequence[list[int]], size: int) -> Split:
    """Blocks of `size` tokens, whatever documents they are of; the last may be smaller."""
    stream = Sequences.of(list(documents)).tokens
    end = len(stream) - 1
    begins = np.arange(0, end, size, dtype=np.int64)
    offsets = np.append(begins, end)
    inputs = Sequences(stream[:-1].copy(), offsets)
    targets = Sequences(stream[1:].copy(), offsets)
    return Split(inputs, targets)


def _apart(documents: Sequence[list[int]], size: int) -> Split:
    """A sample a document, and several where it is longer than `size` tokens."""
    inputs, targets = [], []
    for document in documents:
        read, predicted = document[:-1], document[1:]
        for begin in range(0, len(read), size):
            block = slice(begin, begin + size)
            inputs.append(read[block])
            targets.append(predicted[block])
    return Split(Sequences.of(inputs), Sequences.of(targets))
