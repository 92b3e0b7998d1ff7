"""A small residual network for images, in plain torch (He et al. 2016).

Norms are over groups of channels (Wu and He 2018), not over the batch: what a micro-batch computes
does not depend on which other images are in it.
"""

from __future__ import annotations

import math

import torch
from torch import nn


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
