"""Token classification: a model of transformers learns the tag of each word, such as its entity.

A word may become several tokens. The first one carries the word's tag; the others and the special
tokens have none. Words behind the longest length are cut off and not trained; in validation and
test they count as missed, so that every trial is scored on all words.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from trials.contract import Problem, TaskError
from trials.data.batching import Sequences
from trials.descriptions.text import TOKEN_CLASSIFICATION
from trials.settings import Settings
from trials.tasks.datasets import labels, remarks, tables
from trials.tasks.datasets.data_set import DataSet
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.text_base import TextSpec, TextTask
from trials.tasks.sequences.data import IGNORED, SEQUENCE_TYPES, Scored, SequenceData, Split

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


CONLL = (".conll", ".txt")  # suffixes of files with a word and its tag on each line
_SPACES = re.compile(" +")
_OPTIONS: dict[str, Any] = {"add_prefix_space": True}
"""For tokenizers of bytes, which otherwise treat the first word in another way."""


@dataclass(frozen=True)
class Sentence:
    words: tuple[str, ...]
    tags: tuple[str, ...]


class TokenDataSet(DataSet[TextSpec, list[Sentence]]):
    TYPES = SEQUENCE_TYPES
    UNIT = "sentence"

    def examples(self, path: Path, where: str) -> tuple[list[Sentence], list[Problem]]:
        is_conll = path.suffix.lower() in CONLL
        sentences = sentences_in(path, where) if is_conll else _rows(self.spec, path, where)
        if not sentences:
            raise TaskError.at(where, f"{path} has no sentences; name a file with data")
        return sentences, []

    def unfit(self, train: list[Sentence]) -> list[Problem]:
        return labels.problems_with(_tags(train), "task.tags")

    def misfits(self, train: list[Sentence], other: list[Sentence], where: str) -> list[Problem]:
        return labels.unseen(_tags(train), _tags(other), where)

    def strata(self, train: list[Sentence]) -> list[str]:
        return labels.rarest([sentence.tags for sentence in train])

    def keys(self, examples: list[Sentence], train: list[Sentence]) -> list[tuple[str, ...]]:
        return [sentence.words for sentence in examples]

    def remarks(self, train: list[Sentence]) -> Iterator[tuple[str, str]]:
        for what in remarks.on_names(collections.Counter(_tags(train)), "word"):
            yield "task.tags", what

    def lost(self, train: list[Sentence], validation: list[Sentence]) -> list[str]:
        return sorted(set(_tags(validation)) - set(_tags(train)))

    def encode(
        self, train: list[Sentence], validation: list[Sentence], settings: Settings
    ) -> SequenceData:
        names = labels.class_names(_tags(train))
        texts = [" ".join(sentence.words) for sentence in train]
        length = settings.max_length
        tokenizer = text_tokenizer.load(self.spec.model, texts, length, **_OPTIONS)
        learnt, _, cut = _tokenise(tokenizer, train, names, length)
        held_out, scored, more = _tokenise(tokenizer, validation, names, length)
        all_cut = {"max_length": (cut + more, len(train) + len(validation))}
        facts = text_tokenizer.facts_of(tokenizer)
        return SequenceData(
            learnt, held_out, **facts, labels=tuple(names), scored=scored, cut=all_cut
        )


def _tags(sentences: Sequence[Sentence]) -> list[str]:
    tags: list[str] = []
    for sentence in sentences:
        tags += sentence.tags
    return tags


def sentences_in(path: Path, where: str) -> list[Sentence]:
    """The sentences of a CoNLL file: a word and a tag on each line, an empty line between
    sentences.

    Tabs separate the columns of a line, or spaces in a line without tabs; other white space, such
    as a no-break space, belongs to a word. Columns between the word and the tag are ignored. Raises
    TaskError if a line has no word and tag, or the file cannot be read."""
    sentences: list[Sentence] = []
    words: list[str] = []
    tags: list[str] = []
    for number, line in enumerate([*tables.lines_of(path, where), ""], start=1):
        parts = _parts_of(line)
        if line.startswith("-DOCSTART-") or not any(parts):
            if words:
                sentences.append(Sentence(tuple(words), tuple(tags)))
            words, tags = [], []
            continue
        if len(parts) < 2 or not parts[0] or not parts[-1]:
            what = f"line {number} of {path} has no word and tag: {line!r}"
            raise TaskError.at(where, f"{what}; write both, with a tab between them")
        words.append(parts[0])
        tags.append(parts[-1])
    return sentences


def _parts_of(line: str) -> list[str]:
    parts = line.split("\t") if "\t" in line else _SPACES.split(line.strip(" "))
    return [part.strip(" ") for part in parts]


def _rows(spec: TextSpec, path: Path, where: str) -> list[Sentence]:
    wanted = {f"task.{field}": (column,) for field, column in spec.fields.items()}
    table = tables.with_columns(wanted, path, where)
    column_of_words, column_of_tags = spec.fields["tokens"], spec.fields["tags"]
    rows = zip(table[column_of_words].tolist(), table[column_of_tags].tolist(), strict=True)
    sentences = []
    for row, (words, tags) in enumerate(rows, start=1):
        place = f"row {row} of {path}"
        if not isinstance(words, list | np.ndarray) or not isinstance(tags, list | np.ndarray):
            what = f"{place} has no lists in {column_of_words!r} and {column_of_tags!r}"
            raise TaskError.at("task.tokens", f"{what}; write a list, or use a CoNLL file")
        if len(words) != len(tags):
            what = f"{place} has {len(words)} words and {len(tags)} tags"
            raise TaskError.at("task.tags", f"{what}; give each word one tag")
        if len(words):
            sentence = Sentence(tuple(map(str, words)), tuple(map(str, tags)))
            sentences.append(sentence)
    return sentences


def _tokenise(
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[Sentence],
    names: Sequence[str],
    max_length: int,
) -> tuple[Split, Scored, int]:
    numbers = {name: number for number, name in enumerate(names)}
    words = [list(sentence.words) for sentence in sentences]
    encoded: Any = tokenizer(
        words, is_split_into_words=True, truncation=True, max_length=max_length
    )
    targets, tags, cells = [], [], []
    for row, sentence in enumerate(sentences):
        of_words = [numbers[tag] for tag in sentence.tags]
        of_tokens, first_cells = _laid_out(of_words, encoded.word_ids(row))
        targets.append(of_tokens)
        tags.append(of_words)
        cells.append(first_cells)
    read = Split(Sequences.of(encoded["input_ids"]), Sequences.of(targets))
    scored = Scored(Sequences.of(tags), Sequences.of(cells))
    return read, scored, text_tokenizer.cut(encoded, max_length)


def _laid_out(
    of_words: Sequence[int], word_of_cell: Sequence[int | None]
) -> tuple[list[int], list[int]]:
    """The tag of each cell, and the first cell of each word; `IGNORED` for none. `of_words`: the
    number of each word's tag. `word_of_cell`: the word of each cell's token; None for special
    tokens."""
    of_cells = [IGNORED] * len(word_of_cell)
    first_cells = [IGNORED] * len(of_words)
    before = None
    for cell, word in enumerate(word_of_cell):
        if word is not None and word != before:
            of_cells[cell] = of_words[word]
            first_cells[word] = cell
        before = word
    return of_cells, first_cells


class TokenClassification(TextTask):
    DESCRIPTION = TOKEN_CLASSIFICATION
    SETTINGS = Settings
    DATA = TokenDataSet
    FIELDS: ClassVar = {"tokens": "tokens", "tags": "tags"}
    WORKLOAD = "trials.tasks.sequences.workload:TokenWorkload"
