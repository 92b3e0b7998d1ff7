"""Language modelling: a model of transformers learns to predict the next token of a text from those
before it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from trials.contract import Problem, Setup, TaskError
from trials.descriptions.text import BLOCKS, LANGUAGE_MODELING, SAMPLES, PackingSettings
from trials.tasks.huggingface.task import TextTask
from trials.tasks.language import data as language_data
from trials.tasks.trained import DataModule

if TYPE_CHECKING:
    from trials.data.workload import Workload
    from trials.tasks.huggingface.data import SequenceData


class LanguageModeling(TextTask):
    """The task."""

    DESCRIPTION = LANGUAGE_MODELING
    SETTINGS = PackingSettings
    DATA: ClassVar[DataModule] = language_data
    FIELDS: ClassVar = {"text": "text", "samples": BLOCKS}

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base)
        samples = self.spec.fields["samples"]
        if samples not in SAMPLES:
            what = f"must be {' or '.join(SAMPLES)}, not {samples!r}"
            raise TaskError([Problem("task.samples", what)])

    def workload(self, data: SequenceData, settings: PackingSettings, setup: Setup) -> Workload:
        """The language model with its samples."""
        from trials.tasks.language.model import LanguageWorkload

        return LanguageWorkload(self.spec_for(settings).model, data, settings, setup)
