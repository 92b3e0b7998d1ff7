"""The model of a task on texts, or pairs of texts, with its data."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch
import transformers

from trials.contract import Setup
from trials.data.batching import Sequences
from trials.data.residence import Residence
from trials.data.samples import LABELS as TARGETS
from trials.data.samples import Column, Padded, Part, Samples
from trials.data.workload import Batch
from trials.descriptions.models import Pretrained, Scratch
from trials.descriptions.text import CLASS, LABELS, NUMBER
from trials.settings import Settings
from trials.tasks.huggingface import lora, templates
from trials.tasks.huggingface.model_files import TransformerFiles
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
from trials.tasks.text.task import TextData
from trials.tasks.text.text_model import DESCRIPTION, described_as
from trials.tasks.workloads import metrics
from trials.tasks.workloads.heads import ClassHead, Head, LabelsHead, NumberHead
from trials.tasks.workloads.workload import OneTargetWorkload, SampleSet


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
        dtype: The type of pretrained weights; others are float32.
        problem: What its scores are, by transformers' names; None for those of classes.

    Raises:
        TaskError: The model cannot be loaded as a classifier.
    """
    auto = transformers.AutoModelForSequenceClassification
    kind = ModelKind(auto, labels, padding, problem)
    return templates.template(model, kind, lambda shape: small_bert(shape, kind, vocabulary), dtype)


PROBLEMS = {CLASS: None, LABELS: "multi_label_classification", NUMBER: "regression"}
"""Transformers' names for the targets (`problem_type`); None where that needs no name."""


class TextWorkload(OneTargetWorkload):
    """A model that scores whole texts, with its texts (also a `workload.Adaptable`)."""

    def __init__(
        self, model: Pretrained | Scratch, data: TextData, settings: Settings, setup: Setup
    ) -> None:
        device = torch.device(setup.device)
        dtype = lora.base_dtype(settings, device)
        problem = PROBLEMS[data.target]
        source = template(model, data.labels, data.vocabulary, data.padding, dtype, problem)
        self._model = build(source, settings, setup.seed).to(device)
        self._uncached = uncached(self._model)
        self._head, self._targets = _head_of(data, device), data.validation_labels
        description = {DESCRIPTION: described_as(data, settings.max_length)}
        tokenizer = {**data.tokenizer_files, **description}
        files = TransformerFiles(self._model, source.base, tokenizer, device)
        residence = Residence.of(data, device)
        masked = always_masked(self._model, settings)

        def split(texts: Sequences, types: Sequences | None, labels: npt.NDArray[Any]) -> SampleSet:
            tokens = Padded(residence, "input_ids", texts, data.padding, "attention_mask", masked)
            parts: list[Part] = [tokens, Column(residence, TARGETS, labels)]
            if types is not None and reads_types(self._model, types):
                parts.append(Padded(residence, TOKEN_TYPES, types, padding=0))
            return SampleSet(Samples(residence, parts, [texts.lengths]), texts.lengths)

        train = split(data.train, data.train_types, data.train_labels)
        validation = split(data.validation, data.validation_types, data.validation_labels)
        self.merge, self.take = files.merge, files.take
        super().__init__(self._model, files, train, validation, settings, device)

    def outputs(self, batch: Batch) -> torch.Tensor:
        """The scores of the classes or labels, or a number, shape (texts, labels)."""
        scores: torch.Tensor = self._model(**batch.inputs, **self._uncached).logits.float()
        return scores


def _head_of(data: TextData, device: torch.device) -> Head:
    weights = None
    if data.class_weights is not None:
        weights = torch.tensor(data.class_weights, device=device)
    if data.target == CLASS:
        return ClassHead(weights)
    if data.target == LABELS:
        return LabelsHead(weights)
    return NumberHead(data.deviation, metrics.of_numbers)
