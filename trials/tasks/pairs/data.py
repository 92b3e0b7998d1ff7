"""The data of a sequence to sequence task: pairs of a text to read and a text to write for it.

The special tokens of both, such as the end of the text, are those the tokenizer puts there; every
token of a target is trained and scored, its end too. Targets may be scored further than they are
trained, so that trials which cut their training targets at different lengths are scored on the same
tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trials.contract import Problem, TaskError
from trials.data.batching import Sequences
from trials.descriptions.text import SequenceToSequenceSettings
from trials.tasks import tables
from trials.tasks.huggingface import data as sequence_data
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.data import (
    SEQUENCE_TYPES,
    Scored,
    SequenceData,
    Split,
    data_of,
    demand,
    read,
)
from trials.tasks.huggingface.spec import TextSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


TYPES: tuple[type, ...] = SEQUENCE_TYPES


@dataclass(frozen=True)
class Pair:
    """A text, and what to write for it."""

    source: str
    target: str


def prepare(spec: TextSpec, settings: SequenceToSequenceSettings) -> SequenceData:
    """Read, check, split and tokenise.

    Raises:
        TaskError: With every problem found.
    """
    train, validation, problems = read(spec, lambda path, where: _pairs(spec, path, where))
    demand(problems)
    trained, scored = settings.target_lengths
    texts: list[str] = []
    for pair in train:
        texts += (pair.source, pair.target)
    tokenizer = text_tokenizer.load(
        spec.model,
        texts,
        settings.max_length,
        text_tokenizer.ended_byte_pairs,
        {"max_target_length": trained, "scored_target_length": scored},
    )
    learnt = _tokenise(tokenizer, train, settings.max_length, trained)
    held_out = _tokenise(tokenizer, validation, settings.max_length, trained)
    scored_targets = _scored(tokenizer, validation, scored)
    return data_of(tokenizer, (learnt, held_out), scored=scored_targets)


def problems_with(spec: TextSpec) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems
    too."""
    return sequence_data.problems_with(spec, lambda path, where: _pairs(spec, path, where))


def on_test(
    spec: TextSpec, data: SequenceData, settings: SequenceToSequenceSettings
) -> SequenceData:
    """The data with the pairs of the test file, which has no problems, in place of the validation
    pairs."""
    assert spec.test is not None
    found, _ = _pairs(spec, spec.test, "task.test")
    pairs = found or []
    tokenizer = text_tokenizer.again(spec.model, data.tokenizer_files)
    _, length = settings.target_lengths
    return replace(
        data,
        validation=_tokenise(tokenizer, pairs, settings.max_length, length),
        scored=_scored(tokenizer, pairs, length),
    )


def _pairs(spec: TextSpec, path: Path, where: str) -> tuple[list[Pair] | None, list[Problem]]:
    """The pairs in a file, or None if it has none to give; and its problems."""
    try:
        columns = tables.text_columns(spec.fields, path, where)
    except TaskError as error:
        return None, error.problems
    problems = tables.gaps_in(columns, spec.fields, path)
    texts = zip(columns["source"], columns["target"], strict=True)
    return [Pair(str(source), str(target)) for source, target in texts], problems


def _tokenise(
    tokenizer: PreTrainedTokenizerBase,
    pairs: Sequence[Pair],
    max_length: int,
    max_target_length: int,
) -> Split:
    sources = [pair.source for pair in pairs]
    read = tokenizer(sources, truncation=True, max_length=max_length, return_attention_mask=False)
    inputs = Sequences.of(read["input_ids"])
    return Split(inputs, _written(tokenizer, pairs, max_target_length))


def _written(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_target_length: int
) -> Sequences:
    targets = [pair.target for pair in pairs]
    # Some tokenizers write another language than they read, and must be told which text is which.
    written = tokenizer(
        text_target=targets,
        truncation=True,
        max_length=max_target_length,
        return_attention_mask=False,
    )
    return Sequences.of(written["input_ids"])


def _scored(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], scored_target_length: int
) -> Scored:
    return Scored(_written(tokenizer, pairs, scored_target_length))
