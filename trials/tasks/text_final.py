"""What a text classifier's final training takes: all its labelled texts, its test texts, and its model as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from trials.batching import Sequences
from trials.contract import Setup
from trials.export import Export, Inputs, export
from trials.precision import Precision
from trials.settings import Settings
from trials.tasks import text_data
from trials.tasks.text_classification import TextSpec
from trials.tasks.text_data import TextData
from trials.tasks.text_model import TextWorkload

SAMPLES = ((4, 0), (3, 4), (1, 7))
"""Batches that an exported model is compared on: how many texts, from which on."""


class TextFinal:
    """The parts that `trials.final` asks of text classification (a `final.Parts`).

    Args:
        spec: The task.
        base: The folder its relative paths start from.
    """

    def __init__(self, spec: TextSpec, base: Path) -> None:
        self._spec, self._base = spec, base

    @property
    def files(self) -> Mapping[str, Path]:
        """The data files by the key that names them."""
        named = {"train": self._spec.train, "validation": self._spec.validation, "test": self._spec.test}
        return {key: path for key, path in named.items() if isinstance(path, Path)}

    def fingerprint(self, data: TextData) -> str:
        """SHA-256 of the training and validation texts, their labels and split."""
        return data.fingerprint

    def joined(self, data: TextData) -> TextData:
        """Train on the validation texts too; the tokenizer and the classes stay."""
        return replace(
            data,
            train=_after(data.train, data.validation),
            train_labels=np.concatenate([data.train_labels, data.validation_labels]),
        )

    def on_test(self, data: TextData, params: Mapping[str, Any]) -> TextData | None:
        """The data with the test texts where the validation texts were; None without a test file.

        Raises:
            TaskError: With every problem of the file.
        """
        return text_data.on_test(self._spec, data, Settings.parse(params).max_length)

    def evaluate(self, folder: Path, data: TextData, setup: Setup) -> dict[str, float]:
        """The metrics of the model in `folder` on the validation texts of `data`."""
        settings = replace(Settings.parse(setup.params), lora=False)  # in a written model, adapters are merged
        workload = TextWorkload(self._spec.with_model(settings.model, self._base), data, settings, setup)
        workload.read(folder)
        return workload.evaluate(Precision(settings.precision, torch.device(setup.device)))

    def export(self, folder: Path, data: TextData, format_: Export) -> dict[str, Any]:
        """Write the model in `folder` as a file beside it: from input_ids and attention_mask to logits.

        Raises:
            ExportError: It cannot be written so, or would not compute the same.
        """
        from transformers import AutoModelForSequenceClassification
        from transformers.utils import logging

        logging.disable_progress_bar()
        model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
        return export(_Logits(model), [_sample(data, *sample) for sample in SAMPLES], format_, folder)


def _after(first: Sequences, second: Sequences) -> Sequences:
    offsets = np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]])
    return Sequences(np.concatenate([first.tokens, second.tokens]), offsets)


class _Logits(nn.Module):
    """A classifier as a function of two tensors to one."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask).logits
        return logits


def _sample(data: TextData, count: int, first: int) -> Inputs:
    """A batch of so many validation texts, from one on; they are taken again where there are too few."""
    rows = np.arange(first, first + count) % len(data.validation_labels)
    tokens, mask = data.validation.padded(rows, data.padding)
    return torch.from_numpy(tokens), torch.from_numpy(mask)
