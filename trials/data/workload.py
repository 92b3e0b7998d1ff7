"""The protocol between the training loop and a built-in task: its model with its data."""

from collections.abc import Callable, Hashable, Mapping
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
    """A micro-batch on the device."""

    inputs: Mapping[str, torch.Tensor]
    labels: torch.Tensor
    tokens: int
    cells: int  # tokens and padding
    recurs: bool = False
    """Whether other batches have its shape: all are padded to the rungs of a ladder."""


Work = Callable[[Batch], tuple[torch.Tensor, ...]]  # computes tensors from a batch


class Replay(Protocol):
    """Does the work of a batch, or replays it where it was captured."""

    def __call__(self, name: str, batch: Batch, work: Work) -> tuple[torch.Tensor, ...]:
        """The results of `work`; it is known by its name and by the batch's shape."""


class Workload(Protocol):
    """A model with its training and validation data."""

    model: nn.Module  # on the device it trains on
    lengths: Lengths  # of the training samples
    baked: Hashable  # all that its losses compute with beside weights and a batch, by value
    replay: Replay  # evaluates a batch of the full size

    def batch(self, rows: Ints) -> Batch:
        """The training samples `rows`, padded to the longest of them."""

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum (not the mean) of the losses of all targets: a scalar with gradients."""

    def weight(self, rows: Ints) -> float:
        """The targets of the samples `rows`, by which the sum of their losses is divided: one for
        each sample that is classified, or as many as it has target tokens."""

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """The validation metrics with `loss`. Draws nothing random; the model trains afterwards."""

    def by_sample(self, metric: str) -> list[float] | None:
        """The results of all validation samples, in their order, by the last evaluation; None
        before one, and if the metric is not their mean."""

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
