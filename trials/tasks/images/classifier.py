"""A small residual network for images (He et al. 2016), and a trained one in use without the task.

Norms are over groups of channels (Wu and He 2018), not over the batch: a micro-batch computes the
same whatever other images are in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from torch import nn

from trials.checkpoints.weights import MODEL
from trials.tasks.huggingface import pretrained
from trials.tasks.images.folder import Bytes
from trials.tasks.workloads.in_use import ModelInUse
from trials.tasks.workloads.network_files import described

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
    """Stages of one block each, an average over the image, and a linear layer.

    Args:
        depth: Stages; each but the first halves the image and doubles the channels.
    """

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


def of_channels(values: Sequence[float], device: torch.device) -> torch.Tensor:
    """A number for each channel, shape (1, channels, 1, 1)."""
    return torch.tensor(values, device=device).reshape(1, -1, 1, 1)


def shares_of(images: torch.Tensor) -> torch.Tensor:
    """Bytes of shape (n, height, width, channels) as shares of full brightness, shape (n, channels,
    height, width)."""
    return images.permute(0, 3, 1, 2).float() / 255


def scaled(images: torch.Tensor, side: int) -> torch.Tensor:
    """Shares of full brightness as squares, shape (n, channels, side, side)."""
    square = (side, side)
    if images.shape[2:] == square:
        return images
    found = nn.functional.interpolate(images, square, mode="bicubic", antialias=True)
    return found.clamp(0, 1)


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(math.gcd(8, channels), channels)


class _Pretrained(nn.Module):
    """A model of transformers in a folder that a training wrote."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoModelForImageClassification  # seconds to import

        super().__init__()
        self.model = pretrained.written(AutoModelForImageClassification, folder)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Normalised images (n, channels, side, side) to scores (n, classes)."""
        scores: torch.Tensor = self.model(pixel_values=images).logits
        return scores


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
        self._side: int | None = network.get("side")
        self._device = torch.device(device)
        self._means = of_channels(description["means"], self._device)
        self._deviations = of_channels(description["deviations"], self._device)
        self._network = self._built(Path(folder), network).eval().to(device)

    def _built(self, folder: Path, shape: Mapping[str, Any]) -> nn.Module:
        if self._side is not None:
            return _Pretrained(folder)
        depth, width = shape["depth"], shape["width"]
        channels, classes = self.shape[-1], len(self.labels)
        network = ResidualNetwork(channels, classes, depth, width, dropout=0.0)
        safetensors.torch.load_model(network, folder / MODEL)
        return network

    def _outputs(self, images: Bytes, batch_size: int) -> torch.Tensor:
        given = images[..., None] if images.ndim == 3 else images
        self._check(given)
        found = torch.empty(len(given), len(self.labels))
        with torch.inference_mode():
            for start in range(0, len(given), batch_size):
                batch = torch.from_numpy(given[start : start + batch_size]).to(self._device)
                shares = shares_of(batch)
                if self._side is not None:
                    shares = scaled(shares, self._side)
                scores = self._network((shares - self._means) / self._deviations)
                found[start : start + batch_size] = scores.float().cpu()
        return found

    def _check(self, images: Bytes) -> None:
        shape, channels = images.shape[1:], self._means.shape[1]
        wanted, fits = ", ".join(map(str, self.shape)), shape == self.shape
        if self._side is not None:
            wanted = f"height, width, {channels}"
            fits = len(shape) == 3 and 0 not in shape and shape[-1] in (1, channels)
        if images.dtype != np.uint8 or not fits:
            what = f"images are {images.dtype} of shape {images.shape}"
            raise ValueError(f"{what}; give uint8 of shape (n, {wanted})")
