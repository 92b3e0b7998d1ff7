"""How an image classification task trains and evaluates: normalised images, changed at random while training."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import numpy.typing as npt
import safetensors.torch
import torch
from torch import nn

from trials import distributed, metrics
from trials.batching import Ints
from trials.contract import Setup
from trials.precision import Precision
from trials.randomness import Use, derive, seed_everything
from trials.tasks import evaluation
from trials.tasks.evaluation import to_device
from trials.tasks.image_classification import ImageSettings
from trials.tasks.image_data import Bytes, ImageData
from trials.tasks.residual import ResidualNetwork
from trials.workload import Batch

WEIGHTS = "model.safetensors"
DESCRIPTION = "images.json"
"""The file of a checkpoint that tells the network's shape, its classes and how an image is normalised."""


class ImageWorkload:
    """A residual network with its images on a device (a `workload.Workload`)."""

    def __init__(self, data: ImageData, settings: ImageSettings, setup: Setup) -> None:
        self._device = torch.device(setup.device)
        self._data, self._settings = data, settings
        seed_everything(derive(setup.seed, Use.WEIGHTS))
        channels = data.train.shape[3]
        network = ResidualNetwork(channels, len(data.labels), settings.depth, settings.width, settings.dropout or 0.0)
        self.model: nn.Module = network.to(self._device)
        self.lengths: Ints = np.ones(len(data.train), dtype=np.int64)
        shape = (1, channels, 1, 1)
        self._means = torch.tensor(data.means, device=self._device).reshape(shape)
        self._deviations = torch.tensor(data.deviations, device=self._device).reshape(shape)
        self._eval_order = np.arange(len(data.validation))

    def batch(self, rows: Ints) -> Batch:
        """The training images `rows`, mirrored and moved at random."""
        images = self._data.train[rows]
        if self._settings.flip or self._settings.shift:
            # The loop seeds numpy's generator for every step; three numbers an image, one image after the other, are
            # the same ones however the batch is cut.
            images = changed(images, np.random.random_sample((len(rows), 3)), self._settings.flip, self._settings.shift)
        return self._batch(images, self._data.train_labels[rows])

    def _batch(self, images: Bytes, labels: Ints) -> Batch:
        inputs = {"images": to_device(images, self._device)}
        return Batch(inputs, to_device(labels, self._device), tokens=len(labels), cells=len(labels))

    def _logits(self, batch: Batch) -> torch.Tensor:
        images = batch.inputs["images"].permute(0, 3, 1, 2).float() / 255
        logits: torch.Tensor = self.model((images - self._means) / self._deviations).float()
        return logits

    def loss_sum(self, batch: Batch) -> torch.Tensor:
        """The sum of the images' cross-entropies."""
        smoothing = self._settings.label_smoothing
        return nn.functional.cross_entropy(
            self._logits(batch), batch.labels, reduction="sum", label_smoothing=smoothing
        )

    def weight(self, rows: Ints) -> float:
        """One class an image."""
        return float(len(rows))

    def evaluate(self, precision: Precision) -> dict[str, float]:
        """Loss (without smoothing), accuracy, macro F1 and Matthews correlation of the validation images."""
        parts = evaluation.cut(self._eval_order, self._settings.eval_batch_size)
        with evaluation.evaluating(self.model):
            results = distributed.current().spread(parts, lambda part: self._evaluate_batch(part, precision))
        predicted = torch.cat([prediction for _, prediction in results]).cpu().numpy()
        loss = evaluation.total([loss for loss, _ in results]) / len(self._eval_order)
        found = metrics.classification(self._data.validation_labels, predicted, len(self._data.labels))
        return {"loss": loss, **found}

    def evaluate_longest(self, precision: Precision) -> None:
        """Evaluate a batch of validation images: all are of one size."""
        with evaluation.evaluating(self.model):
            loss, _ = self._evaluate_batch(self._eval_order[: self._settings.eval_batch_size], precision)
        loss.item()  # waits for the device

    def _evaluate_batch(self, rows: Ints, precision: Precision) -> tuple[torch.Tensor, torch.Tensor]:
        """The sum of losses, and the predicted classes, of the validation images `rows`; both on the device."""
        batch = self._batch(self._data.validation[rows], self._data.validation_labels[rows])
        with precision.autocast():
            logits = self._logits(batch)
        return nn.functional.cross_entropy(logits, batch.labels, reduction="sum"), logits.argmax(dim=-1)

    def write(self, folder: Path) -> None:
        """Write the weights, and beside them what is needed to use them."""
        safetensors.torch.save_model(self.model, str(folder / WEIGHTS), metadata={"format": "pt"})
        data = self._data
        content = {
            "network": {"depth": self._settings.depth, "width": self._settings.width, "shape": data.train.shape[1:]},
            "labels": data.labels,
            "means": data.means,
            "deviations": data.deviations,
        }
        (folder / DESCRIPTION).write_text(json.dumps(content, indent=1), encoding="utf-8")

    def read(self, folder: Path) -> None:
        """Load the weights of a checkpoint."""
        safetensors.torch.load_model(self.model, str(folder / WEIGHTS), device=str(self._device))


def changed(images: Bytes, draws: npt.NDArray[np.float64], flip: bool, shift: int) -> Bytes:
    """Images mirrored and moved; pixels at the edge are repeated where nothing else is.

    Args:
        images: Shape (n, height, width, channels).
        draws: In [0, 1), shape (n, 3): whether to mirror, how far to move down and right.
        flip: Mirror those whose first draw is below a half.
        shift: The furthest to move, in pixels.
    """
    count, height, width, _ = images.shape
    moves = np.floor(draws[:, 1:] * (2 * shift + 1)).astype(np.int64) - shift
    rows = np.clip(np.arange(height) - moves[:, :1], 0, height - 1)
    columns = np.clip(np.arange(width) - moves[:, 1:], 0, width - 1)
    if flip:
        columns = np.where(draws[:, :1] < 0.5, columns[:, ::-1], columns)
    picked: Bytes = images[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return picked
