"""The workload of an image classification: normalised images, changed at random in training."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import nn

from trials.contract import Setup
from trials.data.batching import Ints
from trials.data.residence import Residence, to_device
from trials.data.samples import LABELS, Column, Samples
from trials.data.workload import Batch
from trials.descriptions.images import ImageSettings
from trials.running.randomness import Use, derive, seed_everything
from trials.tasks.images.classifier import (
    DESCRIPTION,
    ResidualNetwork,
    of_channels,
    shares_of,
)
from trials.tasks.images.data import ImageData
from trials.tasks.images.folder import Bytes
from trials.tasks.workloads.heads import ClassHead
from trials.tasks.workloads.network_files import NetworkFiles
from trials.tasks.workloads.workload import OneTargetWorkload, SampleSet


@dataclass(frozen=True)
class ImageNetwork:
    """A network that classifies images, on its device.

    Args:
        scores: From images as shares of full brightness, shape (n, channels, height, width), to the
            scores of all classes, shape (n, classes).
        describe: Writes the files beside the network's weights into a folder.
    """

    model: nn.Module
    scores: Callable[[torch.Tensor], torch.Tensor]
    describe: Callable[[Path], None]


def residual(data: ImageData, settings: ImageSettings, setup: Setup) -> ImageNetwork:
    """The small residual network, with weights that derive from the trial's seed."""
    device = torch.device(setup.device)
    seed_everything(derive(setup.seed, Use.WEIGHTS))
    depth, width = settings.depth, settings.width
    channels, classes = data.train.shape[3], len(data.labels)
    network = ResidualNetwork(channels, classes, depth, width, settings.dropout or 0.0)
    network = network.to(device)
    normalisation = data.means, data.deviations
    means, deviations = [of_channels(values, device) for values in normalisation]

    def scores(images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = network((images - means) / deviations)
        return found

    def describe(folder: Path) -> None:
        write_description(folder, data, {"depth": depth, "width": width}, normalisation)

    return ImageNetwork(network, scores, describe)


def write_description(
    folder: Path,
    data: ImageData,
    network: Mapping[str, int],
    normalisation: tuple[tuple[float, ...], tuple[float, ...]],
) -> None:
    """Write the file of a checkpoint that `ImageClassifier` reads.

    Args:
        network: The shape of the small network, or the `side` of what a pretrained one reads.
        normalisation: Means and deviations of the network's channels.
    """
    means, deviations = normalisation
    content = {
        "network": {**network, "shape": data.train.shape[1:]},
        "labels": data.labels,
        "means": means,
        "deviations": deviations,
    }
    (folder / DESCRIPTION).write_text(json.dumps(content, indent=1), encoding="utf-8")


class ImageWorkload(OneTargetWorkload):
    """A network with its images on a device (a `workload.Workload`)."""

    def __init__(
        self, network: ImageNetwork, data: ImageData, settings: ImageSettings, setup: Setup
    ) -> None:
        device = torch.device(setup.device)
        residence = Residence.of(data, device)
        finish = None
        if settings.flip or settings.shift:
            finish = RandomChanges(settings.flip, settings.shift, device)
        train = _split(residence, data.train, data.train_labels, finish)
        validation = _split(residence, data.validation, data.validation_labels)
        self._network, self._targets = network, data.validation_labels
        self._head = ClassHead()
        files = NetworkFiles(network.model, device, network.describe)
        super().__init__(network.model, files, train, validation, settings, device)

    def outputs(self, batch: Batch) -> torch.Tensor:
        shares = shares_of(batch.inputs["images"])
        return self._network.scores(shares).float()


def _split(
    residence: Residence,
    images: Bytes,
    labels: Ints,
    finish: Callable[[Batch], Batch] | None = None,
) -> SampleSet:
    parts = [Column(residence, "images", images), Column(residence, LABELS, labels)]
    lengths = np.ones(len(labels), dtype=np.int64)
    samples = Samples(residence, parts, [], finish)
    return SampleSet(samples, lengths)


@dataclass(frozen=True)
class RandomChanges:
    """Mirrors and moves the images of a batch at random."""

    flip: bool
    shift: int
    device: torch.device

    def __call__(self, batch: Batch) -> Batch:
        images = batch.inputs["images"]
        # The loop seeds numpy's generator for every step. Three numbers an image, one image after
        # the other, are the same in every cut of the batch.
        draws = torch.from_numpy(np.random.random_sample((len(images), 3)))
        images = changed(images, to_device(draws, self.device), self.flip, self.shift)
        return dataclasses.replace(batch, inputs={"images": images})


def changed(images: torch.Tensor, draws: torch.Tensor, flip: bool, shift: int) -> torch.Tensor:
    """Images mirrored and moved; pixels at the edge are repeated where nothing else is.

    Args:
        images: Shape (n, height, width, channels).
        draws: In [0, 1), shape (n, 3), float64, on the images' device: whether to mirror, how far
            to move down and right.
        flip: Mirror those whose first draw is below a half.
        shift: The furthest to move, in pixels.
    """
    count, height, width, _ = images.shape
    device = images.device
    every = torch.arange(count, device=device)
    down = torch.arange(height, device=device)
    right = torch.arange(width, device=device)
    mirror, places = draws[:, :1], draws[:, 1:] * (2 * shift + 1)
    moves = places.floor().long() - shift
    moves_down, moves_right = moves[:, :1], moves[:, 1:]
    rows = (down - moves_down).clamp(0, height - 1)
    columns = (right - moves_right).clamp(0, width - 1)
    if flip:
        columns = torch.where(mirror < 0.5, columns.flip(1), columns)
    return images[every[:, None, None], rows[:, :, None], columns[:, None, :]]
