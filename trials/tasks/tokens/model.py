"""The model of a token classification task, and how its predictions are scored."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
import transformers

from trials.contract import Setup
from trials.data.batching import Ints
from trials.descriptions.models import Pretrained, Scratch
from trials.settings import Settings
from trials.tasks.huggingface import lora, templates
from trials.tasks.huggingface.data import IGNORED, SequenceData
from trials.tasks.huggingface.sequences import SequenceWorkload, template
from trials.tasks.huggingface.templates import ModelKind
from trials.tasks.tokens import entities
from trials.tasks.tokens.entities import OUTSIDE


class TokenWorkload(SequenceWorkload):
    """A tagger with its sentences."""

    def __init__(
        self, model: Pretrained | Scratch, data: SequenceData, settings: Settings, setup: Setup
    ) -> None:
        dtype = lora.base_dtype(settings, torch.device(setup.device))
        source = template(
            model, data, transformers.AutoModelForTokenClassification, _scratch, dtype
        )
        super().__init__(source, data, settings, setup)

    def keep(self, logits: torch.Tensor) -> torch.Tensor:
        """The most likely tag of each token."""
        return logits.argmax(dim=-1)

    def count(self, parts: Sequence[Ints], kept: Sequence[torch.Tensor]) -> Sequence[int]:
        """Words, those with the right tag, and the counts of entities. A word that was cut off has
        no tag."""
        data = self._data
        scored = data.scored
        assert scored is not None
        assert scored.cells is not None
        names = dict(enumerate(data.labels))
        names[IGNORED] = OUTSIDE
        truth, found, right, words = [], [], 0, 0
        rows = itertools.chain.from_iterable(parts)
        predicted = itertools.chain.from_iterable(batch.numpy() for batch in kept)
        for row, tags in zip(rows, predicted, strict=True):
            wanted = scored.targets.row(row)
            cells = scored.cells.row(row)
            read = tags[cells.clip(min=0)]
            guessed = np.where(cells == IGNORED, IGNORED, read)
            right += int(np.count_nonzero(guessed == wanted))
            words += len(wanted)
            truth.append([names[number] for number in wanted])
            found.append([names[number] for number in guessed])
        return words, right, *entities.count(truth, found)

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        """The share of words with the right tag; precision, recall and F1 of whole entities."""
        words, right, *found = counts
        return {"accuracy": right / max(words, 1), **entities.Counts(*found).scores()}


def _scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
    kind = ModelKind(transformers.AutoModelForTokenClassification, data.labels, data.padding)
    return templates.small_bert(shape, kind, data.vocabulary)
