"""Texts and pairs of texts: a model of transformers learns their class, their labels or a
number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from trials.descriptions.text import TEXT_CLASSIFICATION, TEXT_REGRESSION, TextRegressionSettings
from trials.settings import Settings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.text.data import TextDataSet

if TYPE_CHECKING:
    from torch import nn

    from trials.final.export import Portable


class TextClassification(TextTask):
    """The task whose texts have a class each, or any of several labels."""

    DESCRIPTION = TEXT_CLASSIFICATION
    SETTINGS = Settings
    DATA = TextDataSet
    FIELDS: ClassVar = {"text": "text", "label": "label"}
    WORKLOAD = "trials.tasks.text.model:TextWorkload"

    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """From `input_ids`, `attention_mask` and, of pairs, `token_type_ids` where the model reads
        them, to the logits of classes or labels, or a standardised number."""
        from trials.final.export import Portable
        from trials.tasks.huggingface.model_files import ClassifierScores

        return Portable(ClassifierScores(folder, type(model)), free=(0, 1))


class TextRegression(TextClassification):
    """The task whose texts have a number each."""

    DESCRIPTION = TEXT_REGRESSION
    SETTINGS = TextRegressionSettings
