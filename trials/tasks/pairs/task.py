"""Sequence to sequence: a model of transformers learns to write a text (a translation, a summary)
for another."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from trials.contract import Setup
from trials.descriptions.text import SEQUENCE_TO_SEQUENCE, SequenceToSequenceSettings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.pairs import data as pair_data
from trials.tasks.trained import DataModule

if TYPE_CHECKING:
    from trials.data.workload import Workload
    from trials.tasks.huggingface.data import SequenceData


class SequenceToSequence(TextTask):
    """The task."""

    DESCRIPTION = SEQUENCE_TO_SEQUENCE
    SETTINGS = SequenceToSequenceSettings
    DATA: ClassVar[DataModule] = pair_data
    DATA_SETTINGS = ("max_length", "max_target_length", "scored_target_length", "model")
    FIELDS: ClassVar = {"source": "source", "target": "target"}

    def workload(
        self, data: SequenceData, settings: SequenceToSequenceSettings, setup: Setup
    ) -> Workload:
        """The model with its pairs of texts."""
        from trials.tasks.pairs.model import PairWorkload

        return PairWorkload(self.spec_for(settings).model, data, settings, setup)
