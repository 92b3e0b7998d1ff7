"""The objectives of a study, and the names of their columns in frames."""

from __future__ import annotations

from dataclasses import dataclass

from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.study_texts import metrics_in


@dataclass(frozen=True, slots=True)
class GoalColumns:
    """One objective of a study."""

    index: int
    metric: str
    maximize: bool

    @property
    def column(self) -> str:
        """The column of its values, as they were shown."""
        return f"value_{self.index}"

    @property
    def standing(self) -> str:
        """The column of the values that are expected of trials in full, or else their values."""
        return f"standing_{self.index}"


def goals_of(study: StudyHead) -> list[GoalColumns]:
    """The objectives of a study, named as its study file does."""
    named = metrics_in(study.spec)
    if len(named) != len(study.directions):
        several = len(study.directions) > 1
        named = [f"value {i}" if several else "value" for i in range(len(study.directions))]
    return [
        GoalColumns(index, metric, direction == "maximize")
        for index, (metric, direction) in enumerate(zip(named, study.directions, strict=True))
    ]
