"""Sequence to sequence: a Hugging Face model learns to write a text (a translation, a summary) for another.

This module holds the task's face. Its data is read in `sequence_to_sequence_data`, its model built in
`sequence_to_sequence_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Setup
from trials.settings import Settings, setting
from trials.tasks.description import LOOP_METRICS, Field
from trials.tasks.sequence_task import SequenceTask, describe

if TYPE_CHECKING:
    from trials.tasks.sequence_data import SequenceData
    from trials.workload import Workload

METRICS = LOOP_METRICS | {"loss", "perplexity"}
"""All metrics of a report."""

_COLUMNS = (
    Field("source", (str,), "the column with the texts that are read; source where it is missing"),
    Field("target", (str,), "the column with the texts to write for them; target where it is missing"),
)


@dataclass(frozen=True)
class SequenceToSequenceSettings(Settings):
    """The loop's settings, and how long a target may be; `max_length` is that of a source."""

    max_target_length: int = setting(
        int, 128, "Longest text to write, in tokens; longer ones are cut.", low=4, high=65536
    )


class SequenceToSequence(SequenceTask):
    """The task."""

    DESCRIPTION = describe(
        "sequence_to_sequence", "a CSV, Parquet or JSONL file", _COLUMNS, SequenceToSequenceSettings, METRICS
    )
    SETTINGS = SequenceToSequenceSettings
    DATA_SETTINGS = ("max_length", "max_target_length", "model")
    COLUMNS = {"source": "source", "target": "target"}  # noqa: RUF012  # declared as a class variable by its base

    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""
        from trials.tasks import sequence_to_sequence_data

        return sequence_to_sequence_data.problems_with(self.spec)

    def prepare(self, params: Mapping[str, Any]) -> SequenceData:
        """Read, split and tokenise the data, or find it in the cache."""
        from trials.tasks import sequence_to_sequence_data

        settings = SequenceToSequenceSettings.parse(params)
        spec, model, lengths = self.spec, self.model_for(settings), (settings.max_length, settings.max_target_length)
        return self.kept(settings, lambda: sequence_to_sequence_data.prepare(spec, model, *lengths))

    def on_test(self, data: SequenceData, settings: SequenceToSequenceSettings) -> SequenceData:
        """The test pairs where the validation pairs were."""
        from trials.tasks import sequence_to_sequence_data

        lengths = settings.max_length, settings.max_target_length
        return sequence_to_sequence_data.on_test(self.spec, self.model_for(settings), data, *lengths)

    def workload(self, data: SequenceData, settings: SequenceToSequenceSettings, setup: Setup) -> Workload:
        """The model with its pairs of texts."""
        from trials.tasks.sequence_to_sequence_model import PairWorkload

        return PairWorkload(self.model_for(settings), data, settings, setup)
