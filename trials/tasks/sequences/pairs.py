"""Sequence to sequence: a model of transformers learns to write a text (a translation, a summary)
for another.

Every token of a target is trained and scored, the special tokens of the tokenizer too. Targets may
be scored further than they are trained, so that trials which cut their training targets at
different lengths are scored on the same tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from trials.contract import Problem
from trials.data.batching import Sequences
from trials.descriptions.text import SEQUENCE_TO_SEQUENCE, SequenceToSequenceSettings
from trials.tasks.datasets import tables
from trials.tasks.datasets.data_set import DataSet
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.text_base import TextSpec, TextTask
from trials.tasks.sequences.data import SEQUENCE_TYPES, Scored, SequenceData, Split

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Pair:
    source: str
    target: str


class PairDataSet(DataSet[TextSpec, list[Pair]]):
    TYPES = SEQUENCE_TYPES

    def examples(self, path: Path, where: str) -> tuple[list[Pair], list[Problem]]:
        fields = self.spec.fields
        wanted = {f"task.{field}": (column,) for field, column in fields.items()}
        table = tables.with_columns(wanted, path, where)
        columns = {field: tables.texts_in(table, column) for field, column in fields.items()}
        texts = zip(columns["source"], columns["target"], strict=True)
        pairs = [Pair(str(source), str(target)) for source, target in texts]
        return pairs, tables.gaps_in(columns, fields, path)

    def encode(
        self, train: list[Pair], validation: list[Pair], settings: SequenceToSequenceSettings
    ) -> SequenceData:
        length = settings.max_length
        trained, scored = settings.target_lengths
        texts: list[str] = []
        for pair in train:
            texts += (pair.source, pair.target)
        longest = {"max_target_length": trained, "scored_target_length": scored}
        byte_pairs = text_tokenizer.ended_byte_pairs
        tokenizer = text_tokenizer.load(self.spec.model, texts, length, byte_pairs, longest)
        learnt, *cut = _tokenise(tokenizer, train, length, trained)
        held_out, *more = _tokenise(tokenizer, validation, length, trained)
        targets = Scored(_target_tokens(tokenizer, validation, scored)[0])
        total = len(train) + len(validation)
        return SequenceData(
            learnt,
            held_out,
            **text_tokenizer.facts_of(tokenizer),
            scored=targets,
            cut={
                "max_length": (cut[0] + more[0], total),
                "max_target_length": (cut[1] + more[1], total),
            },
            scored_bytes=_bytes_of(tokenizer, targets, validation, scored),
        )


def _tokenise(
    tokenizer: PreTrainedTokenizerBase,
    pairs: Sequence[Pair],
    max_length: int,
    max_target_length: int,
) -> tuple[Split, int, int]:
    """Tokens, and the numbers of sources and of targets that are cut."""
    sources = [pair.source for pair in pairs]
    read = tokenizer(sources, truncation=True, max_length=max_length, return_attention_mask=False)
    inputs = Sequences.of(read["input_ids"])
    targets, cut = _target_tokens(tokenizer, pairs, max_target_length)
    return Split(inputs, targets), text_tokenizer.cut(read, max_length), cut


def _target_tokens(
    tokenizer: PreTrainedTokenizerBase, pairs: Sequence[Pair], max_target_length: int
) -> tuple[Sequences, int]:
    targets = [pair.target for pair in pairs]
    # Some tokenizers treat targets, of another language, in their own way.
    encoded = tokenizer(
        text_target=targets,
        truncation=True,
        max_length=max_target_length,
        return_attention_mask=False,
    )
    return Sequences.of(encoded["input_ids"]), text_tokenizer.cut(encoded, max_target_length)


def _bytes_of(
    tokenizer: PreTrainedTokenizerBase, scored: Scored, pairs: Sequence[Pair], length: int
) -> int:
    total = 0
    for row, pair in enumerate(pairs):
        tokens = scored.targets.row(row).tolist()
        whole = len(tokens) < length
        total += len(pair.target.encode()) if whole else text_tokenizer.bytes_of(tokenizer, tokens)
    return total


class SequenceToSequence(TextTask):
    DESCRIPTION = SEQUENCE_TO_SEQUENCE
    SETTINGS = SequenceToSequenceSettings
    DATA = PairDataSet
    DATA_SETTINGS = ("max_length", "max_target_length", "scored_target_length", "model")
    FIELDS: ClassVar = {"source": "source", "target": "target"}
    WORKLOAD = "trials.tasks.sequences.workload:PairWorkload"
