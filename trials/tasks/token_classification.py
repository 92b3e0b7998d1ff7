"""Token classification: a Hugging Face model learns the tag of each word, such as the entity it belongs to.

This module holds the task's face. Its data is read in `token_data`, its model built in `token_model`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Setup
from trials.tasks.description import LOOP_METRICS, Field
from trials.tasks.sequence_task import PackingSettings, SequenceTask, describe

if TYPE_CHECKING:
    from trials.tasks.sequence_data import SequenceData
    from trials.workload import Workload

METRICS = LOOP_METRICS | {"loss", "accuracy", "precision", "recall", "f1"}
"""All metrics of a report."""

_COLUMNS = (
    Field("tokens", (str,), "the column with the lists of words; tokens where it is missing"),
    Field("tags", (str,), "the column with the lists of tags; tags where it is missing"),
)


class TokenClassification(SequenceTask):
    """The task."""

    DESCRIPTION = describe(
        "token_classification", "a CoNLL (.conll, .txt), Parquet or JSONL file", _COLUMNS, PackingSettings, METRICS
    )
    SETTINGS = PackingSettings
    COLUMNS = {"tokens": "tokens", "tags": "tags"}  # noqa: RUF012  # declared as a class variable by its base

    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""
        from trials.tasks import token_data

        return token_data.problems_with(self.spec)

    def prepare(self, params: Mapping[str, Any]) -> SequenceData:
        """Read, split and tokenise the data."""
        from trials.tasks import token_data

        settings = PackingSettings.parse(params)
        spec, model = self.spec, self.model_for(settings)
        return self.kept(settings, lambda: token_data.prepare(spec, model, settings.max_length))

    def on_test(self, data: SequenceData, settings: PackingSettings) -> SequenceData:
        """The test sentences where the validation sentences were."""
        from trials.tasks import token_data

        return token_data.on_test(self.spec, self.model_for(settings), data, settings.max_length)

    def workload(self, data: SequenceData, settings: PackingSettings, setup: Setup) -> Workload:
        """The tagger with its sentences."""
        from trials.tasks.token_model import TokenWorkload

        return TokenWorkload(self.model_for(settings), data, settings, setup)
