"""The model of a token classification, and the scores of its predictions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
import transformers

from trials.data.batching import Ints
from trials.descriptions.models import Scratch
from trials.tasks.huggingface import templates
from trials.tasks.huggingface.data import IGNORED, SequenceData
from trials.tasks.huggingface.sequences import SequenceWorkload
from trials.tasks.huggingface.templates import ModelKind
from trials.tasks.tokens import entities
from trials.tasks.tokens.entities import OUTSIDE


class TokenWorkload(SequenceWorkload):
    """A tagger with its sentences."""

    AUTO = transformers.AutoModelForTokenClassification

    @staticmethod
    def scratch(shape: Scratch, data: SequenceData) -> transformers.PretrainedConfig:
        kind = ModelKind(TokenWorkload.AUTO, data.labels, data.padding)
        return templates.small_bert(shape, kind, data.vocabulary)

    def keep(self, outputs: torch.Tensor) -> torch.Tensor:
        return outputs.argmax(dim=-1)

    def count(self, parts: Sequence[Ints], kept: Sequence[torch.Tensor]) -> Sequence[int]:
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
        return words, right, *entities.count(truth, found, bilou=entities.is_bilou(data.labels))

    def measure(self, loss: float, counts: Sequence[int]) -> dict[str, float]:
        words, right, *found = counts
        return {"accuracy": right / max(words, 1), **entities.Counts(*found).scores()}
