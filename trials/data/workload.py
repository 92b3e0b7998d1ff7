"""The protocol between the training loop and a built-in task: its model with its data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from trials.checkpoints.weights import Weights
from trials.data.batching import Ints, Lengths
from trials.devices.precision import Precision


@dataclass(frozen=True)
class Batch:
    """A micro-batch on the device, with its size: `cells` counts tokens and padding."""

    inputs: Mapping[str, torch.Tensor]
    labels: torch.Tensor
    tokens: int
    cells: int


class Workload(Protocol):
    """A model with its training and validation data."""

    model: nn.Module
    """On the device it trains on."""
    lengths: Lengths
    """Of the training samples."""

    def batch(self, rows: Ints) -> Batch:
        """The training samples `rows`, padded to the longest of them."""

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum (not the mean) of the losses of all targets: a scalar with gradients."""

    def weight(self, rows: Ints) -> float:
        """The targets of the samples `rows`, by which the sum of their losses is divided: one for
        each sample that is classified, or as many as it has target tokens."""

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """The validation metrics with `loss`. Draws nothing random; the model trains afterwards."""

    def evaluate_longest(self, precision: Precision) -> None:
        """Evaluate the batch that needs the most memory."""

    def weights(self) -> Weights:
        """The tensors of a checkpoint, which are the model's own."""

    def write(self, folder: Path, weights: Weights) -> None:
        """Write weights so that they load without this program. Works in any thread."""

    def read(self, folder: Path) -> None:
        """Load the model's weights from a checkpoint."""


@runtime_checkable
class Adaptable(Protocol):
    """A workload whose model may have adapters (`trials.tasks.huggingface.lora`)."""

    def merge(self, folder: Path) -> None:
        """Turn the adapters in a folder, which the model has now, into a whole model."""

    def take(self, folder: Path) -> None:
        """Load the weights of a whole model, before training."""
