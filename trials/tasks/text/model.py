"""The model of a task on texts, or pairs of texts, with its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
import transformers

from trials.contract import Setup
from trials.data.batching import Sequences
from trials.data.residence import Residence
from trials.data.samples import LABELS, Column, Padded, Part, Samples
from trials.data.workload import Batch
from trials.descriptions.models import Pretrained, Scratch
from trials.settings import Settings
from trials.tasks.huggingface import lora, templates
from trials.tasks.huggingface.templates import (
    ModelKind,
    Template,
    always_masked,
    build,
    reads_types,
    small_bert,
    uncached,
)
from trials.tasks.huggingface.tokenizer import TOKEN_TYPES
from trials.tasks.huggingface.written import TransformerFiles
from trials.tasks.one_target import OneTargetWorkload, TargetSamples
from trials.tasks.text.data import TextData
from trials.tasks.text.heads import head_of
from trials.tasks.text.written import DESCRIPTION, described_as


def template(
    model: Pretrained | Scratch,
    labels: tuple[str, ...],
    vocabulary: int,
    padding: int,
    dtype: torch.dtype = torch.float32,
    problem: str | None = None,
) -> Template:
    """The classifier to copy.

    Args:
        model: A pretrained model, or a shape to build from scratch.
        labels: The names of the classes or labels.
        vocabulary: Tokens that a model from scratch embeds.
        padding: The token that fills a batch.
        dtype: The type of pretrained weights; others are float32.
        problem: What its scores are, by transformers' names; None for those of classes.

    Raises:
        TaskError: The model cannot be loaded as a classifier.
    """
    auto = transformers.AutoModelForSequenceClassification
    kind = ModelKind(auto, labels, padding, problem)
    return templates.template(model, kind, lambda shape: small_bert(shape, kind, vocabulary), dtype)


class TextWorkload(OneTargetWorkload):
    """A model that scores whole texts, with its texts (a `workload.Workload`, and
    `workload.Adaptable`)."""

    def __init__(
        self, model: Pretrained | Scratch, data: TextData, settings: Settings, setup: Setup
    ) -> None:
        device = torch.device(setup.device)
        dtype = lora.base_dtype(settings, device)
        self._head = head_of(data, device)
        problem = self._head.PROBLEM
        source = template(model, data.labels, data.vocabulary, data.padding, dtype, problem)
        self._model = build(source, settings, setup.seed).to(device)
        self._uncached = uncached(self._model)
        files = {**data.tokenizer_files, DESCRIPTION: described_as(data, settings.max_length)}
        self._transformer = TransformerFiles(self._model, source.base, files, device)
        residence = Residence.of(data, device)
        masked = always_masked(self._model, settings)

        def split(
            texts: Sequences, types: Sequences | None, labels: npt.NDArray[Any]
        ) -> TargetSamples:
            tokens = Padded(residence, "input_ids", texts, data.padding, "attention_mask", masked)
            parts: list[Part] = [tokens, Column(residence, LABELS, labels)]
            if types is not None and reads_types(self._model, types):
                parts.append(Padded(residence, TOKEN_TYPES, types, padding=0))
            samples = Samples(residence, parts, [texts.lengths])
            return TargetSamples(samples, labels, texts.lengths)

        splits = (
            split(data.train, data.train_types, data.train_labels),
            split(data.validation, data.validation_types, data.validation_labels),
        )
        super().__init__(self._model, self._transformer, splits, settings, device)

    def outputs(self, batch: Batch) -> torch.Tensor:
        """The scores of the classes or labels, or a number, shape (texts, labels)."""
        scores: torch.Tensor = self._model(**batch.inputs, **self._uncached).logits.float()
        return scores

    def losses(self, outputs: torch.Tensor, batch: Batch, smoothing: float) -> torch.Tensor:
        """The sum of the texts' losses."""
        return self._head.losses(outputs, batch.labels, smoothing)

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        """The class, the labels or the standardised number of each text."""
        return self._head.predicted(outputs)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """The metrics of what is learnt of a text."""
        return self._head.measure(truth, found)

    def merge(self, folder: Path) -> None:
        """Make a whole model of the adapters in a folder, those that the model has."""
        self._transformer.merge(folder)

    def take(self, folder: Path) -> None:
        """Take over the weights of a whole model, where nothing has been trained yet."""
        self._transformer.take(folder)
