"""Language modelling: a Hugging Face model learns to tell the next token of a text from those before it.

This module holds the task's face. Its data is read in `language_data`, its model built in `language_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Setup, TaskError
from trials.tasks.description import LOOP_METRICS, Field
from trials.tasks.sequence_task import PackingSettings, SequenceTask, describe

if TYPE_CHECKING:
    from trials.tasks.sequence_data import SequenceData
    from trials.workload import Workload

METRICS = LOOP_METRICS | {"loss", "perplexity"}
"""All metrics of a report."""

BLOCKS, DOCUMENTS = SAMPLES = ("blocks", "documents")
"""What a sample is: a block of `max_length` tokens, whatever documents they are of, or a document."""

_COLUMNS = (
    Field("text", (str,), "the column with the texts; text where it is missing"),
    Field("samples", (str,), "blocks (documents joined and cut) or documents (each by itself); blocks where missing"),
)


class LanguageModeling(SequenceTask):
    """The task."""

    DESCRIPTION = describe(
        "language_modeling", "a text (.txt), CSV, Parquet or JSONL file", _COLUMNS, PackingSettings, METRICS
    )
    SETTINGS = PackingSettings
    COLUMNS = {"text": "text"}  # noqa: RUF012  # declared as a class variable by its base

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        super().__init__(task, base)
        self._samples: str = task.get("samples", BLOCKS)
        if self._samples not in SAMPLES:
            what = f"must be {' or '.join(SAMPLES)}, not {self._samples!r}"
            raise TaskError([Problem("task.samples", what)])

    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""
        from trials.tasks import language_data

        return language_data.problems_with(self.spec)

    def prepare(self, params: Mapping[str, Any]) -> SequenceData:
        """Read, split and tokenise the data, and cut it into samples of at most `max_length` tokens."""
        from trials.tasks import language_data

        settings = PackingSettings.parse(params)
        spec, model, length, samples = self.spec, self.model_for(settings), settings.max_length, self._samples
        return self.kept(settings, lambda: language_data.prepare(spec, model, length, samples), samples)

    def on_test(self, data: SequenceData, settings: PackingSettings) -> SequenceData:
        """The test documents where the validation documents were."""
        from trials.tasks import language_data

        return language_data.on_test(self.spec, self.model_for(settings), data, settings.max_length, self._samples)

    def workload(self, data: SequenceData, settings: PackingSettings, setup: Setup) -> Workload:
        """The language model with its samples."""
        from trials.tasks.language_model import LanguageWorkload

        return LanguageWorkload(self.model_for(settings), data, settings, setup)
