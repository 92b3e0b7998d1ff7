"""What the training loop trains: the protocol between the loop and a built-in task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import nn

from trials.checkpoints.weights import Weights
from trials.data.batching import Ints
from trials.optim.precision import Precision


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
    lengths: Ints
    """Tokens of each training sample, shape (n,); shape (n, parts) where parts of it are padded
    each by itself."""

    def batch(self, rows: Ints) -> Batch:
        """The training samples `rows`, padded to the longest of them."""

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum (not the mean) of the losses of all targets: a scalar with gradients."""

    def weight(self, rows: Ints) -> float:
        """How many targets the samples `rows` have: what the sum of their losses is divided by. One
        a sample where each is classified, as many as its target tokens where each token is."""

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """The validation metrics, `loss` among them. Draws nothing random and leaves the model
        training."""

    def evaluate_longest(self, precision: Precision) -> None:
        """Evaluate the batch that needs the most memory, for a rehearsal."""

    def weights(self) -> Weights:
        """The tensors of a checkpoint, as the model has them now: nothing is copied."""

    def write(self, folder: Path, weights: Weights) -> None:
        """Write a checkpoint of such weights, so that it can be loaded without this program. Works
        in any thread."""

    def read(self, folder: Path) -> None:
        """Load the model's weights from a checkpoint."""


@runtime_checkable
class Adaptable(Protocol):
    """A workload whose model may have adapters (`trials.tasks.huggingface.lora`)."""

    def merge(self, folder: Path) -> None:
        """Make a whole model of the adapters in a folder, those that the model has."""

    def take(self, folder: Path) -> None:
        """Take over the weights of a whole model, where nothing has been trained yet."""
