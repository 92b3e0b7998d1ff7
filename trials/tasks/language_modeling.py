"""Language modelling: a Hugging Face model learns to tell the next token of a text from those before it.

This module holds the task's face. Its data is read in `language_data`, its model built in `language_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Setup
from trials.settings import Settings
from trials.tasks.description import LOOP_METRICS, Field
from trials.tasks.sequence_task import SequenceTask, describe

if TYPE_CHECKING:
    from trials.tasks.sequence_data import SequenceData
    from trials.workload import Workload

METRICS = LOOP_METRICS | {"loss", "perplexity"}
"""All metrics of a report."""

_COLUMNS = (Field("text", (str,), "the column with the texts; text where it is missing"),)


class LanguageModeling(SequenceTask):
    """The task."""

    DESCRIPTION = describe(
        "language_modeling", "a text (.txt), CSV, Parquet or JSONL file", _COLUMNS, Settings, METRICS
    )
    SETTINGS = Settings
    AUTO = "AutoModelForCausalLM"
    COLUMNS = {"text": "text"}  # noqa: RUF012  # declared as a class variable by its base

    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""
        from trials.tasks import language_data

        return language_data.problems_with(self.spec)

    def prepare(self, params: Mapping[str, Any]) -> SequenceData:
        """Read, split and tokenise the data, and cut it into blocks of `max_length` tokens."""
        from trials.tasks import language_data

        settings = Settings.parse(params)
        spec, model = self.spec, self.model_for(settings)
        return self.kept(settings, lambda: language_data.prepare(spec, model, settings.max_length))

    def on_test(self, data: SequenceData, settings: Settings) -> SequenceData:
        """The test documents where the validation documents were."""
        from trials.tasks import language_data

        return language_data.on_test(self.spec, data, settings.max_length)

    def workload(self, data: SequenceData, settings: Settings, setup: Setup) -> Workload:
        """The language model with its blocks."""
        from trials.tasks.language_model import LanguageWorkload

        return LanguageWorkload(self.model_for(settings), data, settings, setup)
