"""Notes on a study file: valid requests that may not work as expected."""

from __future__ import annotations

from collections.abc import Iterator

from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.space import is_open


def advice(spec: StudySpec) -> list[str]:
    """Notes on a study file, a text each, with a remedy where there is one."""
    return list(_notes(spec))


def _notes(spec: StudySpec) -> Iterator[str]:
    pruner = spec.search.pruner.kind
    if pruner in ("median", "percentile"):
        yield (
            f"search.pruner: {pruner} compares with finished trials only: trials that run before, "
            "such as the first one of every worker, are never pruned; "
            f"{PROMOTION} compares from the first rung on"
        )
    if is_open(spec.task) and pruner == PROMOTION and len(spec.objectives) == 1:
        yield (
            "search.pruner: an objective has no checkpoints, so a paused trial that continues "
            "trains from the beginning, and is charged for it; to only end trials: pruner: "
            "successive_halving"
        )
