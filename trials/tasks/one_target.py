"""What the workloads share whose samples have one target each, a class or a quantity: images, rows
and texts."""

from __future__ import annotations

import abc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from trials.checkpoints.weights import Weights
from trials.data.batching import Ints
from trials.data.samples import Samples
from trials.data.workload import Batch
from trials.devices import processes
from trials.optim.precision import Precision
from trials.settings import Settings
from trials.tasks import evaluation
from trials.tasks.network_files import Stored


@dataclass(frozen=True)
class TargetSamples:
    """Samples with their targets.

    Args:
        samples: The samples, which become batches.
        targets: The target of each, shape (n,).
        lengths: The tokens of each, shape (n,).
    """

    samples: Samples
    targets: npt.NDArray[Any]
    lengths: Ints

    @property
    def longest_first(self) -> Ints:
        """The rows, the longest first: samples of a batch pad little, and too large a batch fails
        at once."""
        return np.argsort(-self.lengths, kind="stable")


class OneTargetWorkload(abc.ABC):
    """A model with samples of one target each, on a device (a `workload.Workload`).

    Args:
        model: The model.
        files: Its files.
        splits: The training samples, and the validation samples.
        settings: Of the trial.
        device: Where the model is.
    """

    def __init__(
        self,
        model: nn.Module,
        files: Stored,
        splits: tuple[TargetSamples, TargetSamples],
        settings: Settings,
        device: torch.device,
    ) -> None:
        train, validation = splits
        self.model = model
        self.samples = train.samples
        self.lengths = train.lengths
        self._files = files
        self._validation, self._targets = validation.samples, validation.targets
        self._smoothing = settings.label_smoothing
        self._order = validation.longest_first
        self._batches = evaluation.Batches(model, validation.lengths, settings, device)

    @abc.abstractmethod
    def outputs(self, batch: Batch) -> torch.Tensor:
        """What the model makes of each sample: the scores of all classes, shape (n, classes), or a
        quantity, (n,)."""

    def losses(self, outputs: torch.Tensor, batch: Batch, smoothing: float) -> torch.Tensor:
        """The sum of the samples' losses: their cross-entropies, where it is not overridden."""
        return nn.functional.cross_entropy(
            outputs, batch.labels, reduction="sum", label_smoothing=smoothing
        )

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        """The class of each sample, shape (n,), or whatever else is compared with its target."""
        return outputs.argmax(dim=-1)

    @abc.abstractmethod
    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """The metrics beside the loss.

        Args:
            truth: Targets, shape (n,).
            found: What was predicted of the same samples.
        """

    def batch(self, rows: Ints) -> Batch:
        """The training samples `rows`."""
        return self.samples.batch(rows)

    def weight(self, rows: Ints) -> float:
        """One target a sample."""
        return float(len(rows))

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum of the samples' losses."""
        return self.losses(self.outputs(batch), batch, self._smoothing)

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """Loss (without smoothing) and metrics of the validation samples."""
        batches, order = self._batches, self._order

        def measure(part: Ints) -> evaluation.Measures:
            return batches.joined(part, precision, self._evaluate_batch)

        group = processes.current()
        with evaluation.evaluating(self.model):
            measured = group.spread(batches.parts(order), measure)
        losses, predictions = [], []
        for loss_of_part, predicted in measured:
            losses.append(loss_of_part)
            predictions.append(predicted)
        found = torch.cat(predictions).cpu().numpy()
        truth = self._targets[order]
        loss = evaluation.total(losses) / len(order)
        return {"loss": loss, **self.measure(truth, found)}

    def evaluate_longest(self, precision: Precision) -> None:
        """Evaluate the batch of the longest validation samples."""
        with evaluation.evaluating(self.model):
            self._batches.rehearse(self._order, precision, self._evaluate_batch)

    def _evaluate_batch(
        self, rows: Ints, precision: Precision
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of losses, and the predictions, of the validation samples `rows`; both on the
        device."""
        batch = self._validation.batch(rows)
        with precision.autocast():
            outputs = self.outputs(batch)
        return self.losses(outputs, batch, smoothing=0.0), self.predicted(outputs)

    def weights(self) -> Weights:
        """The tensors of a checkpoint, as the model has them now."""
        return self._files.weights()

    def write(self, folder: Path, weights: Weights) -> None:
        """Write a checkpoint of such weights, so that it can be loaded without this program."""
        self._files.write(folder, weights)

    def read(self, folder: Path) -> None:
        """Load the model's weights from a checkpoint."""
        self._files.read(folder)
