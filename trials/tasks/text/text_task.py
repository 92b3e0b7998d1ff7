"""Texts and pairs of texts: a model of transformers learns their class, their labels or a number.

One `TextData` has everything for a trial, made once a node and shared by its workers: the tokens,
the targets, and the tokenizer's files, which a worker only copies into its checkpoints.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from trials.contract import Problem, TaskError
from trials.data.batching import Sequences
from trials.descriptions.text import (
    CLASS,
    TEXT_CLASSIFICATION,
    TEXT_REGRESSION,
    TextRegressionSettings,
)
from trials.settings import Settings
from trials.tasks.datasets import remarks, tables
from trials.tasks.datasets.data_set import DataSet
from trials.tasks.datasets.splits import Mask
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.text_base import TextSpec, TextTask
from trials.tasks.text.targets import LABEL, OneClass, OneNumber, SeveralLabels, TextTarget, Values

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


DESCRIPTION = "text.json"  # the file of a checkpoint with the form of a model's texts and scores


@dataclass(frozen=True)
class TextData:
    """Prepared data: plain arrays, which may be read-only, and a little metadata."""

    train: Sequences  # the training texts as tokens, special tokens included
    train_labels: npt.NDArray[Any]
    """Their classes, int64, shape (n,); or 1 for their labels and 0 for the others, float32, shape
    (n, labels); or their standardised numbers, float32, shape (n,)."""
    validation: Sequences
    validation_labels: npt.NDArray[Any]
    labels: tuple[str, ...]  # the names of the classes or labels, by number
    padding: int
    vocabulary: int
    tokenizer_files: dict[str, bytes]  # the tokenizer as `save_pretrained` writes it, by file name
    target: str = CLASS  # of `trials.descriptions.text`
    mean: float = 0.0  # this and the next are of the numbers of the training texts
    deviation: float = 1.0
    class_weights: npt.NDArray[np.float32] | None = None  # shape (labels,); None for equal weights
    pairs: bool = False
    cut: text_tokenizer.Cut = dataclasses.field(default_factory=dict)
    """The texts that are longer than a setting allows, of all texts."""
    train_types: Sequences | None = None
    """The text of each token in a pair, as the tokenizer numbers the two; None without types."""
    validation_types: Sequences | None = None


Text = tuple[str | None, ...]  # a text, or two that make a pair


@dataclass(frozen=True)
class Examples:
    texts: list[Text]
    values: Values
    groups: list[str] | None = None


class TextDataSet(DataSet[TextSpec, Examples]):
    TYPES = (TextData, Sequences)

    def __init__(self, spec: TextSpec) -> None:
        super().__init__(spec)
        self.target = target_of(spec)

    def examples(self, path: Path, where: str) -> tuple[Examples, list[Problem]]:
        spec = self.spec
        wanted = {f"task.{field}": (column,) for field, column in spec.fields.items()}
        group = spec.groups_in(where)
        table = tables.with_columns({**wanted, "task.group": group}, path, where)
        texts = {}
        for field, column in spec.columns("text").items():
            texts[field] = tables.texts_in(table, column)
        problems = tables.gaps_in(texts, spec.fields, path)
        values, more = self.target.read(table, path)
        groups = list(map(str, tables.texts_in(table, *group))) if group else None
        found = Examples(list(zip(*texts.values(), strict=True)), values, groups)
        return found, problems + more

    def unfit(self, train: Examples) -> list[Problem]:
        return self.target.unfit(train.values, self.spec.train)

    def misfits(self, train: Examples, other: Examples, where: str) -> list[Problem]:
        return self.target.unseen(train.values, other.values, where)

    def strata(self, train: Examples) -> Sequence[str]:
        return self.target.strata(train.values)

    def groups(self, train: Examples) -> list[str] | None:
        return train.groups

    def lost(self, train: Examples, validation: Examples) -> list[str]:
        return self.target.lost(train.values, validation.values)

    def keys(self, examples: Examples, train: Examples) -> list[tuple[str, ...]]:
        texts = examples.texts
        return [tuple(" ".join(str(text).split()).casefold() for text in row) for row in texts]

    def remarks(self, train: Examples) -> Iterator[tuple[str, str]]:
        for what in self.target.remarks(train.values):
            yield "task.label", what
        if self.target.KIND != CLASS:
            return
        rows = zip(train.texts, train.values, strict=True)
        named, total = sum(_names_its_class(*row) for row in rows), len(train.texts)
        if named >= remarks.NEARLY_ALL * total:
            what = f"{named:,} of {total:,} texts have the name of their class in them"
            yield "task.text", f"{what}, and give it away"

    def taken(self, examples: Examples, mask: Mask) -> Examples:
        texts, values = super().taken(examples.texts, mask), super().taken(examples.values, mask)
        return Examples(texts, values)

    def encode(self, train: Examples, validation: Examples, settings: Settings) -> TextData:
        target, length = self.target, settings.max_length
        encoding = target.encoding(train.values)
        tokenizer = _tokenizer(self.spec, train, length)
        learnt, learnt_types, cut = tokenise(tokenizer, train.texts, length)
        held_out, held_out_types, more = tokenise(tokenizer, validation.texts, length)
        targets = target.encoded(train.values, encoding)
        return TextData(
            train=learnt,
            train_labels=targets,
            validation=held_out,
            validation_labels=target.encoded(validation.values, encoding),
            labels=encoding.labels,
            **text_tokenizer.facts_of(tokenizer),
            target=target.KIND,
            mean=encoding.mean,
            deviation=encoding.deviation,
            class_weights=target.weights(targets),
            pairs=_in_pairs(train.texts),
            cut={"max_length": (cut + more, len(train.texts) + len(validation.texts))},
            train_types=learnt_types,
            validation_types=held_out_types,
        )


def target_of(spec: TextSpec) -> TextTarget:
    if spec.kind == TEXT_REGRESSION.kind:
        return OneNumber(spec)
    return OneClass(spec) if LABEL in spec.fields else SeveralLabels(spec)


def _tokenizer(spec: TextSpec, train: Examples, length: int) -> PreTrainedTokenizerBase:
    texts = [str(text) for row in train.texts for text in row]
    if not _in_pairs(train.texts):
        return text_tokenizer.load(spec.model, texts, length)
    pieces = text_tokenizer.paired_word_pieces
    tokenizer = text_tokenizer.load(spec.model, texts, length, pieces)
    if not text_tokenizer.parts_pairs(tokenizer):
        what = f"the tokenizer of {spec.model} puts nothing between the texts of a pair"
        hint = "choose a model such as BERT or RoBERTa, or join the texts in one column"
        raise TaskError.at("task.text", f"{what}; {hint}")
    return tokenizer


def _names_its_class(texts: Text, name: str) -> bool:
    word = name.strip().casefold()
    if len(word) < 3 or not word.isalpha():
        return False
    return any(word in str(text).casefold() for text in texts)


def _in_pairs(texts: Sequence[Text]) -> bool:
    return len(texts[0]) > 1


def tokenise(
    tokenizer: PreTrainedTokenizerBase, texts: list[Text], max_length: int
) -> tuple[Sequences, Sequences | None, int]:
    """Tokens; types of the tokens of pairs if the model has such; the number of texts that are cut.
    The longer text of a pair is cut first."""
    parts = [list(map(str, part)) for part in zip(*texts, strict=True)]
    typed = _in_pairs(texts) and text_tokenizer.TOKEN_TYPES in tokenizer.model_input_names
    encoded = tokenizer(
        *parts,
        truncation=True,
        max_length=max_length,
        return_attention_mask=False,
        return_token_type_ids=typed,
    )
    tokens, cut = Sequences.of(encoded["input_ids"]), text_tokenizer.cut(encoded, max_length)
    if not typed:
        return tokens, None, cut
    return tokens, Sequences.of(encoded[text_tokenizer.TOKEN_TYPES]), cut


class TextClassification(TextTask):
    DESCRIPTION = TEXT_CLASSIFICATION
    SETTINGS = Settings
    DATA = TextDataSet
    FIELDS: ClassVar = {"text": "text", "label": "label"}
    WORKLOAD = "trials.tasks.text.text_model:TextWorkload"


class TextRegression(TextClassification):
    DESCRIPTION = TEXT_REGRESSION
    SETTINGS = TextRegressionSettings
