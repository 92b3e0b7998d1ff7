"""A small residual network for images (He et al. 2016): trained on normalised images that are
changed at random, and in use without the task.

Norms are over groups of channels (Wu and He 2018), not over the batch: a micro-batch computes the
same whatever other images are in it.
"""

import dataclasses
import functools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import nn

from trials.checkpoints.weights import MODEL
from trials.contract import Setup, TaskError
from trials.data.batching import Ints
from trials.data.residence import Residence, to_device
from trials.data.samples import LABELS, Column, Samples
from trials.data.workload import Batch
from trials.descriptions.images import ImageSettings
from trials.descriptions.models import Pretrained
from trials.running.randomness import Use, derive, seed_everything
from trials.tasks.huggingface import pretrained
from trials.tasks.images import processor
from trials.tasks.images.folder import Bytes
from trials.tasks.images.image_task import ImageData
from trials.tasks.workloads.heads import ClassHead
from trials.tasks.workloads.in_use import ModelInUse, described, in_batches
from trials.tasks.workloads.workload import NetworkFiles, OneTargetWorkload, SampleSet

DESCRIPTION = "images.json"
"""The file of a checkpoint with the network's shape, its classes and the normalisation."""


class Block(nn.Module):
    """Two convolutions beside a shortcut; `stride` 2 halves the image."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, padding=1, bias=False),
            _norm(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            _norm(after),
        )
        same = before == after and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Shape (n, before, height, width) to (n, after, height / stride, width / stride)."""
        return torch.relu(self.layers(images) + self.shortcut(images))


class ResidualNetwork(nn.Module):
    """Stages of one block each, an average over the image, and a linear layer. `depth`: stages;
    each but the first halves the image and doubles the channels."""

    def __init__(self, channels: int, classes: int, depth: int, width: int, dropout: float) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, width, 3, padding=1, bias=False), _norm(width), nn.ReLU()
        )
        stages = []
        before = width
        for stage in range(depth):
            after = width * 2**stage
            stages.append(Block(before, after, stride=1 if stage == 0 else 2))
            before = after
        self.stages = nn.Sequential(*stages)
        self.head = nn.Sequential(nn.Dropout(dropout), nn.Linear(before, classes))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images (n, channels, height, width) to scores (n, classes)."""
        found = self.stages(self.stem(images))
        scores: torch.Tensor = self.head(found.mean(dim=(2, 3)))
        return scores


def scaled(images: torch.Tensor, side: int) -> torch.Tensor:
    """Shares of full brightness as squares, shape (n, channels, side, side)."""
    square = (side, side)
    if images.shape[2:] == square:
        return images
    found = nn.functional.interpolate(images, square, mode="bicubic", antialias=True)
    return found.clamp(0, 1)


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(math.gcd(8, channels), channels)


class ImageNetwork:
    """A network that classifies images, on its device.

    Args:
        shape: The `depth` and `width` of the residual network, or the `side` of the squares that a
            pretrained one reads.
        normalisation: Means and deviations of the network's channels.
    """

    def __init__(
        self,
        model: nn.Module,
        shape: Mapping[str, int],
        normalisation: tuple[tuple[float, ...], tuple[float, ...]],
        device: torch.device,
    ) -> None:
        self.model, self.side = model.to(device), shape.get("side")
        self._shape, self.normalisation = shape, normalisation
        self.channels = len(normalisation[0])
        self._means, self._deviations = [
            torch.tensor(values, device=device).reshape(1, -1, 1, 1) for values in normalisation
        ]

    def scores(self, images: torch.Tensor) -> torch.Tensor:
        """The scores of all classes (n, classes), of bytes (n, height, width, channels)."""
        shares = images.permute(0, 3, 1, 2).float() / 255
        if self.side is not None:
            shares = scaled(shares, self.side)
        normalised = (shares - self._means) / self._deviations
        if self.side is None:
            found: torch.Tensor = self.model(normalised)
        else:
            found = self.model(pixel_values=normalised).logits
        return found.float()

    def describe(self, folder: Path, data: ImageData) -> None:
        """Write the files beside the weights: those that `ImageClassifier` reads, and a pretrained
        model's configuration and image processor for `from_pretrained`."""
        means, deviations = self.normalisation
        if self.side is not None:
            pretrained.write_description(self.model, folder)
            processor.write(folder, self.side, means, deviations)
        content = {
            "network": {**self._shape, "shape": data.train.shape[1:]},
            "labels": data.labels,
            "means": means,
            "deviations": deviations,
        }
        (folder / DESCRIPTION).write_text(json.dumps(content, indent=1), encoding="utf-8")


def residual_network(data: ImageData, settings: ImageSettings, setup: Setup) -> ImageNetwork:
    """The small residual network, with weights that derive from the trial's seed."""
    seed_everything(derive(setup.seed, Use.WEIGHTS))
    shape = {"depth": settings.depth, "width": settings.width}
    channels, classes = data.train.shape[3], len(data.labels)
    network = ResidualNetwork(channels, classes, **shape, dropout=settings.dropout or 0.0)
    return ImageNetwork(network, shape, (data.means, data.deviations), torch.device(setup.device))


def pretrained_network(
    model: Pretrained, data: ImageData, settings: ImageSettings, setup: Setup
) -> ImageNetwork:
    """A model of transformers. Raises TaskError if it cannot be loaded, reads other channels, or
    has settings of the residual network."""
    from transformers import AutoModelForImageClassification  # seconds to import

    from trials.tasks.huggingface import templates

    for name in ("depth", "width"):
        if getattr(settings, name) != getattr(ImageSettings, name):
            what = "applies to the small network, and this task names a model"
            raise TaskError.at(f"settings.{name}", f"{what}; remove it, or task.model")
    kind = templates.ModelKind(AutoModelForImageClassification, data.labels, padding=None)
    source = templates.pretrained(model, kind)
    channels = int(getattr(source.model.config, "num_channels", len("RGB")))
    given = data.train.shape[3]
    if given not in (1, channels):
        what = f"reads images with {channels} channels, and these have {given}"
        hint = f"give grey images, or images with {channels} channels"
        raise TaskError.at("task.model", f"{what}; {hint}")
    processing = processor.read(model)
    side = processing.side or data.train.shape[1]
    means = _each(processing.means or data.means, channels)
    deviations = _each(processing.deviations or data.deviations, channels)
    network = templates.build(source, settings, setup.seed)
    return ImageNetwork(network, {"side": side}, (means, deviations), torch.device(setup.device))


def _each(values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    return values * channels if len(values) == 1 else values


class ImageWorkload(OneTargetWorkload):
    """A network with its images on a device (a `workload.Workload`)."""

    def __init__(
        self, model: Pretrained | None, data: ImageData, settings: ImageSettings, setup: Setup
    ) -> None:
        if model is None:
            network = residual_network(data, settings, setup)
        else:
            network = pretrained_network(model, data, settings, setup)
        device = torch.device(setup.device)
        residence = Residence.of(data, device)
        finish = None
        if settings.flip or settings.shift:
            finish = RandomChanges(settings.flip, settings.shift, device)
        train = _split(residence, data.train, data.train_labels, finish)
        validation = _split(residence, data.validation, data.validation_labels)
        self._network, self._targets = network, data.validation_labels
        self._head = ClassHead()
        describe = functools.partial(network.describe, data=data)
        files = NetworkFiles(network.model, device, describe)
        self.baked = (network.side, network.normalisation)
        super().__init__(network.model, files, train, validation, settings, device)

    def outputs(self, batch: Batch) -> torch.Tensor:
        return self._network.scores(batch.inputs["images"])


def _split(
    residence: Residence,
    images: Bytes,
    labels: Ints,
    finish: Callable[[Batch], Batch] | None = None,
) -> SampleSet:
    parts = [Column(residence, "images", images), Column(residence, LABELS, labels)]
    lengths = np.ones(len(labels), dtype=np.int64)
    samples = Samples(residence, parts, finish=finish)
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


class ImageClassifier(ModelInUse):
    """A trained network with its classes and normalisation. It reads bytes (uint8) of shape (n,
    height, width, channels), or (n, height, width) for one channel. The small network reads the
    shape of the training images; a pretrained model any height and width, and grey images too.

    Attributes:
        shape: Of a training image: height, width, channels.

    Args:
        folder: The model of a final training, or a checkpoint of an image classification. Code in
            it is not run.
        device: A torch device, such as cuda.
    """

    def __init__(self, folder: Path | str, device: str = "cpu") -> None:
        description = described(folder, DESCRIPTION)
        network = description["network"]
        self.labels = tuple(description["labels"])
        self.shape: tuple[int, ...] = tuple(network["shape"])
        self._device = torch.device(device)
        normalisation = tuple(description["means"]), tuple(description["deviations"])
        built = self._built(Path(folder), network).eval()
        self._network = ImageNetwork(built, network, normalisation, self._device)

    def _built(self, folder: Path, shape: Mapping[str, Any]) -> nn.Module:
        if "side" in shape:
            from transformers import AutoModelForImageClassification  # seconds to import

            model: nn.Module = pretrained.written(AutoModelForImageClassification, folder)
            return model
        channels, classes = self.shape[-1], len(self.labels)
        network = ResidualNetwork(channels, classes, shape["depth"], shape["width"], dropout=0.0)
        safetensors.torch.load_model(network, folder / MODEL)
        return network

    def _outputs(self, images: Bytes, batch_size: int) -> torch.Tensor:
        given = images[..., None] if images.ndim == 3 else images
        self._check(given)

        def scores(rows: Ints) -> torch.Tensor:
            batch = torch.from_numpy(given[rows])
            return self._network.scores(batch.to(self._device))

        return in_batches(np.arange(len(given)), batch_size, len(self.labels), scores)

    def _check(self, images: Bytes) -> None:
        shape, channels = images.shape[1:], self._network.channels
        wanted, fits = ", ".join(map(str, self.shape)), shape == self.shape
        if self._network.side is not None:
            wanted = f"height, width, {channels}"
            fits = len(shape) == 3 and 0 not in shape and shape[-1] in (1, channels)
        if images.dtype != np.uint8 or not fits:
            what = f"images are {images.dtype} of shape {images.shape}"
            raise ValueError(f"{what}; give uint8 of shape (n, {wanted})")
