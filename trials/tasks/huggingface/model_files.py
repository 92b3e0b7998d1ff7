"""A model of transformers in a folder: written and read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
import transformers
from transformers.utils import GENERATION_CONFIG_NAME

from trials.checkpoints.weights import Weights, write
from trials.tasks.huggingface import lora
from trials.tasks.huggingface.pretrained import write_description


class TransformerFiles:
    """The files of a model and its tokenizer (a `network_files.Stored`).

    Args:
        base: The weights that its adapters belong to.
        beside: Other files, such as the tokenizer's, by name.
    """

    def __init__(
        self,
        model: transformers.PreTrainedModel,
        base: lora.Base,
        beside: Mapping[str, bytes],
        device: torch.device,
    ) -> None:
        self._model, self._base, self._beside, self._device = model, base, beside, device

    def weights(self) -> Weights:
        return lora.weights(self._model)

    def write(self, folder: Path, weights: Weights) -> None:
        write(weights, folder)
        write_description(self._model, folder)
        lora.describe(self._model, folder)
        generation = getattr(self._model, "generation_config", None)
        if generation is not None:
            generation.to_json_file(folder / GENERATION_CONFIG_NAME)
        for name, content in self._beside.items():
            (folder / name).write_bytes(content)

    def read(self, folder: Path) -> None:
        lora.read(self._model, folder, self._device)

    def merge(self, folder: Path) -> None:
        lora.merge(self._model, self._base, folder)

    def take(self, folder: Path) -> None:
        lora.take(self._model, folder)
