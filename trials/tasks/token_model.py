"""The model of a token classification task, and how its predictions are scored."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import transformers

from trials import entities
from trials.batching import Ints
from trials.contract import Setup
from trials.settings import Settings
from trials.tasks.pretrained import Pretrained
from trials.tasks.sequence_data import IGNORED, SequenceData
from trials.tasks.sequence_model import SequenceWorkload, template
from trials.tasks.text_classification import Scratch
from trials.tasks.text_tokenizer import SCRATCH_POSITIONS


class TokenWorkload(SequenceWorkload):
    """A tagger with its sentences."""

    def __init__(self, model: Pretrained | Scratch, data: SequenceData, settings: Settings, setup: Setup) -> None:
        source = template(model, data, transformers.AutoModelForTokenClassification, _scratch)
        super().__init__(source, data, settings, setup)

    def keep(self, logits: torch.Tensor) -> torch.Tensor:
        """The most likely tag of each token."""
        return logits.argmax(dim=-1)

    def count(self, parts: Sequence[Ints], kept: Sequence[torch.Tensor]) -> Sequence[int]:
        """Words, those with the right tag, and the counts of entities."""
        names, targets = self._data.labels, self._data.validation.targets
        truth, found, right, words = [], [], 0, 0
        predicted = (tags for batch in kept for tags in batch.numpy())
        for row, tags in zip((row for part in parts for row in part), predicted, strict=True):
            wanted = targets.tokens[targets.offsets[row] : targets.offsets[row + 1]]
            scored = wanted != IGNORED
            guessed = tags[: len(wanted)][scored]
            right += int(np.count_nonzero(guessed == wanted[scored]))
            words += len(guessed)
            truth.append([names[number] for number in wanted[scored]])
            found.append([names[number] for number in guessed])
        return words, right, *entities.count(truth, found)

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The share of words with the right tag; precision, recall and F1 of whole entities."""
        words, right, *found = counts
        return {"accuracy": right / max(words, 1), **entities.Counts(*found).scores()}


def _scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
    return transformers.BertConfig(
        vocab_size=data.vocabulary,
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=shape.feed_forward,
        max_position_embeddings=SCRATCH_POSITIONS,
        pad_token_id=data.padding,
        id2label=dict(enumerate(data.labels)),
        label2id={label: number for number, label in enumerate(data.labels)},
    )
