"""The model of a text classification task, and how its classes are scored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
import transformers

from trials.contract import Setup
from trials.data.batching import Ints, Sequences
from trials.data.residence import Residence
from trials.data.samples import LABELS, Column, Padded, Samples
from trials.descriptions.models import Pretrained, Scratch
from trials.settings import Settings
from trials.tasks import metrics
from trials.tasks.huggingface import lora, templates
from trials.tasks.huggingface.templates import (
    ModelKind,
    Template,
    always_masked,
    build,
    small_bert,
    uncached,
)
from trials.tasks.huggingface.written import TransformerFiles
from trials.tasks.one_target import OneTargetWorkload, TargetSamples
from trials.tasks.text.data import TextData
from trials.workload import Batch


def template(
    model: Pretrained | Scratch,
    labels: tuple[str, ...],
    vocabulary: int,
    padding: int,
    dtype: torch.dtype = torch.float32,
) -> Template:
    """The classifier to copy.

    Args:
        model: A pretrained model, or a shape to build from scratch.
        labels: The names of the classes.
        vocabulary: Tokens that a model from scratch embeds.
        padding: The token that fills a batch.
        dtype: The type of pretrained weights; others are float32.

    Raises:
        TaskError: The model cannot be loaded as a classifier.
    """
    kind = ModelKind(transformers.AutoModelForSequenceClassification, labels, padding)
    return templates.template(model, kind, lambda shape: small_bert(shape, kind, vocabulary), dtype)


class TextWorkload(OneTargetWorkload):
    """A text classifier with its texts (a `workload.Workload`, and `workload.Adaptable`)."""

    def __init__(
        self, model: Pretrained | Scratch, data: TextData, settings: Settings, setup: Setup
    ) -> None:
        device = torch.device(setup.device)
        dtype = lora.base_dtype(settings, device)
        source = template(model, data.labels, data.vocabulary, data.padding, dtype)
        self._model = build(source, settings, setup.seed).to(device)
        self._uncached = uncached(self._model)
        self._classes = len(data.labels)
        self._transformer = TransformerFiles(self._model, source.base, data.tokenizer_files, device)
        residence = Residence.of(data, device)
        masked = always_masked(self._model, settings)

        def split(texts: Sequences, labels: Ints) -> TargetSamples:
            tokens = Padded(residence, "input_ids", texts, data.padding, "attention_mask", masked)
            samples = Samples(
                residence, [tokens, Column(residence, LABELS, labels)], [texts.lengths]
            )
            return TargetSamples(samples, labels, texts.lengths)

        splits = (
            split(data.train, data.train_labels),
            split(data.validation, data.validation_labels),
        )
        super().__init__(self._model, self._transformer, splits, settings, device)

    def outputs(self, batch: Batch) -> torch.Tensor:
        """The scores of the classes, shape (texts, classes)."""
        scores: torch.Tensor = self._model(**batch.inputs, **self._uncached).logits.float()
        return scores

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """Accuracy, macro F1 and Matthews correlation."""
        return metrics.classification(truth, found, self._classes)

    def merge(self, folder: Path) -> None:
        """Make a whole model of the adapters in a folder, those that the model has."""
        self._transformer.merge(folder)

    def take(self, folder: Path) -> None:
        """Take over the weights of a whole model, where nothing has been trained yet."""
        self._transformer.take(folder)
