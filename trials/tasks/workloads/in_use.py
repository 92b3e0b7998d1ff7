"""A trained model in use: predictions and probabilities of many inputs, in batches on a device."""

import abc
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from trials.data.batching import Ints, cut
from trials.descriptions.text import CLASS, LABELS, NUMBER

BATCH = 128
"""Inputs that go through a model at once."""


class ModelInUse(abc.ABC):
    """A trained model in use.

    Attributes:
        labels: The names of the classes or labels, in the order of `probabilities`.
    """

    labels: tuple[str, ...]
    _target: str = CLASS
    _mean: float = 0.0
    _deviation: float = 1.0

    @abc.abstractmethod
    def _outputs(self, inputs: Any, batch_size: int) -> torch.Tensor:
        """The model's scores or standardised numbers, float32 on the CPU, shape (n, labels). Raises
        ValueError if the inputs are not such as the model reads."""

    def predict(self, inputs: Any, batch_size: int = BATCH) -> list[Any]:
        """The class of each input, its labels (of a probability above a half), or its number in
        the unit of the data. `batch_size`: inputs that go through the model at once; it changes
        memory and time, not results. Raises ValueError if the inputs are not such as it reads."""
        outputs = self._outputs(inputs, _checked(batch_size))
        if self._target == NUMBER:
            numbers = outputs[:, 0].double() * self._deviation + self._mean
            return list(numbers.tolist())
        if self._target == LABELS:
            return [sorted(itertools.compress(self.labels, row)) for row in (outputs > 0).tolist()]
        return [self.labels[number] for number in outputs.argmax(dim=1).tolist()]

    def probabilities(self, inputs: Any, batch_size: int = BATCH) -> npt.NDArray[np.float32]:
        """The probability of each of the `labels` for each input, shape (n, labels). Those of
        classes add up to 1; each of several labels has its own. Raises ValueError if the model
        predicts numbers, or the inputs are not such as it reads."""
        if self._target == NUMBER:
            raise ValueError("the model predicts a number, which has no probabilities; use predict")
        outputs = self._outputs(inputs, _checked(batch_size))
        shares = outputs.sigmoid() if self._target == LABELS else outputs.softmax(dim=1)
        found: npt.NDArray[np.float32] = shares.float().numpy()
        return found


def in_batches(
    order: Ints, size: int, width: int, scores: Callable[[Ints], torch.Tensor]
) -> torch.Tensor:
    """The scores of rows, float32 on the CPU, shape (n, width), computed in batches in an order."""
    found = torch.empty(len(order), width)
    with torch.inference_mode():
        for rows in cut(order, size):
            found[rows] = scores(rows).float().cpu()
    return found


def _checked(batch_size: int) -> int:
    if batch_size < 1:
        raise ValueError(f"a batch has at least 1 input, not {batch_size}")
    return batch_size


def described(folder: Path | str, name: str) -> dict[str, Any]:
    """The description of a network in a folder. Raises FileNotFoundError if there is none."""
    path = Path(folder) / name
    if not path.is_file():
        what = "it is not a model that was written to be used"
        raise FileNotFoundError(f"{folder} has no {name}: {what}")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
