"""Token classification: a model of transformers learns the tag of each word, such as the entity it
belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from trials.contract import Setup
from trials.descriptions.text import TOKEN_CLASSIFICATION, PackingSettings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.tokens import data as token_data
from trials.tasks.trained import DataModule

if TYPE_CHECKING:
    from trials.data.workload import Workload
    from trials.tasks.huggingface.data import SequenceData


class TokenClassification(TextTask):
    """The task."""

    DESCRIPTION = TOKEN_CLASSIFICATION
    SETTINGS = PackingSettings
    DATA: ClassVar[DataModule] = token_data
    FIELDS: ClassVar = {"tokens": "tokens", "tags": "tags"}

    def workload(self, data: SequenceData, settings: PackingSettings, setup: Setup) -> Workload:
        """The tagger with its sentences."""
        from trials.tasks.tokens.model import TokenWorkload

        return TokenWorkload(self.spec_for(settings).model, data, settings, setup)
