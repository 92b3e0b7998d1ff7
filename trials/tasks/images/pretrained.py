"""A pretrained Hugging Face model that classifies images, in place of the small residual
network."""

from __future__ import annotations

from pathlib import Path

import torch
import transformers
from torch import nn

from trials.contract import Setup, TaskError
from trials.descriptions.images import ImageSettings
from trials.descriptions.models import Pretrained
from trials.tasks.huggingface import pretrained as huggingface
from trials.tasks.huggingface import templates
from trials.tasks.huggingface.templates import ModelKind
from trials.tasks.images import processor
from trials.tasks.images.classifier import of_channels, scaled
from trials.tasks.images.data import ImageData
from trials.tasks.images.model import ImageNetwork, write_description


def pretrained(
    model: Pretrained, data: ImageData, settings: ImageSettings, setup: Setup
) -> ImageNetwork:
    """A model of transformers.

    Raises:
        TaskError: It cannot be loaded, reads other channels, or has settings of the residual
            network.
    """
    _refuse_shapes(settings)
    kind = ModelKind(transformers.AutoModelForImageClassification, data.labels, padding=None)
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

    device = torch.device(setup.device)
    network = templates.build(source, settings, setup.seed).to(device)
    normalisation = of_channels(means, device), of_channels(deviations, device)

    def describe(folder: Path) -> None:
        """Write the configuration and image processor for `from_pretrained`."""
        huggingface.write_description(network, folder)
        processor.write(folder, side, means, deviations)
        write_description(folder, data, {"side": side}, (means, deviations))

    return ImageNetwork(
        network, lambda images: scores(network, images, *normalisation, side), describe
    )


def scores(
    model: nn.Module, images: torch.Tensor, means: torch.Tensor, deviations: torch.Tensor, side: int
) -> torch.Tensor:
    """The scores of all classes, shape (n, classes).

    Args:
        images: Shares of full brightness, shape (n, channels, height, width) or (n, 1, height,
            width).
        means, deviations: Of each of the model's channels, shape (1, channels, 1, 1).
        side: Of the squares that the model reads; images of another size are scaled.
    """
    normalised = (scaled(images, side) - means) / deviations
    logits: torch.Tensor = model(pixel_values=normalised).logits
    return logits


def _each(values: tuple[float, ...], channels: int) -> tuple[float, ...]:
    return values * channels if len(values) == 1 else values


def _refuse_shapes(settings: ImageSettings) -> None:
    for name in ("depth", "width"):
        if getattr(settings, name) != getattr(ImageSettings, name):
            what = "applies to the small network, and this task names a model"
            raise TaskError.at(f"settings.{name}", f"{what}; remove it, or task.model")
