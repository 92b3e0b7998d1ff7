"""How an image classification task trains and evaluates: normalised images, changed at random while training."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import nn

from trials import distributed, metrics
from trials.batching import Ints
from trials.contract import Setup
from trials.precision import Precision
from trials.randomness import Use, derive, seed_everything
from trials.residence import Residence, to_device
from trials.samples import LABELS, Column, Samples
from trials.tasks import evaluation
from trials.tasks.image_classification import ImageSettings
from trials.tasks.image_data import Bytes, ImageData
from trials.tasks.residual import ResidualNetwork
from trials.weights import MODEL, Weights, write
from trials.workload import Batch

DESCRIPTION = "images.json"
"""The file of a checkpoint that tells the network's shape, its classes and how an image is normalised."""


def _samples(
    residence: Residence, images: Bytes, labels: Ints, finish: Callable[[Batch], Batch] | None = None
) -> Samples:
    parts = [Column(residence, "images", images), Column(residence, LABELS, labels)]
    return Samples(residence, parts, [np.ones(len(labels), dtype=np.int64)], finish)


class ImageWorkload:
    """A residual network with its images on a device (a `workload.Workload`)."""

    def __init__(self, data: ImageData, settings: ImageSettings, setup: Setup) -> None:
        self._device = torch.device(setup.device)
        self._data, self._settings = data, settings
        self.model: nn.Module = self._network(setup.seed).to(self._device)
        self.lengths: Ints = np.ones(len(data.train), dtype=np.int64)
        shape = (1, data.train.shape[3], 1, 1)
        self._means = torch.tensor(data.means, device=self._device).reshape(shape)
        self._deviations = torch.tensor(data.deviations, device=self._device).reshape(shape)
        residence = Residence.of(data, self._device)
        self.samples = _samples(residence, data.train, data.train_labels, self._changed)
        self._validation = _samples(residence, data.validation, data.validation_labels)
        self._eval_order = np.arange(len(data.validation))

    def _network(self, seed: int) -> nn.Module:
        """The network, with weights that derive from the trial's seed."""
        data, settings = self._data, self._settings
        seed_everything(derive(seed, Use.WEIGHTS))
        shape = settings.depth, settings.width, settings.dropout or 0.0
        return ResidualNetwork(data.train.shape[3], len(data.labels), *shape)

    def batch(self, rows: Ints) -> Batch:
        """The training images `rows`, mirrored and moved at random."""
        return self.samples.batch(rows)

    def _changed(self, batch: Batch) -> Batch:
        images, settings = batch.inputs["images"], self._settings
        if not settings.flip and not settings.shift:
            return batch
        # The loop seeds numpy's generator for every step; three numbers an image, one image after the other, are the
        # same ones however the batch is cut.
        draws = torch.from_numpy(np.random.random_sample((len(images), 3)))
        images = changed(images, to_device(draws, self._device), settings.flip, settings.shift)
        return dataclasses.replace(batch, inputs={"images": images})

    def _logits(self, batch: Batch) -> torch.Tensor:
        return self._scores(batch.inputs["images"].permute(0, 3, 1, 2).float() / 255).float()

    def _scores(self, images: torch.Tensor) -> torch.Tensor:
        """Shares of full brightness (n, channels, height, width) to scores (n, classes)."""
        scores: torch.Tensor = self.model((images - self._means) / self._deviations)
        return scores

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
        batch = self._validation.batch(rows)
        with precision.autocast():
            logits = self._logits(batch)
        return nn.functional.cross_entropy(logits, batch.labels, reduction="sum"), logits.argmax(dim=-1)

    def weights(self) -> Weights:
        """The network's weights."""
        return {MODEL: self.model.state_dict()}

    def write(self, folder: Path, weights: Weights) -> None:
        """Write the weights, and beside them what is needed to use them."""
        write(weights, folder)
        self._describe(folder)

    def _describe(self, folder: Path) -> None:
        """Write what is needed to use the weights."""
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
        safetensors.torch.load_model(self.model, str(folder / MODEL), device=str(self._device))


def changed(images: torch.Tensor, draws: torch.Tensor, flip: bool, shift: int) -> torch.Tensor:
    """Images mirrored and moved; pixels at the edge are repeated where nothing else is.

    Args:
        images: Shape (n, height, width, channels).
        draws: In [0, 1), shape (n, 3), float64, on the images' device: whether to mirror, how far to move down and
            right.
        flip: Mirror those whose first draw is below a half.
        shift: The furthest to move, in pixels.
    """
    count, height, width, _ = images.shape
    every, down, right = (torch.arange(size, device=images.device) for size in (count, height, width))
    moves = (draws[:, 1:] * (2 * shift + 1)).floor().long() - shift
    rows = (down - moves[:, :1]).clamp(0, height - 1)
    columns = (right - moves[:, 1:]).clamp(0, width - 1)
    if flip:
        columns = torch.where(draws[:, :1] < 0.5, columns.flip(1), columns)
    return images[every[:, None, None], rows[:, :, None], columns[:, None, :]]
