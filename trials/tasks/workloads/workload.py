"""A model with its samples on a device: the common steps of all built-in tasks."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from trials.data.batching import Ints, Lengths, longest_batch, totals
from trials.data.samples import Samples
from trials.data.workload import Batch
from trials.devices import processes
from trials.devices.precision import Precision
from trials.settings import Settings
from trials.tasks.workloads import evaluation
from trials.tasks.workloads.heads import Head
from trials.tasks.workloads.network_files import Stored


@dataclass(frozen=True)
class SampleSet:
    """The samples of one split."""

    samples: Samples
    lengths: Lengths


class BuiltInWorkload(abc.ABC):
    """A model with its training and its validation samples (a `workload.Workload`)."""

    def __init__(
        self,
        model: nn.Module,
        files: Stored,
        train: SampleSet,
        validation: SampleSet,
        settings: Settings,
        device: torch.device,
    ) -> None:
        self.model = model
        self.samples, self.lengths = train.samples, train.lengths
        self.weights, self.write, self.read = files.weights, files.write, files.read
        self._validation, self._eval_lengths = validation.samples, validation.lengths
        # Longest first: samples of a batch pad little, and too large a batch fails at once.
        self._order = np.argsort(-totals(self._eval_lengths), kind="stable")
        self._batches = evaluation.Batches(model, self._eval_lengths, settings, device)
        self._smoothing = settings.label_smoothing

    @abc.abstractmethod
    def outputs(self, batch: Batch) -> torch.Tensor:
        """The model's scores or quantities, in float32."""

    @abc.abstractmethod
    def losses(self, outputs: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
        """The sum of the losses of all targets of a batch."""

    @abc.abstractmethod
    def keep(self, outputs: torch.Tensor) -> torch.Tensor:
        """The part of a batch's outputs for the metrics."""

    def batch(self, rows: Ints) -> Batch:
        """The training samples `rows`."""
        return self.samples.batch(rows)

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum of the losses of all targets."""
        return self.losses(self.outputs(batch), batch.labels, self._smoothing)

    def evaluate_longest(self, precision: Precision) -> None:
        """Evaluate the batch of the longest validation samples."""
        longest = longest_batch(self._eval_lengths, self._batches.size)
        with evaluation.evaluating(self.model):
            self._batches.rehearse(longest, precision, self._evaluate_batch)

    def _evaluate_batch(self, rows: Ints, precision: Precision) -> evaluation.Measures:
        batch = self._validation.batch(rows)
        with precision.autocast():
            outputs = self.outputs(batch)
        return self.losses(outputs, batch.labels, 0.0), self.keep(outputs)


class OneTargetWorkload(BuiltInWorkload):
    """A model whose samples have one target each: a class, a set of labels or a quantity."""

    _head: Head
    """Losses and metrics, by the kind of target; set before this class is initialised."""
    _targets: npt.NDArray[Any]
    """The validation targets."""

    def losses(self, outputs: torch.Tensor, labels: torch.Tensor, smoothing: float) -> torch.Tensor:
        return self._head.losses(outputs, labels, smoothing)

    def keep(self, outputs: torch.Tensor) -> torch.Tensor:
        return self._head.predicted(outputs)

    def weight(self, rows: Ints) -> float:
        return float(len(rows))

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """Loss (without smoothing) and metrics of the validation samples."""
        batches, order = self._batches, self._order

        def measure(part: Ints) -> evaluation.Measures:
            return batches.joined(part, precision, self._evaluate_batch)

        group = processes.current()
        with evaluation.evaluating(self.model):
            measured = group.spread(batches.parts(order), measure)
        losses = [loss for loss, _ in measured]
        found = torch.cat([predicted for _, predicted in measured]).cpu().numpy()
        loss = evaluation.total(losses) / len(order)
        return {"loss": loss, **self._head.measure(self._targets[order], found)}
