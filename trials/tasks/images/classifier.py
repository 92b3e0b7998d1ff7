"""An image classifier as its checkpoint or final training wrote it, in use without the task."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import safetensors.torch
import torch
from torch import nn

from trials.checkpoints.weights import MODEL
from trials.tasks.images.data import Bytes
from trials.tasks.images.residual import ResidualNetwork
from trials.tasks.workloads.network_files import described

DESCRIPTION = "images.json"
"""The file of a checkpoint that describes the network's shape, its classes and how an image is
normalised."""
BATCH = 256
"""Images that go through a network at once."""


class ImageClassifier(nn.Module):
    """A residual network with what it knows of images.

    Attributes:
        labels: The names of the classes.
        shape: Of an image: height, width, channels.

    Args:
        folder: A written model, or a checkpoint of an image classification.
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
            images: uint8, shape (n, height, width, channels); without the last where there is one
                channel.

        Raises:
            ValueError: They are not of the shape the network was trained on.
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
