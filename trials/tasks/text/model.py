"""The model of a task on whole texts, or pairs of texts, with its data."""

from __future__ import annotations

import json
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
from trials.tasks.huggingface.lora import TransformerFiles
from trials.tasks.huggingface.tokenizer import TOKEN_TYPES
from trials.tasks.text.task import DESCRIPTION, TextData
from trials.tasks.workloads import metrics
from trials.tasks.workloads.heads import ClassHead, Head, LabelsHead, NumberHead
from trials.tasks.workloads.workload import OneTargetWorkload, SampleSet

PROBLEMS = {CLASS: None, LABELS: "multi_label_classification", NUMBER: "regression"}
"""Transformers' names for the targets (`problem_type`); classes need none."""


class TextWorkload(OneTargetWorkload):
    """A model of whole texts, with its texts (also a `workload.Adaptable`)."""

    def __init__(
        self, model: Pretrained | Scratch, data: TextData, settings: Settings, setup: Setup
    ) -> None:
        device = torch.device(setup.device)
        auto, problem = transformers.AutoModelForSequenceClassification, PROBLEMS[data.target]
        kind = templates.ModelKind(auto, data.labels, data.padding, problem)
        dtype = lora.base_dtype(settings, device)
        source = templates.template(
            model, kind, lambda shape: templates.small_bert(shape, kind, data.vocabulary), dtype
        )
        self._model = templates.build(source, settings, setup.seed).to(device)
        self._uncached = templates.uncached(self._model)
        self._head, self._targets = _head_of(data, device), data.validation_labels
        beside = {**data.tokenizer_files, DESCRIPTION: _description(data, settings)}
        files = TransformerFiles(self._model, source.base, beside, device)
        residence = Residence.of(data, device)
        masked = templates.always_masked(self._model, settings)

        def split(texts: Sequences, types: Sequences | None, labels: npt.NDArray[Any]) -> SampleSet:
            tokens = Padded(residence, "input_ids", texts, data.padding, "attention_mask", masked)
            parts: list[Part] = [tokens, Column(residence, TARGETS, labels)]
            if types is not None and templates.reads_types(self._model, types):
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


def _description(data: TextData, settings: Settings) -> bytes:
    names = ("target", "pairs", "mean", "deviation")
    content = {name: getattr(data, name) for name in names}
    content["max_length"] = settings.max_length
    return json.dumps(content, indent=1).encode()


def _head_of(data: TextData, device: torch.device) -> Head:
    weights = None
    if data.class_weights is not None:
        weights = torch.tensor(data.class_weights, device=device)
    if data.target == CLASS:
        return ClassHead(weights)
    if data.target == LABELS:
        return LabelsHead(weights)
    return NumberHead(data.deviation, metrics.of_numbers)
