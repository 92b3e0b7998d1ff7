"""The project's own networks in use: what a final training wrote for images or tables, loaded in a line.

    from trials.predict import load

    load("models/digits/v1").predict(images)                          # bytes of shape (n, height, width, channels)
    load("models/prices/v1").predict(pandas.read_csv("new.csv"))      # the columns it was trained on

Models of transformers need nothing of this: `transformers.pipeline` loads their folders.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import safetensors.torch
import torch
from torch import nn

from trials.tasks import image_model, tabular_data, tabular_model
from trials.tasks.image_data import Bytes
from trials.tasks.residual import ResidualNetwork
from trials.tasks.tabular import TabularSettings
from trials.tasks.tabular_data import Encoding
from trials.weights import MODEL

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
        told = _described(folder, image_model.DESCRIPTION)
        self.labels: tuple[str, ...] = tuple(told["labels"])
        self.shape: tuple[int, ...] = tuple(told["network"]["shape"])
        depth, width = told["network"]["depth"], told["network"]["width"]
        self.network = ResidualNetwork(self.shape[-1], len(self.labels), depth, width, dropout=0.0)
        safetensors.torch.load_model(self.network, Path(folder) / MODEL)
        self._means = torch.tensor(told["means"]).reshape(1, -1, 1, 1)
        self._deviations = torch.tensor(told["deviations"]).reshape(1, -1, 1, 1)
        self.eval()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Bytes of shape (n, height, width, channels) to the logits of the classes, shape (n, classes)."""
        shares = images.permute(0, 3, 1, 2).float() / 255
        logits: torch.Tensor = self.network((shares - self._means) / self._deviations)
        return logits

    def predict(self, images: Bytes) -> list[str]:
        """The class of each image.

        Args:
            images: uint8, shape (n, height, width, channels); without the last where there is one channel.

        Raises:
            ValueError: They are not of the shape the network was trained on.
        """
        given = images[..., None] if images.ndim == 3 else images
        if given.dtype != np.uint8 or given.shape[1:] != self.shape:
            raise ValueError(
                f"images are {images.dtype} of shape {images.shape}; give uint8 of shape (n, *{self.shape})"
            )
        parts = [torch.from_numpy(given[start : start + BATCH]) for start in range(0, len(given), BATCH)]
        with torch.inference_mode():
            return [self.labels[number] for part in parts for number in self(part).argmax(dim=1).tolist()]


class TableModel:
    """A perceptron with what it knows of a table's columns.

    Attributes:
        encoding: How a table becomes the network's inputs, and what comes out of it.

    Args:
        folder: A written model, or a checkpoint of a tabular task.
    """

    def __init__(self, folder: Path | str) -> None:
        told = _described(folder, tabular_model.DESCRIPTION)
        self.encoding = encoding = Encoding(**told["encoding"])
        numbers = len(encoding.numeric) + len(encoding.flagged)
        classes = [len(names) for names in encoding.categorical.values()]
        outputs = 1 if encoding.classes is None else len(encoding.classes)
        self.network = tabular_model.Perceptron(numbers, classes, outputs, TabularSettings(**told["model"]))
        safetensors.torch.load_model(self.network, Path(folder) / MODEL)
        self.network.eval()

    def predict(self, table: pd.DataFrame) -> list[str] | list[float]:
        """The class of each row, or the quantity in the target's own unit. Missing values and classes that were never
        trained are taken as in training.

        Raises:
            ValueError: A column is missing, or one of numbers holds something else.
        """
        self._check(table)
        numeric, categorical = tabular_data.inputs(self.encoding, table)
        with torch.inference_mode():
            outputs = self.network(torch.from_numpy(numeric), torch.from_numpy(categorical.astype(np.int64)))
        encoding = self.encoding
        if encoding.classes is not None:
            return [encoding.classes[number] for number in outputs.argmax(dim=1).tolist()]
        quantities: list[float] = (outputs[:, 0].double() * encoding.target_deviation + encoding.target_mean).tolist()
        return quantities

    def _check(self, table: pd.DataFrame) -> None:
        wanted = [*self.encoding.numeric, *self.encoding.categorical]
        if missing := [column for column in wanted if column not in table.columns]:
            raise ValueError(f"the table has no column {missing[0]!r}; the model reads {', '.join(wanted)}")
        for column in self.encoding.numeric:
            if words := tabular_data.numbers_in(table, column)[1]:
                raise ValueError(f"column {column!r} is no number in row {words[0] + 1}; mend it, or leave it empty")


def load(folder: Path | str) -> ImageClassifier | TableModel:
    """The model in a folder.

    Raises:
        FileNotFoundError: The folder holds none of these models.
    """
    if (Path(folder) / image_model.DESCRIPTION).is_file():
        return ImageClassifier(folder)
    return TableModel(folder)


def _described(folder: Path | str, name: str) -> dict[str, Any]:
    path = Path(folder) / name
    if not path.is_file():
        raise FileNotFoundError(f"{folder} has no {name}: it is no written model of images or tables")
    described: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return described
