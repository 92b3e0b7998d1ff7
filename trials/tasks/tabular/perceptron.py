"""A multi-layer perceptron over numbers and embedded classes, in plain torch."""

from __future__ import annotations

import itertools

import torch
from torch import nn

from trials.descriptions.tabular import TabularSettings


class Perceptron(nn.Module):
    """Hidden layers (linear, normalised, ReLU, dropout) over numbers and embedded classes.

    Args:
        numbers: How many numbers a row has.
        classes: How many classes each categorical column has, 0 (missing or unknown) not counted.
        outputs: How many numbers come out.
    """

    def __init__(
        self, numbers: int, classes: list[int], outputs: int, settings: TabularSettings
    ) -> None:
        super().__init__()
        self.embeddings = nn.ModuleList(
            nn.Embedding(count + 1, settings.embedding) for count in classes
        )
        inputs = numbers + len(classes) * settings.embedding
        widths = [inputs] + [settings.width] * settings.depth
        layers: list[nn.Module] = []
        for before, after in itertools.pairwise(widths):
            layers += [
                nn.Linear(before, after),
                nn.LayerNorm(after),
                nn.ReLU(),
                nn.Dropout(settings.dropout or 0.0),
            ]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-1], outputs))

    def forward(self, numeric: torch.Tensor, categorical: torch.Tensor) -> torch.Tensor:
        """Numbers (n, numbers) and classes (n, columns) to outputs (n, outputs)."""
        embedded = [embed(categorical[:, column]) for column, embed in enumerate(self.embeddings)]
        outputs: torch.Tensor = self.layers(torch.cat([numeric, *embedded], dim=1))
        return outputs
