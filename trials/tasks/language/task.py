"""Language modelling: a model of transformers learns to predict the next token of a text from those
before it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from trials.contract import TaskError
from trials.descriptions.text import BLOCKS, LANGUAGE_MODELING, SAMPLES, PackingSettings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.language.data import LanguageDataSet


class LanguageModeling(TextTask):
    """The task."""

    DESCRIPTION = LANGUAGE_MODELING
    SETTINGS = PackingSettings
    DATA = LanguageDataSet
    FIELDS: ClassVar = {"text": "text", "samples": BLOCKS}
    WORKLOAD = "trials.tasks.language.model:LanguageWorkload"

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base)
        samples = self.spec.fields["samples"]
        if samples not in SAMPLES:
            what = f"must be {' or '.join(SAMPLES)}, not {samples!r}"
            raise TaskError.at("task.samples", what)
