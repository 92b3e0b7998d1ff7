"""A Hugging Face model that predicts tokens, and how it trains and evaluates.

The loss of a batch is divided by its targets, not by its samples: long and short samples weigh by what they ask for.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import transformers
from torch import nn

from trials import distributed, lora, packed
from trials.batching import Ints
from trials.contract import Setup
from trials.precision import Precision
from trials.residence import Residence
from trials.samples import LABELS, Padded, Samples
from trials.settings import Settings
from trials.tasks import evaluation, text_model
from trials.tasks.pretrained import Pretrained, write_description
from trials.tasks.sequence_data import IGNORED, SequenceData, Split
from trials.tasks.sequence_task import PackingSettings
from trials.tasks.text_classification import Scratch
from trials.tasks.text_model import Template
from trials.weights import Weights, write
from trials.workload import Batch

FromScratch = Callable[[Scratch, SequenceData], transformers.PretrainedConfig]
"""The configuration of a small model of a shape, for some data."""


def template(model: Pretrained | Scratch, data: SequenceData, auto: Any, scratch: FromScratch) -> Template:
    """The model to copy: read or built once in a process.

    Args:
        model: A pretrained model, or a shape to build from scratch.
        data: What it is trained on.
        auto: The class of transformers that loads and builds models of this kind.
        scratch: Configures a model from scratch.

    Raises:
        TaskError: The model cannot be loaded.
    """
    if isinstance(model, Scratch):
        return _built(auto, scratch(model, data).to_json_string())
    return _loaded(auto, model, data.labels, data.padding)


@functools.lru_cache(maxsize=2)
def _built(auto: Any, config: str) -> Template:
    parsed = json.loads(config)
    built = auto.from_config(transformers.AutoConfig.for_model(parsed.pop("model_type"), **parsed))
    built.config.architectures = [type(built).__name__]
    return Template(built, frozenset(name for name, _ in built.named_modules()))


@functools.lru_cache(maxsize=2)
def _loaded(auto: Any, model: Pretrained, labels: tuple[str, ...], padding: int) -> Template:
    names: Mapping[str, Any] = {
        "id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)},
    } if labels else {}  # fmt: skip
    return text_model.pretrained(auto, model, names, padding)


class SequenceWorkload:
    """A model of tokens with its data on a device (a `workload.Workload`).

    `CAUSAL` says whether a token sees only those before it. A task overrides `samples_of`, `lengths_of` and `logits`,
    where its model reads more than tokens and a mask; and `keep`, `count` and `measure`, where it has metrics of its
    own.
    """

    CAUSAL: ClassVar[bool] = False

    def __init__(self, source: Template, data: SequenceData, settings: Settings, setup: Setup) -> None:
        self._device = torch.device(setup.device)
        self._model = text_model.build(source, settings, setup.seed).to(self._device)
        self.model: nn.Module = self._model
        self.lengths: Ints = self.lengths_of(data.train)
        self._data = data
        residence = Residence.of(data, self._device)
        self.samples = self._training_samples(settings, residence)
        self._validation = self.samples_of(data.validation, residence)
        self._weights = data.train.weights
        self._smoothing = settings.label_smoothing
        self._eval_batch_size = settings.eval_batch_size
        # Longest first: samples of a batch pad little, and too large a batch fails at once.
        self._eval_order = np.argsort(-self.lengths_of(data.validation), kind="stable")

    def lengths_of(self, split: Split) -> Ints:
        """The tokens that the model reads of each sample, shape (n,)."""
        return split.inputs.lengths

    def batch(self, rows: Ints) -> Batch:
        """The training samples `rows`."""
        return self.samples.batch(rows)

    def _training_samples(self, settings: Settings, residence: Residence) -> Samples:
        """The training samples, packed where the settings ask for it; every target is in the cell of its token."""
        split, padding = self._data.train, self._data.padding
        if not (isinstance(settings, PackingSettings) and settings.packing):
            return self.samples_of(split, residence)
        packed.demand(self._model, self.CAUSAL)
        inputs, targets = packed.Filled(split.inputs, padding), packed.Filled(split.targets, IGNORED)
        return packed.PackedSamples(residence, inputs, targets, settings.max_length)

    def samples_of(self, split: Split, residence: Residence) -> Samples:
        """What batches of a split are made of."""
        inputs = Padded(residence, "input_ids", split.inputs, self._data.padding, "attention_mask")
        return Samples(residence, [inputs, Padded(residence, LABELS, split.targets, IGNORED)], [split.inputs.lengths])

    def weight(self, rows: Ints) -> float:
        """The targets of the samples `rows`; 1 where they have none, for then the sum of their losses is zero."""
        return float(max(self._weights[rows].sum(), 1))

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum of the targets' cross-entropies."""
        return _cross_entropy(self.logits(batch), batch.labels, self._smoothing)

    def logits(self, batch: Batch) -> torch.Tensor:
        """For each target, the model's scores of all classes: shape (samples, targets, classes)."""
        inputs = packed.readable(batch.inputs, self._model.config, self.CAUSAL)
        scores: torch.Tensor = self._model(**inputs).logits.float()
        return scores

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """The loss of a validation target (without smoothing), and what `measure` adds."""
        group = distributed.current()
        parts = group.own(evaluation.cut(self._eval_order, self._eval_batch_size))
        with evaluation.evaluating(self._model):
            results = [self._evaluate_batch(part, precision) for part in parts]
        total = evaluation.total([loss for loss, _ in results], group)
        counts = group.added(*self.count(parts, [kept.cpu() for _, kept in results]))
        loss = total / max(int(self._data.validation.weights.sum()), 1)
        return {"loss": loss, **self.measure(loss, counts)}

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The metrics beside the loss.

        Args:
            loss: The mean loss of a validation target.
            counts: The sums of what `count` has counted on every process.
        """
        return {}

    def count(self, parts: Sequence[Ints], kept: Sequence[torch.Tensor]) -> Sequence[int]:
        """What `measure` needs to know of validation samples, in numbers that add up; as many for no samples.

        Args:
            parts: Validation samples, in batches.
            kept: What `keep` kept of each batch, on the CPU.
        """
        return ()

    def keep(self, logits: torch.Tensor) -> torch.Tensor:
        """What `count` needs of the scores of a batch, shape (samples, ...); nothing by default."""
        return logits[:, :0, 0]

    def evaluate_longest(self, precision: Precision) -> None:
        """Evaluate the batch of the longest validation samples."""
        with evaluation.evaluating(self._model):
            loss, _ = self._evaluate_batch(self._eval_order[: self._eval_batch_size], precision)
        loss.item()  # waits for the device

    def _evaluate_batch(self, rows: Ints, precision: Precision) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of losses of the validation samples `rows`, and what is kept of their scores; on the device."""
        batch = self._validation.batch(rows)
        with precision.autocast():
            logits = self.logits(batch)
        return _cross_entropy(logits, batch.labels, 0.0), self.keep(logits)

    def weights(self) -> Weights:
        """The model's weights, and its adapters."""
        return lora.weights(self._model)

    def write(self, folder: Path, weights: Weights) -> None:
        """Write weights, configuration and tokenizer: what `from_pretrained` reads."""
        write(weights, folder)
        write_description(self._model, folder)
        for name, content in self._data.tokenizer_files.items():
            (folder / name).write_bytes(content)

    def read(self, folder: Path) -> None:
        """Load the weights of a checkpoint."""
        lora.read(self._model, folder, self._device)


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor, smoothing: float) -> torch.Tensor:
    """The sum over all targets that are not ignored."""
    flat = logits.flatten(0, 1), targets.flatten()
    return nn.functional.cross_entropy(*flat, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing)
