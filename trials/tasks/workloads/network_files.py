"""A network in the folder of a checkpoint: its weights, and a description of its inputs and
outputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import safetensors.torch
import torch
from torch import nn

from trials.checkpoints.weights import MODEL, Weights, write


class Stored(Protocol):
    """A model's files in the folder of a checkpoint."""

    def weights(self) -> Weights:
        """The model's own tensors for a checkpoint, not copies."""

    def write(self, folder: Path, weights: Weights) -> None:
        """Write such weights with the files to use them, in any thread."""

    def read(self, folder: Path) -> None:
        """Load the model's weights."""


class NetworkFiles:
    """The files of a network: all its weights in one, and a description beside it (a `Stored`).

    Args:
        describe: Writes the description into a folder.
    """

    def __init__(
        self, network: nn.Module, device: torch.device, describe: Callable[[Path], None]
    ) -> None:
        self._network, self._device, self._describe = network, device, describe

    def weights(self) -> Weights:
        return {MODEL: self._network.state_dict()}

    def write(self, folder: Path, weights: Weights) -> None:
        write(weights, folder)
        self._describe(folder)

    def read(self, folder: Path) -> None:
        path = folder / MODEL
        safetensors.torch.load_model(self._network, str(path), device=str(self._device))


def described(folder: Path | str, name: str) -> dict[str, Any]:
    """The description of a network in a folder.

    Raises:
        FileNotFoundError: There is no such file.
    """
    path = Path(folder) / name
    if not path.is_file():
        what = "it is not a model that was written to be used"
        raise FileNotFoundError(f"{folder} has no {name}: {what}")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content
