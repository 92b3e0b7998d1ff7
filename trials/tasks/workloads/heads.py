"""The losses and metrics of models with one target a sample: a class, labels, or a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from trials.tasks.workloads import metrics


class Head(Protocol):
    """The meaning of a model's outputs."""

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        """The sum of the losses of some samples.

        Args:
            outputs: Shape (n, classes).
            truth: Their targets, shape (n,) or (n, labels).
            smoothing: The share of each label that is spread over all classes.
        """

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        """Predictions of the shape of the targets."""

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """The metrics of targets and predictions of the same samples."""


class ClassHead:
    """Scores of classes that exclude each other.

    Args:
        weights: The weight of each class in the loss, shape (classes,).
    """

    def __init__(self, weights: torch.Tensor | None = None) -> None:
        self._weights = weights

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        return nn.functional.cross_entropy(
            outputs, truth, self._weights, reduction="sum", label_smoothing=smoothing
        )

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.argmax(dim=-1)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        return metrics.classification(truth.astype(np.int64), found)


class LabelsHead:
    """A score for each label, above 0 if a sample has the label.

    Args:
        weights: The weight of each label where a sample has it, shape (labels,).
    """

    def __init__(self, weights: torch.Tensor | None = None) -> None:
        self._weights = weights

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        """Binary cross-entropies; for each sample the mean over the labels."""
        wanted = truth * (1.0 - smoothing) + smoothing / 2.0  # of two classes: it has it or not
        total = nn.functional.binary_cross_entropy_with_logits(
            outputs, wanted, reduction="sum", pos_weight=self._weights
        )
        return total / outputs.shape[1]

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        return (outputs > 0).to(torch.int8)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        return metrics.of_labels(truth.astype(np.int8), found)


NumberMetrics = Callable[[metrics.Floats, metrics.Floats, float], dict[str, float]]


class NumberHead:
    """A standardised number.

    Args:
        deviation: The size of 1 in the unit of the data.
        measure: `metrics.of_numbers` or `metrics.of_quantities`.
    """

    def __init__(self, deviation: float, measure: NumberMetrics) -> None:
        self._deviation, self._measure = deviation, measure

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        return nn.functional.mse_loss(outputs.squeeze(-1), truth, reduction="sum")

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.squeeze(-1)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        numbers = truth.astype(np.float64), found.astype(np.float64)
        return self._measure(*numbers, self._deviation)
