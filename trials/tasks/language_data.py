"""The data of a language modelling task: documents one after the other, cut into blocks of tokens, or each by itself.

A document is a row of a table, or a paragraph of a text file (a line, where there is only one paragraph). Documents are
split into training and validation first, so that no document stands on both sides. Every token but a split's first is
a target once: the target of each place of a block is the token that follows it. Where documents are samples, it is
every token but the first of a document, and a document that is too long is cut into several samples.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from trials.batching import Sequences
from trials.contract import Problem, TaskError
from trials.tasks import sequence_data, tables, text_tokenizer
from trials.tasks.language_modeling import BLOCKS
from trials.tasks.pretrained import Pretrained
from trials.tasks.sequence_data import SequenceData, Split, data_of, demand, read
from trials.tasks.sequence_task import SequenceSpec
from trials.tasks.text_classification import Scratch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def prepare(spec: SequenceSpec, model: Pretrained | Scratch, max_length: int, samples: str = BLOCKS) -> SequenceData:
    """Read, check, split, tokenise and cut.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = read(spec, lambda path, where: _documents(spec, path, where))
    demand(problems)
    tokenizer = text_tokenizer.load(model, train, max_length, text_tokenizer.byte_pairs)
    splits = [_cut(tokenizer, documents, max_length, samples) for documents in (train, validation)]
    return data_of(tokenizer, splits)


def problems_with(spec: SequenceSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems too."""
    return sequence_data.problems_with(spec, lambda path, where: _documents(spec, path, where))


def on_test(
    spec: SequenceSpec, model: Pretrained | Scratch, data: SequenceData, max_length: int, samples: str = BLOCKS
) -> SequenceData:
    """The data with the documents of the test file, which has no problems, in place of the validation documents."""
    assert spec.test is not None
    documents, _ = _documents(spec, spec.test, "task.test")
    tokenizer = text_tokenizer.again(model, data.tokenizer_files)
    return replace(data, validation=_cut(tokenizer, documents or [], max_length, samples))


def _documents(spec: SequenceSpec, path: Path, where: str) -> tuple[list[str] | None, list[Problem]]:
    """The documents in a file, or None where it has none to give; and its problems."""
    try:
        documents = _paragraphs(path, where) if path.suffix.lower() == ".txt" else _rows(spec, path, where)
    except TaskError as error:
        return None, error.problems
    if not any(len(document) > 1 for document in documents):  # a single letter has no next token
        return None, [Problem(where, f"{path} has no text; name a file with data")]
    return documents, []


def _paragraphs(path: Path, where: str) -> list[str]:
    lines = tables.lines_of(path, where)
    paragraphs = [part.strip("\n") for part in re.split(r"\n\s*\n", "\n".join(lines)) if part.strip()]
    return paragraphs if len(paragraphs) > 1 else [line for line in lines if line.strip()]


def _rows(spec: SequenceSpec, path: Path, where: str) -> list[str]:
    """The texts of a table; a row without one is none."""
    table = tables.read(path, where)
    column = spec.columns["text"]
    if missing := tables.missing_column(table, column, "task.text", path):
        raise TaskError([missing])
    return [text for text in tables.texts_in(table, column) if text is not None]


def _cut(tokenizer: PreTrainedTokenizerBase, documents: Sequence[str], size: int, samples: str) -> Split:
    """Samples of at most `size` tokens."""
    # Documents may be longer than the model reads: they are cut here, so there is nothing to warn of.
    encoded = tokenizer(list(documents), add_special_tokens=False, return_attention_mask=False, verbose=False)
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    ended = [[*tokens, *end] for tokens in encoded["input_ids"]]
    return _blocks(ended, size) if samples == BLOCKS else _apart(ended, size)


def _blocks(documents: Sequence[list[int]], size: int) -> Split:
    """Blocks of `size` tokens, whatever documents they are of; the last may be smaller."""
    stream = Sequences.of(list(documents)).tokens
    offsets = np.append(np.arange(0, len(stream) - 1, size, dtype=np.int64), len(stream) - 1)
    return Split(Sequences(stream[:-1].copy(), offsets), Sequences(stream[1:].copy(), offsets))


def _apart(documents: Sequence[list[int]], size: int) -> Split:
    """A sample a document, and several where it is longer than `size` tokens."""
    cuts = [(document, begin) for document in documents for begin in range(0, len(document) - 1, size)]
    inputs = [document[begin : min(begin + size, len(document) - 1)] for document, begin in cuts]
    targets = [document[begin + 1 : begin + 1 + size] for document, begin in cuts]
    return Split(Sequences.of(inputs), Sequences.of(targets))
