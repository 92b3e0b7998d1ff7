"""What the final training of a built-in task takes: all its samples, its test samples, and its model as a file.

Everything here is the same for every task; a task itself only reads its test file (`TrainedTask.on_test`) and loads
what its workload wrote (`TrainedTask.portable`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from trials.batching import Sequences
from trials.contract import Setup, TaskError
from trials.export import Export, Inputs, export
from trials.precision import Precision
from trials.tasks.trained import TrainedTask
from trials.workload import Workload

PLAIN = {"lora", "packing"}
"""Settings of the training that a written model is without."""
SAMPLES = ((4, 0), (3, 4), (1, 7))
"""Batches that an exported model is compared on: how many samples, from which on. The last is cut to half its length,
where lengths may differ."""


class FinalParts:
    """The parts that `trials.final` asks of a built-in task (a `final.Parts`).

    Args:
        task: The task.
    """

    def __init__(self, task: TrainedTask) -> None:
        self._task = task

    @property
    def files(self) -> Mapping[str, Path]:
        """The data files, or folders, by the key that names them."""
        spec = self._task.spec
        named = {"train": spec.train, "validation": spec.validation, "test": spec.test}
        return {key: path for key, path in named.items() if isinstance(path, Path)}

    def fingerprint(self, data: Any) -> str:
        """SHA-256 of the prepared training and validation samples."""
        digest: str = data.fingerprint
        return digest

    def joined(self, data: Any) -> Any:
        """Train on the validation samples too; what was learnt of the training samples (a tokenizer, the classes, the
        mean of a column) stays."""
        names = [field.name for field in dataclasses.fields(data) if field.name.startswith("train")]
        pairs = {name: (getattr(data, name), getattr(data, name.replace("train", "validation", 1))) for name in names}
        return replace(data, **{name: _after(*pair) for name, pair in pairs.items()})

    def on_test(self, data: Any, params: Mapping[str, Any]) -> Any | None:
        """The data with the test samples where the validation samples were; None without a test file.

        Raises:
            TaskError: With every problem of the files.
        """
        if self._task.spec.test is None:
            return None
        if problems := self._task.problems():
            raise TaskError(problems)
        return self._task.on_test(data, self._task.SETTINGS.parse(params))

    def evaluate(self, folder: Path, data: Any, setup: Setup) -> dict[str, float]:
        """The metrics of the model in `folder` on the validation samples of `data`."""
        precision = Precision(self._task.SETTINGS.parse(setup.params).precision, torch.device(setup.device))
        return self._written(folder, data, setup).evaluate(precision)

    def export(self, folder: Path, data: Any, setup: Setup, format_: Export) -> dict[str, Any]:
        """Write the model in `folder` as a file beside it: from the inputs of a batch to the model's scores.

        Raises:
            ExportError: It cannot be written so, or would not compute the same.
        """
        workload = self._written(folder, data, replace(setup, device="cpu"))
        portable = self._task.portable(folder, workload.model)
        samples = [_sample(workload, *sample) for sample in SAMPLES]
        if 1 in portable.free:
            samples[-1] = tuple(tensor[:, : (tensor.shape[1] + 1) // 2] for tensor in samples[-1])
        return export(portable, samples, format_, folder)

    def _written(self, folder: Path, data: Any, setup: Setup) -> Workload:
        """The model in `folder` with its data."""
        # Adapters are merged when written, and samples are measured and exported as they are.
        settings = self._task.SETTINGS.parse({**setup.params, **dict.fromkeys(PLAIN & set(setup.params), False)})
        workload = self._task.workload(data, settings, setup)
        workload.read(folder)
        return workload


def _after(first: Any, second: Any) -> Any:
    """The samples of `first` and then those of `second`: arrays, sequences, or a dataclass of such."""
    if isinstance(first, np.ndarray):
        return np.concatenate([first, second])
    if isinstance(first, Sequences):
        offsets = np.concatenate([first.offsets, second.offsets[1:] + first.offsets[-1]])
        return Sequences(np.concatenate([first.tokens, second.tokens]), offsets)
    names = [field.name for field in dataclasses.fields(first)]
    return replace(first, **{name: _after(getattr(first, name), getattr(second, name)) for name in names})


def _sample(workload: Workload, count: int, first: int) -> Inputs:
    """A batch of so many training samples, from one on; they are taken again where there are too few."""
    return tuple(workload.batch(np.arange(first, first + count) % len(workload.lengths)).inputs.values())


class Scores(nn.Module):
    """A transformers model as a function of two or three tensors to one.

    Args:
        folder: What `save_pretrained` could have written.
        kind: Its class. Looked up by the folder's own word, it could be one that the folder brings.
    """

    def __init__(self, folder: Path, kind: type[Any]) -> None:
        super().__init__()
        from transformers.utils import logging

        logging.disable_progress_bar()
        model: Any = kind.from_pretrained(folder, dtype=torch.float32)
        model.config.use_cache = False  # an exported model gives one tensor
        self.model = model

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, decoder_input_ids: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Tokens and mask (n, length), and what a decoder has written so far, to logits (n, ..., classes)."""
        decoded = {} if decoder_input_ids is None else {"decoder_input_ids": decoder_input_ids}
        logits: torch.Tensor = self.model(input_ids=input_ids, attention_mask=attention_mask, **decoded).logits
        return logits
