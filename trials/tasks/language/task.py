"""Language modelling: a model of transformers learns to predict the next token of a text from those
before it."""

from __future__ import annotations

from typing import ClassVar

from trials.descriptions.text import BLOCKS, LANGUAGE_MODELING, PackingSettings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.language.data import LanguageDataSet


class LanguageModeling(TextTask):
    """The task."""

    DESCRIPTION = LANGUAGE_MODELING
    SETTINGS = PackingSettings
    DATA = LanguageDataSet
    FIELDS: ClassVar = {"text": "text", "samples": BLOCKS}
    WORKLOAD = "trials.tasks.language.model:LanguageWorkload"
