"""A pretrained Hugging Face model that classifies images, in the place of the small residual network."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

from trials.contract import Problem, Setup, TaskError
from trials.tasks import image_processor, text_model
from trials.tasks.image_classification import ImageSettings
from trials.tasks.image_data import ImageData
from trials.tasks.image_model import ImageWorkload
from trials.tasks.image_processor import Processing
from trials.tasks.pretrained import Pretrained, write_description
from trials.tasks.text_model import Template


class PretrainedImageWorkload(ImageWorkload):
    """A model of transformers with images on a device (a `workload.Workload`).

    Args:
        model: The model.

    Raises:
        TaskError: It cannot be loaded, reads other channels, or settings of the residual network are given.
    """

    def __init__(self, model: Pretrained, data: ImageData, settings: ImageSettings, setup: Setup) -> None:
        _refuse_shapes(settings)
        self._source = _template(model, data.labels)
        _demand_channels(self._source.model, data)
        processing = image_processor.read(model)
        self._side = processing.side or data.train.shape[1]
        super().__init__(data, settings, setup)
        channels = _channels(self._source.model)
        means, deviations = processing.means or data.means, processing.deviations or data.deviations
        self._normalisation = _each(means, channels), _each(deviations, channels)
        self._means, self._deviations = (
            torch.tensor(values, device=self._device).reshape(1, -1, 1, 1) for values in self._normalisation
        )

    def _network(self, seed: int) -> nn.Module:
        model = text_model.build(self._source, self._settings, seed)
        self._plain = model
        network: nn.Module = model
        return network

    def _scores(self, images: torch.Tensor) -> torch.Tensor:
        return scores(self.model, images, self._means, self._deviations, self._side)

    def _describe(self, folder: Path) -> None:
        """Write configuration and image processor: what `from_pretrained` reads."""
        write_description(self._plain, folder)
        image_processor.write(folder, self._side, *self._normalisation)


def scores(
    model: nn.Module, images: torch.Tensor, means: torch.Tensor, deviations: torch.Tensor, side: int
) -> torch.Tensor:
    """The scores of all classes, shape (n, classes).

    Args:
        model: Of transformers.
        images: Shares of full brightness, shape (n, channels, height, width); grey ones for a model of colours too.
        means, deviations: Of each of the model's channels, shape (1, channels, 1, 1).
        side: Of the squares that the model reads; images of another size are scaled.
    """
    if images.shape[2:] != (side, side):
        images = nn.functional.interpolate(images, (side, side), mode="bicubic", antialias=True).clamp(0, 1)
    logits: torch.Tensor = model(pixel_values=(images - means) / deviations).logits
    return logits


class ImageScores(nn.Module):
    """A written model as a function of bytes to scores.

    Args:
        folder: What `PretrainedImageWorkload` wrote.
        kind: The model's class. Looked up by the folder's own word, it could be one that the folder brings.
    """

    def __init__(self, folder: Path, kind: type[Any]) -> None:
        super().__init__()
        self.model = kind.from_pretrained(folder, dtype=torch.float32)
        processing: Processing = image_processor.written(folder)
        assert processing.side is not None
        self._side = processing.side
        self.register_buffer("means", torch.tensor(processing.means).reshape(1, -1, 1, 1))
        self.register_buffer("deviations", torch.tensor(processing.deviations).reshape(1, -1, 1, 1))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Bytes of shape (n, height, width, channels) to the logits of the classes, shape (n, classes)."""
        shares = images.permute(0, 3, 1, 2).float() / 255
        means, deviations = self.get_buffer("means"), self.get_buffer("deviations")
        return scores(self.model, shares, means, deviations, self._side)


@functools.lru_cache(maxsize=2)
def _template(model: Pretrained, labels: tuple[str, ...]) -> Template:
    names = {"id2label": dict(enumerate(labels)), "label2id": {label: number for number, label in enumerate(labels)}}
    return text_model.pretrained(transformers.AutoModelForImageClassification, model, names, padding=None)


def _each(values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    """A value for each channel, also where there is one for them all."""
    return values * channels if len(values) == 1 else values


def _channels(model: transformers.PreTrainedModel) -> int:
    """The numbers a model reads of a pixel; three colours where its configuration says none."""
    return int(getattr(model.config, "num_channels", len("RGB")))


def _demand_channels(model: transformers.PreTrainedModel, data: ImageData) -> None:
    wanted, given = _channels(model), data.train.shape[3]
    if given not in (1, wanted):
        what = f"reads images of {wanted} channels, and these have {given}; give grey images, or such as it reads"
        raise TaskError([Problem("task.model", what)])


def _refuse_shapes(settings: ImageSettings) -> None:
    """Settings of the residual network mean nothing to another one."""
    given = [name for name in ("depth", "width") if getattr(settings, name) != getattr(ImageSettings, name)]
    if given:
        what = "is of the small network, and this task has a model; remove it, or remove task.model"
        raise TaskError([Problem(f"settings.{name}", what) for name in given])
