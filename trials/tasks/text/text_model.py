"""A trained model of texts in use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import transformers

from trials.data.batching import cut
from trials.data.residence import Residence
from trials.data.samples import Padded
from trials.tasks.huggingface import pretrained, templates
from trials.tasks.huggingface import tokenizer as text_tokenizer
from trials.tasks.text.task import DESCRIPTION, Text, tokenise
from trials.tasks.workloads.in_use import ModelInUse
from trials.tasks.workloads.network_files import described

Texts = Sequence[str] | Sequence[Sequence[str]]


class TextModel(ModelInUse):
    """A trained model of texts, or of pairs of texts: each text is a string, each pair a tuple.

    Args:
        folder: The model of a final training. Code in it is not run.
        device: A torch device, such as cuda.

    Raises:
        FileNotFoundError: The folder holds no such model.
        ValueError: It lacks weights, or holds adapters alone.
    """

    def __init__(self, folder: Path | str, device: str = "cpu") -> None:
        about = described(folder, DESCRIPTION)
        model = pretrained.written(transformers.AutoModelForSequenceClassification, folder)
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
        self._model, self._tokenizer = model.to(device), tokenizer
        self._device = torch.device(device)
        self._in_pairs, self._max_length = about["pairs"], about["max_length"]
        self._target, self._mean = about["target"], float(about["mean"])
        self._deviation = float(about["deviation"])
        self.labels = tuple(name for _, name in sorted(model.config.id2label.items()))

    def _outputs(self, inputs: Texts, batch_size: int) -> torch.Tensor:
        texts = self._checked(inputs)
        found = torch.empty(len(texts), len(self.labels))
        if not texts:
            return found
        tokens, types, _ = tokenise(self._tokenizer, texts, self._max_length)
        memory = Residence(torch.device("cpu"), resident=True)
        padding = text_tokenizer.padding_of(self._tokenizer)
        parts = [Padded(memory, "input_ids", tokens, padding, "attention_mask")]
        if types is not None and templates.reads_types(self._model, types):
            parts.append(Padded(memory, text_tokenizer.TOKEN_TYPES, types, padding=0))
        longest_first = np.argsort(-tokens.lengths, kind="stable")
        with torch.inference_mode():
            for rows in cut(longest_first, batch_size):
                batch: dict[str, torch.Tensor] = {}
                for part in parts:
                    batch |= part.gather(rows, memory.index(rows))
                sent = {name: tensor.to(self._device) for name, tensor in batch.items()}
                scores = self._model(**sent, **templates.uncached(self._model)).logits
                found[rows] = scores.float().cpu()
        return found

    def _checked(self, inputs: Texts) -> list[Text]:
        wanted = "pairs of texts" if self._in_pairs else "a list of texts"
        if isinstance(inputs, str):
            raise ValueError(f"the model reads {wanted}, not one text; put it into a list")
        texts: list[Text] = []
        for each in inputs:
            parts = (each,) if isinstance(each, str) else tuple(each) if self._in_pairs else ()
            fits = len(parts) == (2 if self._in_pairs else 1)
            if not fits or not all(isinstance(part, str) for part in parts):
                raise ValueError(f"the model reads {wanted}, not {each!r}")
            texts.append(parts)
        return texts
