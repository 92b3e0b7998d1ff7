"""Token classification: a model of transformers learns the tag of each word, such as the entity it
belongs to."""

from __future__ import annotations

from typing import ClassVar

from trials.descriptions.text import TOKEN_CLASSIFICATION, PackingSettings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.tokens.data import TokenDataSet


class TokenClassification(TextTask):
    """The task."""

    DESCRIPTION = TOKEN_CLASSIFICATION
    SETTINGS = PackingSettings
    DATA = TokenDataSet
    FIELDS: ClassVar = {"tokens": "tokens", "tags": "tags"}
    WORKLOAD = "trials.tasks.tokens.model:TokenWorkload"
