"""Sequence to sequence: a model of transformers learns to write a text (a translation, a summary)
for another."""

from __future__ import annotations

from typing import ClassVar

from trials.descriptions.text import SEQUENCE_TO_SEQUENCE, SequenceToSequenceSettings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.pairs.data import PairDataSet


class SequenceToSequence(TextTask):
    """The task."""

    DESCRIPTION = SEQUENCE_TO_SEQUENCE
    SETTINGS = SequenceToSequenceSettings
    DATA = PairDataSet
    DATA_SETTINGS = ("max_length", "max_target_length", "scored_target_length", "model")
    FIELDS: ClassVar = {"source": "source", "target": "target"}
    WORKLOAD = "trials.tasks.pairs.model:PairWorkload"
