"""What the built-in tasks share: their settings are parsed, their data prepared, and a run of the loop started.

A task is three rooms: its face, which is light to import (fields, settings, metrics); its data, from files to flat
arrays; and its model with that data, a `workload.Workload`.
"""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from trials.contract import Problem, Setting, Setup, TaskError
from trials.settings import Settings, nearest
from trials.tasks.description import TaskDescription

if TYPE_CHECKING:
    from torch import nn

    from trials.export import Portable
    from trials.loop import TrainingRun
    from trials.tasks.finishing import FinalParts
    from trials.tasks.pretrained import Pretrained
    from trials.tasks.text_classification import Scratch
    from trials.workload import Workload


class Files(Protocol):
    """Where a task's data is; paths are absolute."""

    @property
    def train(self) -> Path:
        """The training data."""

    @property
    def validation(self) -> float | Path:
        """The validation data, or the share of the training data that it is."""

    @property
    def test(self) -> Path | None:
        """Data that the search never sees."""


class TrainedTask(abc.ABC):
    """A task that the loop of `trials.loop` trains (a `contract.Task`).

    Args:
        task: The `task` part of a study file, its keys and types checked.
        base: The folder its relative paths start from.
    """

    DESCRIPTION: ClassVar[TaskDescription]
    SETTINGS: ClassVar[type[Settings]]
    DATA_SETTINGS: ClassVar[tuple[str, ...]] = ()
    """The settings that decide what is prepared."""
    spec: Files
    """The `task` part, parsed."""
    model: Pretrained | Scratch | None = None
    """The model that the `task` part names; None where it names none."""

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        self.metrics: frozenset[str] | None = self.DESCRIPTION.metrics
        self.settings: Mapping[str, Setting] | None = self.DESCRIPTION.settings
        self._base = base
        self._digest = hashlib.sha256(json.dumps([dict(task), str(base)], sort_keys=True).encode()).hexdigest()[:12]

    @abc.abstractmethod
    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""

    @abc.abstractmethod
    def prepare(self, params: Mapping[str, Any]) -> Any:
        """Read, split and encode the data.

        Raises:
            TaskError: With every problem of the data or the model.
        """

    @abc.abstractmethod
    def workload(self, data: Any, settings: Any, setup: Setup) -> Workload:
        """The model to train, with its data on the device."""

    @abc.abstractmethod
    def on_test(self, data: Any, settings: Any) -> Any:
        """What `prepare` made, with the test samples where the validation samples were. The files have no problems."""

    @abc.abstractmethod
    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """The model that a workload wrote into a folder, to be exported.

        Args:
            folder: What the workload wrote.
            model: The workload's model: its class is known, so that no code that lies in the folder is run.
        """

    def final(self) -> FinalParts:
        """What its final training takes."""
        from trials.tasks.finishing import FinalParts

        return FinalParts(self)

    def data_key(self, params: Mapping[str, Any]) -> str:
        """Equal for settings that need the same data."""
        settings = self.SETTINGS.parse(params)
        parts = [f"{name}={getattr(settings, name)}" for name in self.DATA_SETTINGS]
        return ":".join([self.DESCRIPTION.kind, self._digest, *parts])

    def start(self, setup: Setup, data: Any) -> TrainingRun:
        """Build the model and the run, continued from a checkpoint where `setup` names one.

        Raises:
            TaskError: The settings do not fit.
            CheckpointError: The checkpoint is damaged, and so are those before it.
        """
        from trials.loop import TrainingRun

        settings = self.SETTINGS.parse(setup.params)
        metrics = self.metrics or frozenset()
        if settings.monitor not in metrics:
            what = f"{settings.monitor!r} is no metric of this task; {nearest(settings.monitor, metrics)}"
            raise TaskError([Problem("settings.monitor", what)])
        return TrainingRun(self.workload(data, settings, setup), settings, setup)

    def rehearse(self, setup: Setup, data: Any) -> dict[str, float]:
        """Train one step and evaluate one batch, each of the longest samples."""
        run = self.start(setup, data)
        try:
            return run.rehearse()
        finally:
            run.close()
