"""A small residual network for images (He et al. 2016), and a trained one in use without the task.

Norms are over groups of channels (Wu and He 2018), not over the batch: a micro-batch computes the
same whatever other images are in it.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import nn

from trials.checkpoints.weights import MODEL
from trials.tasks.images.folder import Bytes
from trials.tasks.workloads.network_files import described

DESCRIPTION = "images.json"
"""The file of a checkpoint with the network's shape, its classes and the normalisation."""
BATCH = 256
"""Images that go through a network at once."""


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


def _norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(math.gcd(8, channels), channels)


class ImageClassifier(nn.Module):
    """A trained residual network with its classes and normalisation.

    Attributes:
        shape: Of an image: height, width, channels.

    Args:
        folder: The model of a final training, or a checkpoint of an image classification.
    """

    def __init__(self, folder: Path | str) -> None:
        super().__init__()
        description = described(folder, DESCRIPTION)
        network = description["network"]
        self.labels: tuple[str, ...] = tuple(description["labels"])
        self.shape: tuple[int, ...] = tuple(network["shape"])
        channels, classes = self.shape[-1], len(self.labels)
        depth, width = network["depth"], network["width"]
        self.network = ResidualNetwork(channels, classes, depth, width, dropout=0.0)
        safetensors.torch.load_model(self.network, Path(folder) / MODEL)
        self._means = torch.tensor(description["means"]).reshape(1, -1, 1, 1)
        self._deviations = torch.tensor(description["deviations"]).reshape(1, -1, 1, 1)
        self.eval()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Bytes of shape (n, height, width, channels) to the logits of the classes, shape (n,
        classes)."""
        shares = images.permute(0, 3, 1, 2).float() / 255
        normalised = (shares - self._means) / self._deviations
        logits: torch.Tensor = self.network(normalised)
        return logits

    def predict(self, images: Bytes) -> list[str]:
        """The class of each image.

        Args:
            images: uint8, shape (n, height, width, channels), or (n, height, width) for one
                channel.

        Raises:
            ValueError: The shape is not that of the training images.
        """
        given = images[..., None] if images.ndim == 3 else images
        if given.dtype != np.uint8 or given.shape[1:] != self.shape:
            what = f"images are {images.dtype} of shape {images.shape}"
            raise ValueError(f"{what}; give uint8 of shape (n, *{self.shape})")
        names: list[str] = []
        with torch.inference_mode():
            for start in range(0, len(given), BATCH):
                batch = torch.from_numpy(given[start : start + BATCH])
                scores = self(batch)
                for number in scores.argmax(dim=1).tolist():
                    names.append(self.labels[number])
        return names
