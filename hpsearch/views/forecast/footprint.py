"""The most bytes that a study's checkpoints will take, compared with the space on the disk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hpsearch.brain.retention import BEST, FRONT, WAITING, in_gb
from hpsearch.study_file.methods import PROMOTION
from hpsearch.study_file.models import GB, StudySpec
from trials.checkpoints import folders

KEPT_WHOLE = 2  # the setting `keep_checkpoints` where a study file does not give it

ON_THE_WAY = 2
"""Further checkpoints of a running trial: one not recorded yet, and one being written."""


@dataclass(frozen=True)
class CheckpointSize:
    """The bytes that one checkpoint takes, and the model's weights in it."""

    whole_bytes: float
    weights_bytes: float


def running_bytes(spec: StudySpec, one: CheckpointSize, workers: int) -> float:
    """The most that the checkpoints of running trials take."""
    kept = int(spec.settings.get("keep_checkpoints", KEPT_WHOLE)) + ON_THE_WAY
    return workers * (kept * one.whole_bytes + one.weights_bytes)


def peak_bytes(spec: StudySpec, one: CheckpointSize, workers: int) -> float:
    """The most that all checkpoints of a study take: of running, waiting and ended trials."""
    running = running_bytes(spec, one, workers)
    total = running + _resting_bytes(spec, one)
    limit = spec.checkpoints.max_gb
    return total if limit is None else max(running, min(total, limit * GB))


def _resting_bytes(spec: StudySpec, one: CheckpointSize) -> float:
    trials = spec.budget.trials
    if trials is None:
        trials = WAITING + BEST
    pauses_trials = spec.search.pruner.kind == PROMOTION
    waiting = min(WAITING, trials) if pauses_trials else 0
    ended = min(_most_best(spec), trials - waiting)
    waiting_bytes = waiting * (one.whole_bytes + one.weights_bytes)
    ended_bytes = ended * one.weights_bytes
    return waiting_bytes + ended_bytes


def _most_best(spec: StudySpec) -> int:
    """The most trials that keep their weights."""
    if len(spec.objectives) > 1:
        return FRONT
    confirm = spec.search.confirm
    return BEST if confirm is None else max(BEST, confirm.top)


def warnings(spec: StudySpec, one: CheckpointSize, workers: int, folder: str) -> Iterator[str]:
    """Warnings about checkpoints before the study starts, each a full sentence with its remedy.

    The folder for checkpoints may be a URL, behind which the free space is not known.
    """
    running, peak = running_bytes(spec, one, workers), peak_bytes(spec, one, workers)
    limit = spec.checkpoints.max_gb
    if limit is not None and running > limit * GB:
        yield (
            f"checkpoints.max_gb: {limit:g} GB is less than the {in_gb(running)} "
            "that running trials take, which are always kept; "
            "raise the limit, or lower resources.workers"
        )
    if folders.is_url(folder):
        return
    free = shutil.disk_usage(_existing(Path(folder))).free
    if peak > free:
        yield (
            f"checkpoints may take {in_gb(peak)}, and {folder} has {in_gb(free)} left: "
            "choose another folder with --checkpoints, or a limit with checkpoints: {max_gb: ...}"
        )


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.is_dir())
