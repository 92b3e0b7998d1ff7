"""A model of transformers that predicts tokens or their classes, and how it trains and evaluates.

The loss of a batch is divided by its targets, not by its samples: long and short samples weigh by
what they ask for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
import transformers
from torch import nn

from trials.checkpoints.weights import Weights
from trials.contract import Setup
from trials.data import order, packed_rows
from trials.data.batching import Ints, longest_batch, totals
from trials.data.residence import Residence
from trials.data.samples import LABELS, Padded, Samples
from trials.data.workload import Batch
from trials.descriptions.models import Pretrained, Scratch
from trials.descriptions.text import PackingSettings
from trials.devices import processes
from trials.optim.precision import Precision
from trials.settings import Settings
from trials.tasks import evaluation
from trials.tasks.huggingface import templates
from trials.tasks.huggingface.data import IGNORED, SequenceData, Split
from trials.tasks.huggingface.templates import ModelKind, Template
from trials.tasks.huggingface.written import TransformerFiles

FromScratch = Callable[[Scratch, SequenceData], transformers.PretrainedConfig]
"""The configuration of a small model of a shape, for some data."""


def template(
    model: Pretrained | Scratch,
    data: SequenceData,
    auto: Any,
    scratch: FromScratch,
    dtype: torch.dtype,
) -> Template:
    """The model to copy: read or built once in a process.

    Args:
        model: A pretrained model, or a shape to build from scratch.
        data: What it is trained on.
        auto: The class of transformers that loads and builds models of this kind.
        scratch: Configures a model from scratch.
        dtype: The type of pretrained weights; others are float32.

    Raises:
        TaskError: The model cannot be loaded.
    """
    kind = ModelKind(auto, data.labels, data.padding)
    return templates.template(model, kind, lambda shape: scratch(shape, data), dtype)


class TokenLayout:
    """What a model reads of a sample: its tokens and, where it needs one, a mask. Every target is
    in the cell of its token."""

    def lengths(self, split: Split) -> Ints:
        """The tokens of each sample, shape (n,); of each part, shape (n, parts), where it has such
        as are padded each by itself."""
        return split.inputs.lengths

    def scored(self, data: SequenceData) -> Split:
        """The validation samples as the model reads them."""
        return data.validation

    def samples(
        self,
        split: Split,
        inputs: Padded,
        residence: Residence,
        model: transformers.PreTrainedModel,
    ) -> Samples:
        """What batches of a split are made of.

        Args:
            split: The split.
            inputs: Its tokens and their mask.
            residence: Where samples lie.
            model: The model that reads them.
        """
        targets = Padded(residence, LABELS, split.targets, IGNORED)
        return Samples(residence, [inputs, targets], [split.inputs.lengths])


class SequenceWorkload:
    """A model of tokens with its data on a device (a `workload.Workload`, and
    `workload.Adaptable`).

    `CAUSAL` says whether a token sees only those before it. A task overrides `keep`, `count` and
    `measure` where it has metrics of its own, and `logits` and the layout where its model reads
    more than tokens and a mask.
    """

    CAUSAL: ClassVar[bool] = False

    def __init__(
        self,
        source: Template,
        data: SequenceData,
        settings: Settings,
        setup: Setup,
        layout: TokenLayout | None = None,
    ) -> None:
        if layout is None:
            layout = TokenLayout()
        device = torch.device(setup.device)
        model = templates.build(source, settings, setup.seed).to(device)
        self._model = model
        self.model: nn.Module = model
        self._files = TransformerFiles(model, source.base, data.tokenizer_files, device)
        self._data = data
        self._uncached = templates.uncached(model)
        self._smoothing = settings.label_smoothing
        self._weights = data.train.weights
        self.lengths: Ints = layout.lengths(data.train)

        masked = templates.always_masked(model, settings)
        residence = Residence.of(data, device)

        def samples_of(split: Split) -> Samples:
            inputs = Padded(
                residence, "input_ids", split.inputs, data.padding, "attention_mask", masked
            )
            return layout.samples(split, inputs, residence, model)

        if isinstance(settings, PackingSettings) and settings.packing:
            self.samples = self._packed(settings, residence)
        else:
            self.samples = samples_of(data.train)
        scored = layout.scored(data)
        self._validation = samples_of(scored)
        # Longest first: samples of a batch pad little, and too large a batch fails at once.
        self._eval_lengths = layout.lengths(scored)
        self._eval_order = np.argsort(-totals(self._eval_lengths), kind="stable")
        self._batches = evaluation.Batches(model, self._eval_lengths, settings, device)

    def _packed(self, settings: Settings, residence: Residence) -> Samples:
        """The training samples, several in a row."""
        data, model = self._data, self._model
        split = data.train
        most = order.most_samples(self.lengths, settings)
        longest = np.sort(self.lengths)[-most:]
        tokens = int(longest.sum())
        capacity = max(min(settings.max_length, tokens), 2)
        packed_rows.demand(model, self.CAUSAL, capacity)
        inputs = packed_rows.Filled(split.inputs, data.padding)
        targets = packed_rows.Filled(split.targets, IGNORED)
        first = packed_rows.first_position(model)
        return packed_rows.PackedSamples(residence, inputs, targets, capacity, first)

    def batch(self, rows: Ints) -> Batch:
        """The training samples `rows`."""
        return self.samples.batch(rows)

    def weight(self, rows: Ints) -> float:
        """The targets of the samples `rows`; 1 if they have none, for then the sum of their
        losses is zero."""
        return float(max(self._weights[rows].sum(), 1))

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum of the targets' cross-entropies."""
        return _cross_entropy(self.logits(batch), batch.labels, self._smoothing)

    def logits(self, batch: Batch) -> torch.Tensor:
        """For each target, the model's scores of all classes: shape (samples, targets, classes)."""
        inputs = packed_rows.readable(batch.inputs, self._model.config, self.CAUSAL)
        scores: torch.Tensor = self._model(**inputs, **self._uncached).logits.float()
        return scores

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """The loss of a validation target (without smoothing), and what `measure` adds."""
        group = processes.current()
        batches = self._batches
        measured: list[tuple[Ints, evaluation.Measures]] = []
        with evaluation.evaluating(self._model):
            for part in group.own(batches.parts(self._eval_order)):
                measured += batches.measured(part, precision, self._evaluate_batch)
        parts, losses, on_device = [], [], []
        for part, (loss_of_part, kept) in measured:
            parts.append(part)
            losses.append(loss_of_part)
            on_device.append(kept)
        total = evaluation.total(losses, group) + self._missed_loss()
        counted = self.count(parts, [kept.cpu() for kept in on_device])
        counts = group.added(*counted)
        loss = total / max(self._targets(), 1)
        return {"loss": loss, **self.measure(loss, counts)}

    def _targets(self) -> int:
        """How many validation targets are scored."""
        scored = self._data.scored
        if scored is not None:
            return len(scored.targets.tokens)
        return int(self._data.validation.weights.sum())

    def _missed_loss(self) -> float:
        """The loss of the validation targets that the model does not predict: as if each class were
        as likely."""
        scored = self._data.scored
        if scored is None or not scored.missed:
            return 0.0
        return scored.missed * math.log(len(self._data.labels))

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The metrics beside the loss.

        Args:
            loss: The mean loss of a validation target.
            counts: The sums of what `count` has counted on every process.
        """
        return {}

    def count(self, parts: Sequence[Ints], kept: Sequence[torch.Tensor]) -> Sequence[int]:
        """What `measure` needs to know of validation samples, in numbers that add up; as many for
        no samples.

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
        longest = longest_batch(self._eval_lengths, self._batches.size)
        with evaluation.evaluating(self._model):
            self._batches.rehearse(longest, precision, self._evaluate_batch)

    def _evaluate_batch(
        self, rows: Ints, precision: Precision
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of losses of the validation samples `rows`, and what is kept of their scores; on
        the device."""
        batch = self._validation.batch(rows)
        with precision.autocast():
            logits = self.logits(batch)
        return _cross_entropy(logits, batch.labels, 0.0), self.keep(logits)

    def weights(self) -> Weights:
        """The model's weights; with adapters, those that train."""
        return self._files.weights()

    def write(self, folder: Path, weights: Weights) -> None:
        """Write weights, configuration and tokenizer: what `from_pretrained` reads, or peft where
        it is adapters."""
        self._files.write(folder, weights)

    def read(self, folder: Path) -> None:
        """Load the weights of a checkpoint."""
        self._files.read(folder)

    def merge(self, folder: Path) -> None:
        """Make a whole model of the adapters in a folder, those that the model has."""
        self._files.merge(folder)

    def take(self, folder: Path) -> None:
        """Take over the weights of a whole model, where nothing has been trained yet."""
        self._files.take(folder)


def _cross_entropy(logits: torch.Tensor, targets: torch.Tensor, smoothing: float) -> torch.Tensor:
    """The sum over all targets that are not ignored."""
    flat = logits.flatten(0, 1), targets.flatten()
    return nn.functional.cross_entropy(
        *flat, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing
    )
