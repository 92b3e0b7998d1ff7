"""The data of a token classification task: sentences of words, each with a tag.

A word may become several tokens. The first of them carries the word's tag, the others and the special tokens have
none; words behind the longest length are cut off, and neither trained nor scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from trials.batching import Sequences
from trials.contract import Problem, TaskError
from trials.tasks import labels, tables, text_tokenizer
from trials.tasks.pretrained import Pretrained
from trials.tasks.sequence_data import IGNORED, SequenceData, Split, data_of, demand, read
from trials.tasks.sequence_task import SequenceSpec
from trials.tasks.text_classification import Scratch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

CONLL = (".conll", ".txt")
"""Suffixes of files with a word and its tag on each line."""
_OPTIONS: dict[str, Any] = {"add_prefix_space": True}
"""Of a tokenizer: those of bytes must be told that a word begins a word."""


@dataclass(frozen=True)
class Sentence:
    """Words, each with its tag."""

    words: tuple[str, ...]
    tags: tuple[str, ...]


def prepare(spec: SequenceSpec, model: Pretrained | Scratch, max_length: int) -> SequenceData:
    """Read, check, split and tokenise.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = _read(spec)
    demand(problems)
    names = labels.class_names(tag for sentence in train for tag in sentence.tags)
    texts = [" ".join(sentence.words) for sentence in train]
    tokenizer = text_tokenizer.load(model, texts, max_length, **_OPTIONS)
    splits = [_tokenise(tokenizer, sentences, names, max_length) for sentences in (train, validation)]
    return data_of(tokenizer, splits, labels=tuple(names))


def problems_with(spec: SequenceSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems too."""
    train, _, problems = _read(spec)
    if spec.test is not None:
        test, more = _sentences(spec, spec.test, "task.test")
        problems = problems + more
        if train and test:
            problems += labels.unseen(_tags(train), _tags(test), "task.test")
    return problems


def on_test(spec: SequenceSpec, model: Pretrained | Scratch, data: SequenceData, max_length: int) -> SequenceData:
    """The data with the sentences of the test file, which has no problems, in place of the validation sentences."""
    assert spec.test is not None
    sentences, _ = _sentences(spec, spec.test, "task.test")
    tokenizer = text_tokenizer.again(model, data.tokenizer_files, **_OPTIONS)
    return replace(data, validation=_tokenise(tokenizer, sentences or [], data.labels, max_length))


def _read(spec: SequenceSpec) -> tuple[list[Sentence], list[Sentence], list[Problem]]:
    train, validation, problems = read(spec, lambda path, where: _sentences(spec, path, where))
    if train:
        problems = problems + labels.problems_with(_tags(train), "task.tags")
    if train and isinstance(spec.validation, Path):
        problems = problems + labels.unseen(_tags(train), _tags(validation), "task.validation")
    if train and not isinstance(spec.validation, Path):
        known = set(_tags(train))  # a rare tag may have fallen to the validation rows as a whole
        if unseen := sorted(set(_tags(validation)) - known):
            what = f"leaves no training sentence with {', '.join(unseen)}; choose another split_seed, or give a file"
            problems = [*problems, Problem("task.validation", what)]
    return train, validation, problems


def _tags(sentences: Sequence[Sentence]) -> list[str]:
    return [tag for sentence in sentences for tag in sentence.tags]


# --------------------------------------------------------------------------------------------------- reading


def _sentences(spec: SequenceSpec, path: Path, where: str) -> tuple[list[Sentence] | None, list[Problem]]:
    """The sentences in a file, or None where it has none to give; and its problems."""
    try:
        sentences = _conll(path, where) if path.suffix.lower() in CONLL else _rows(spec, path, where)
    except TaskError as error:
        return None, error.problems
    if not sentences:
        return None, [Problem(where, f"{path} has no sentences; name a file with data")]
    return sentences, []


def _conll(path: Path, where: str) -> list[Sentence]:
    """A word, white space and a tag on each line, an empty line between sentences; columns between are passed over."""
    sentences: list[Sentence] = []
    lines: list[list[str]] = []
    for number, line in enumerate([*tables.lines_of(path, where), ""], start=1):
        parts = line.split("\t") if "\t" in line else line.split()
        if line.startswith("-DOCSTART-") or not line.strip():
            if lines:
                sentences.append(Sentence(tuple(p[0] for p in lines), tuple(p[-1] for p in lines)))
            lines = []
        elif len(parts) < 2 or not parts[0].strip() or not parts[-1].strip():
            what = f"line {number} of {path} has no word and tag: {line!r}; write both, with a tab between them"
            raise TaskError([Problem(where, what)])
        else:
            lines.append([part.strip() for part in parts])
    return sentences


def _rows(spec: SequenceSpec, path: Path, where: str) -> list[Sentence]:
    table = tables.read(path, where)
    columns = {f"task.{field}": column for field, column in spec.columns.items()}
    if missing := [p for key, c in columns.items() if (p := tables.missing_column(table, c, key, path))]:
        raise TaskError(missing)
    words, tags = (table[spec.columns[field]].tolist() for field in ("tokens", "tags"))
    sentences = []
    for row, (one, other) in enumerate(zip(words, tags, strict=True), start=1):
        for key, value in zip(columns, (one, other), strict=True):
            if not isinstance(value, list | np.ndarray):
                what = f"row {row} of {path} has no list in {columns[key]!r} but {value!r}; write a list, or use a "
                raise TaskError([Problem(key, f"{what}CoNLL file")])
        if len(one) != len(other):
            what = f"row {row} of {path} has {len(one)} words and {len(other)} tags; give each word one tag"
            raise TaskError([Problem("task.tags", what)])
        if len(one):
            sentences.append(Sentence(tuple(map(str, one)), tuple(map(str, other))))
    return sentences


# ------------------------------------------------------------------------------------------------ tokenising


def _tokenise(
    tokenizer: PreTrainedTokenizerBase, sentences: Sequence[Sentence], names: Sequence[str], max_length: int
) -> Split:
    numbers = {name: number for number, name in enumerate(names)}
    words = [list(sentence.words) for sentence in sentences]
    encoded: Any = tokenizer(words, is_split_into_words=True, truncation=True, max_length=max_length)
    targets = []
    for row, sentence in enumerate(sentences):
        places, before = [], None
        for word in encoded.word_ids(row):
            places.append(IGNORED if word is None or word == before else numbers[sentence.tags[word]])
            before = word
        targets.append(places)
    return Split(Sequences.of(encoded["input_ids"]), Sequences.of(targets))
