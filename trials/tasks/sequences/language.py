"""Language modelling: a model of transformers learns to predict the next token of a text.

A document is a row of a table, or a paragraph of a text file (a line, if there is only one
paragraph). Documents are split into training and validation first, so that no document is on both
sides. Blocks are cut from all documents of a split, joined: every token but the first is a target
once. If documents are samples, every token but the first of a document is a target, and a long
document is cut into several samples. A document has the special tokens that the tokenizer itself
adds, and an end-of-text token.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from trials.contract import Problem, TaskError
from trials.data.batching import Sequences
from trials.descriptions.text import BLOCKS, LANGUAGE_MODELING
from trials.settings import Settings
from trials.tasks.datasets import tables
from trials.tasks.datasets.data_set import DataSet
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.text_base import TextSpec, TextTask
from trials.tasks.sequences.data import SEQUENCE_TYPES, SequenceData, Split

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class LanguageDataSet(DataSet[TextSpec, list[str]]):
    TYPES = SEQUENCE_TYPES
    UNIT = "document"

    def examples(self, path: Path, where: str) -> tuple[list[str], list[Problem]]:
        is_text = path.suffix.lower() == ".txt"
        documents = _paragraphs(path, where) if is_text else _rows(self.spec, path, where)
        longest = max(map(len, documents), default=0)
        if longest < 2:  # a single letter has no next token
            raise TaskError.at(where, f"{path} has no text; name a file with data")
        return documents, []

    def encode(self, train: list[str], validation: list[str], settings: Settings) -> SequenceData:
        length, samples = settings.max_length, self.spec.fields["samples"]
        byte_pairs = text_tokenizer.byte_pairs
        tokenizer = text_tokenizer.load(self.spec.model, train, length, byte_pairs)
        learnt, _ = _cut(tokenizer, train, length, samples)
        held_out, scored_bytes = _cut(tokenizer, validation, length, samples)
        facts = text_tokenizer.facts_of(tokenizer)
        return SequenceData(learnt, held_out, **facts, scored_bytes=scored_bytes)


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
    column = spec.fields["text"]
    table = tables.with_columns({"task.text": (column,)}, path, where)
    return [text for text in tables.texts_in(table, column) if text is not None]


def _cut(
    tokenizer: PreTrainedTokenizerBase, documents: Sequence[str], size: int, samples: str
) -> tuple[Split, int]:
    """The samples of documents, and the bytes of the text that their targets stand for."""
    # No warning of documents longer than the model reads: they are cut here.
    encoded = tokenizer(list(documents), return_attention_mask=False, verbose=False)
    end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    ended = []
    for tokens in encoded["input_ids"]:
        ended.append(tokens if tokens[-1:] == end else [*tokens, *end])
    split = _blocks(ended, size) if samples == BLOCKS else _apart(ended, size)
    firsts = [tokens[:1] for tokens in ended]  # nothing predicts them
    unscored = firsts[:1] if samples == BLOCKS else firsts
    text_bytes = sum(len(document.encode()) for document in documents)
    return split, text_bytes - sum(text_tokenizer.bytes_of(tokenizer, first) for first in unscored)


def _blocks(documents: Sequence[list[int]], size: int) -> Split:
    stream = Sequences.of(list(documents)).tokens
    end = len(stream) - 1
    begins = np.arange(0, end, size, dtype=np.int64)
    offsets = np.append(begins, end)
    inputs = Sequences(stream[:-1].copy(), offsets)
    targets = Sequences(stream[1:].copy(), offsets)
    return Split(inputs, targets)


def _apart(documents: Sequence[list[int]], size: int) -> Split:
    inputs, targets = [], []
    for document in documents:
        read, predicted = document[:-1], document[1:]
        for begin in range(0, len(read), size):
            block = slice(begin, begin + size)
            inputs.append(read[block])
            targets.append(predicted[block])
    return Split(Sequences.of(inputs), Sequences.of(targets))


class LanguageModeling(TextTask):
    DESCRIPTION = LANGUAGE_MODELING
    SETTINGS = Settings
    DATA = LanguageDataSet
    FIELDS: ClassVar = {"text": "text", "samples": BLOCKS}
    WORKLOAD = "trials.tasks.sequences.workload:LanguageWorkload"
