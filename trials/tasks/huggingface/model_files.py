"""A model of transformers in a folder: written, read, and loaded to be exported."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import nn

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
        generates = getattr(self._model.config, "is_encoder_decoder", False)
        generation = getattr(self._model, "generation_config", None)
        if generates and generation is not None:
            generation.save_pretrained(folder)
        for name, content in self._beside.items():
            (folder / name).write_bytes(content)

    def read(self, folder: Path) -> None:
        lora.read(self._model, folder, self._device)

    def merge(self, folder: Path) -> None:
        lora.merge(self._model, self._base, folder)

    def take(self, folder: Path) -> None:
        lora.take(self._model, folder)


class Scores(nn.Module):
    """A model of transformers as a function of two or three tensors to one.

    Args:
        kind: The model's class, so that no class of the folder's own code is used.
    """

    def __init__(self, folder: Path, kind: type[Any]) -> None:
        super().__init__()
        from transformers.utils import logging

        logging.disable_progress_bar()
        model: Any = kind.from_pretrained(folder, dtype=torch.float32)
        model.config.use_cache = False  # an exported model gives one tensor
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        decoder_input_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Tokens and mask (n, length), and a decoder's text so far, to logits (n, ..., classes)."""
        decoded = {} if decoder_input_ids is None else {"decoder_input_ids": decoder_input_ids}
        return self.scores(input_ids=input_ids, attention_mask=attention_mask, **decoded)

    def scores(self, **inputs: torch.Tensor) -> torch.Tensor:
        """The logits of a batch, by the names of the model's inputs."""
        logits: torch.Tensor = self.model(**inputs).logits
        return logits


class ClassifierScores(Scores):
    """A classifier of texts or pairs in the same way; some read the types of tokens."""

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Tokens, mask and types (n, length) to logits (n, classes)."""
        types = {} if token_type_ids is None else {"token_type_ids": token_type_ids}
        return self.scores(input_ids=input_ids, attention_mask=attention_mask, **types)
