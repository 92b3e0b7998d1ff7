"""What the outputs of a text model are - scores of classes, of labels, or a number - and their
losses and metrics."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from trials.descriptions.text import CLASS, LABELS, NUMBER
from trials.tasks import metrics
from trials.tasks.text.data import TextData


class TextHead(Protocol):
    """What the outputs of a model are."""

    PROBLEM: ClassVar[str | None]
    """Transformers' name for it (`problem_type`); None where that needs no name."""

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        """The sum of the losses of some texts.

        Args:
            outputs: Of the model, shape (texts, labels).
            truth: Their targets, shape (texts,) or (texts, labels).
            smoothing: The share of each label that is spread over all classes.
        """

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        """What is compared with the targets, of their shape."""

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """The metrics of targets and of what was predicted of the same texts."""


class ClassHead:
    """The scores of classes, of which one is right.

    Args:
        data: The prepared data.
        device: Where the model is.
    """

    PROBLEM: ClassVar[str | None] = None

    def __init__(self, data: TextData, device: torch.device) -> None:
        self._classes = len(data.labels)
        self._weights = _on_device(data.class_weights, device)

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        """Cross-entropies, each times the weight of its class."""
        return nn.functional.cross_entropy(
            outputs, truth, self._weights, reduction="sum", label_smoothing=smoothing
        )

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        """The class with the highest score."""
        return outputs.argmax(dim=-1)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """Accuracy, macro F1 and Matthews correlation."""
        return metrics.classification(truth, found, self._classes)


class LabelsHead:
    """A score for each label, which is above 0 if a text has it.

    Args:
        data: The prepared data.
        device: Where the model is.
    """

    PROBLEM: ClassVar[str | None] = "multi_label_classification"

    def __init__(self, data: TextData, device: torch.device) -> None:
        self._weights = _on_device(data.class_weights, device)

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        """Binary cross-entropies, of each text the mean over the labels. A label that a text has
        counts by its weight."""
        wanted = truth * (1.0 - smoothing) + smoothing / 2.0  # of two classes: it has it or not
        total = nn.functional.binary_cross_entropy_with_logits(
            outputs, wanted, reduction="sum", pos_weight=self._weights
        )
        return total / outputs.shape[1]

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        """1 for the labels with a probability above a half."""
        return (outputs > 0).to(torch.int8)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """Micro F1, macro F1 and exact match."""
        from trials.tasks.text import scores  # a second to import, and classes do without it

        return scores.of_labels(truth.astype(np.int8), found)


class NumberHead:
    """A standardised number.

    Args:
        data: The prepared data.
        device: Where the model is.
    """

    PROBLEM: ClassVar[str | None] = "regression"

    def __init__(self, data: TextData, device: torch.device) -> None:
        self._deviation = data.deviation

    def losses(self, outputs: torch.Tensor, truth: torch.Tensor, smoothing: float) -> torch.Tensor:
        """Squared errors in deviations of the training data."""
        return nn.functional.mse_loss(outputs.squeeze(-1), truth, reduction="sum")

    def predicted(self, outputs: torch.Tensor) -> torch.Tensor:
        """The standardised number."""
        return outputs.squeeze(-1)

    def measure(self, truth: npt.NDArray[Any], found: npt.NDArray[Any]) -> dict[str, float]:
        """Errors in the unit of the data, and correlations."""
        from trials.tasks.text import scores  # a second to import, and classes do without it

        return scores.of_numbers(
            truth.astype(np.float64), found.astype(np.float64), self._deviation
        )


_HEADS: dict[str, type[ClassHead | LabelsHead | NumberHead]] = {
    CLASS: ClassHead,
    LABELS: LabelsHead,
    NUMBER: NumberHead,
}


def head_of(data: TextData, device: torch.device) -> TextHead:
    """What the outputs of a model of this data are.

    Args:
        data: The prepared data.
        device: Where the model is.
    """
    return _HEADS[data.target](data, device)


def _on_device(
    weights: npt.NDArray[np.float32] | None, device: torch.device
) -> torch.Tensor | None:
    return None if weights is None else torch.tensor(weights, device=device)
