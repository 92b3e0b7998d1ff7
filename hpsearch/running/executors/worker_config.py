"""The configuration of workers: the facts that all attempts of a study share."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpsearch.adapters.loading import load
from hpsearch.domain import events as ev
from trials.checkpoints import folders
from trials.contract import Budget, Goal, Task


@dataclass(frozen=True)
class WorkerConfig:
    """The facts that all attempts of a study share."""

    task: Mapping[str, Any]  # the `task` part of the study file
    base: str  # the folder that its relative paths start from
    settings: Mapping[str, Any]  # fixed settings; each trial's parameters are merged over them
    budget: Budget  # the trial budget with its report grid
    checkpoints: str  # the study's folder for checkpoints, a path or a URL
    prepares: bool  # true if the task has data to prepare
    threads: int = 1
    """Threads that torch uses for a trial that begins. One that is continued keeps its own
    number."""
    goal: Goal | None = None  # the study's objective
    goals: tuple[Goal, ...] = ()  # all its objectives, `goal` first

    def load_task(self) -> Task:
        """Build the task. Python also looks for the user's modules beside the study file."""
        if self.base not in sys.path:
            sys.path.insert(0, self.base)
        return load(self.task, Path(self.base))

    def params(self, order: ev.Launch) -> dict[str, Any]:
        """Every setting of an attempt."""
        return {**self.settings, **order.params}

    def folder(self, trial: int) -> Path | str:
        """The folder of a trial's checkpoints: a path, or a URL."""
        return folders.inside(self.checkpoints, folders.trial_folder(trial))

    def log(self, trial: int, attempt: int) -> Path | str:
        """The file for the output of an attempt: a path, or a URL."""
        return folders.log_of(self.checkpoints, trial, attempt)
