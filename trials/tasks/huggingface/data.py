"""Data of tasks whose model predicts tokens: split, checked, and held as flat arrays of inputs and
targets."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from trials.contract import Problem, TaskError
from trials.data.batching import Ints, Sequences
from trials.tasks import splitting
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.huggingface.spec import TextSpec

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

IGNORED = -100
"""Marks a token without a target, which is neither trained nor scored (torch's own
`ignore_index`)."""

Example = TypeVar("Example")
Reader = Callable[[Path, str], tuple[list[Example] | None, list[Problem]]]
"""Reads a file, named by a key of the study file: its examples (None if it has none to give),
and its problems."""


@dataclass(frozen=True)
class Split:
    """Samples.

    Args:
        inputs: What the model reads.
        targets: What it is to predict, `IGNORED` where nothing.
    """

    inputs: Sequences
    targets: Sequences

    @property
    def weights(self) -> Ints:
        """How many targets each sample has, shape (n,)."""
        is_target = self.targets.tokens != IGNORED
        counted = np.concatenate([[0], np.cumsum(is_target)])
        offsets = self.targets.offsets
        found: Ints = counted[offsets[1:]] - counted[offsets[:-1]]
        return found


@dataclass(frozen=True)
class Scored:
    """What validation samples are scored on, where it is not what the model reads and is trained
    on: the same in every trial, however much of a sample that trial reads.

    Args:
        targets: What is to be predicted, `IGNORED` nowhere.
        cells: Where in a sample's inputs the model predicts each of them, `IGNORED` where it does
            not, because that part of the sample was cut off: these count as missed. None where
            every target is predicted in its place.
    """

    targets: Sequences
    cells: Sequences | None = None

    @property
    def missed(self) -> int:
        """How many targets are not predicted."""
        if self.cells is None:
            return 0
        return int(np.count_nonzero(self.cells.tokens == IGNORED))


@dataclass(frozen=True)
class SequenceData:
    """Prepared data: plain arrays, which may be read-only, and a little metadata.

    Args:
        train: The training samples.
        validation: The validation samples.
        labels: The names of the classes of a token; empty if tokens themselves are predicted.
        padding: The token that fills a batch.
        vocabulary: How many tokens the tokenizer knows.
        tokenizer_files: The tokenizer as `save_pretrained` writes it, by file name.
        fingerprint: SHA-256 of the tokens and targets.
        scored: What the validation samples are scored on; None if that is their targets.
    """

    train: Split
    validation: Split
    labels: tuple[str, ...]
    padding: int
    vocabulary: int
    tokenizer_files: dict[str, bytes]
    fingerprint: str
    scored: Scored | None = None


SEQUENCE_TYPES: tuple[type, ...] = (SequenceData, Split, Scored, Sequences)
"""The dataclasses that the prepared data of such a task is made of."""


def read(
    spec: TextSpec, reader: Reader[Example]
) -> tuple[list[Example], list[Example], list[Problem]]:
    """The training and validation examples, as far as they can be read, and what is wrong with
    them."""
    train, problems = reader(spec.train, "task.train")
    if isinstance(spec.validation, Path):
        validation, more = reader(spec.validation, "task.validation")
        return train or [], validation or [], problems + more
    if train is None or problems:
        return train or [], [], problems
    held_out = splitting.shuffled(len(train), spec.validation, spec.split_seed)
    trained: list[Example] = []
    validated: list[Example] = []
    for example, out in zip(train, held_out, strict=True):
        side = validated if out else trained
        side.append(example)
    return trained, validated, splitting.too_small(spec.validation, held_out)


def problems_with(spec: TextSpec, reader: Reader[Example]) -> list[Problem]:
    """Everything wrong with the files that can be seen before training, the test file's problems
    too."""
    _, _, problems = read(spec, reader)
    if spec.test is None:
        return problems
    _, more = reader(spec.test, "task.test")
    return problems + more


def demand(problems: list[Problem]) -> None:
    """Raise the problems, where there are any.

    Raises:
        TaskError: With all of them.
    """
    if problems:
        raise TaskError(problems)


def data_of(
    tokenizer: PreTrainedTokenizerBase,
    splits: Iterable[Split],
    labels: tuple[str, ...] = (),
    scored: Scored | None = None,
) -> SequenceData:
    """The data of a training and a validation split that the tokenizer has made.

    Args:
        tokenizer: The tokenizer.
        splits: The training samples, then the validation samples.
        labels: The names of the classes of a token; empty if tokens themselves are predicted.
        scored: What the validation samples are scored on; None if that is their targets.
    """
    train, validation = splits
    return SequenceData(
        train=train,
        validation=validation,
        labels=labels,
        padding=text_tokenizer.padding_of(tokenizer),
        vocabulary=len(tokenizer),
        tokenizer_files=text_tokenizer.files_of(tokenizer),
        fingerprint=_fingerprint(train, validation),
        scored=scored,
    )


def _fingerprint(*splits: Split) -> str:
    """SHA-256 of tokens and targets."""
    digest = hashlib.sha256()
    for split in splits:
        for sequences in (split.inputs, split.targets):
            digest.update(sequences.offsets.tobytes())
            digest.update(sequences.tokens.tobytes())
    return digest.hexdigest()
