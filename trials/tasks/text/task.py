"""Text classification: a model of transformers learns which class a text belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from trials.contract import Setup
from trials.descriptions.text import TEXT_CLASSIFICATION
from trials.settings import Settings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.text import data as text_data
from trials.tasks.trained import DataModule

if TYPE_CHECKING:
    from trials.tasks.text.data import TextData
    from trials.workload import Workload


class TextClassification(TextTask):
    """The task."""

    DESCRIPTION = TEXT_CLASSIFICATION
    SETTINGS = Settings
    DATA: ClassVar[DataModule] = text_data
    FIELDS: ClassVar = {"text": "text", "label": "label"}

    def workload(self, data: TextData, settings: Settings, setup: Setup) -> Workload:
        """The classifier with its texts."""
        from trials.tasks.text.model import TextWorkload

        return TextWorkload(self.spec_for(settings).model, data, settings, setup)
