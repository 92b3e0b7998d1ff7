"""What the built-in tasks share: their settings are parsed, their data prepared, and a run of the
loop started.

A task is a package: `task` is light to import; `data` turns files into flat arrays; `model` is its
model with that data, a `workload.Workload`. Its description (fields, settings, metrics) is in
`trials.descriptions`.
"""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from trials.contract import Problem, Setting, Setup, TaskError
from trials.descriptions.description import TaskDescription
from trials.descriptions.models import Pretrained, Scratch
from trials.settings import Settings, nearest
from trials.tasks import prepared
from trials.tasks.prepared import Spec

if TYPE_CHECKING:
    from torch import nn

    from trials.data.workload import Workload
    from trials.final.export import Portable
    from trials.loop.training import TrainingRun
    from trials.tasks.finishing import FinalParts


class DataModule(Protocol):
    """What the data module of a task has."""

    __name__: str
    TYPES: tuple[type, ...]
    """The dataclasses that prepared data is made of."""

    def problems_with(self, spec: Any) -> list[Problem]:
        """Everything wrong with the files that can be seen before training, the test file's
        problems too."""

    def prepare(self, spec: Any, settings: Any) -> Any:
        """Read, check, split and encode: flat arrays in a dataclass, with the `fingerprint` of what
        they hold.

        Raises:
            TaskError: With every problem of the data or the model.
        """

    def on_test(self, spec: Any, data: Any, settings: Any) -> Any:
        """What `prepare` made, with the test samples, which have no problems, in place of the
        validation samples."""


SpecT = TypeVar("SpecT", bound=Spec)


class TrainedTask(abc.ABC, Generic[SpecT]):
    """A task that the loop of `trials.loop.training` trains (a `contract.Task`).

    Args:
        task: The `task` part of a study file, its keys and types checked.
        base: The folder its relative paths start from.
        spec: The part, parsed.
        model: The model that it names; None if it names none.
    """

    DESCRIPTION: ClassVar[TaskDescription]
    SETTINGS: ClassVar[type[Settings]]
    DATA: ClassVar[DataModule]
    """The module that prepares its data."""
    DATA_SETTINGS: ClassVar[tuple[str, ...]] = ()
    """The settings that decide what is prepared."""

    def __init__(
        self,
        task: Mapping[str, Any],
        base: Path,
        spec: SpecT,
        model: Pretrained | Scratch | None = None,
    ) -> None:
        self.metrics: frozenset[str] | None = self.DESCRIPTION.of_part(task).metrics
        self.settings: Mapping[str, Setting] | None = self.DESCRIPTION.settings
        self.spec, self.model = spec, model
        self._base = base
        identity = json.dumps([dict(task), str(base)], sort_keys=True)
        self._digest = hashlib.sha256(identity.encode()).hexdigest()[:12]

    @abc.abstractmethod
    def workload(self, data: Any, settings: Any, setup: Setup) -> Workload:
        """The model to train, with its data on the device."""

    @abc.abstractmethod
    def portable(self, folder: Path, model: nn.Module) -> Portable:
        """The model that a workload wrote into a folder, to be exported.

        Args:
            folder: What the workload wrote.
            model: The workload's model: its class is known, so that no code that lies in the folder
                is run.
        """

    def spec_for(self, settings: Settings) -> SpecT:
        """The part, with what settings or a model decide on; as it is where they decide nothing."""
        return self.spec

    def problems(self) -> list[Problem]:
        """What is wrong with the data files."""
        return self.DATA.problems_with(self.spec)

    def prepare(self, params: Mapping[str, Any]) -> Any:
        """Read, split and encode the data, or find it in the cache.

        Raises:
            TaskError: With every problem of the data or the model.
        """
        return prepared.prepare(self.recipe(self.SETTINGS.parse(params)))

    def recipe(self, settings: Settings) -> prepared.Recipe[Any]:
        """How its data is prepared."""
        spec = self.spec_for(settings)
        module = self.DATA
        decisive = [getattr(settings, name) for name in self.DATA_SETTINGS if name != "model"]
        return prepared.Recipe(
            kind=self.DESCRIPTION.kind,
            sources=(spec.train, spec.validation),
            facts=(*spec.facts, *decisive),
            model=spec.encoder,
            types=module.TYPES,
            module=module.__name__,
            build=lambda: module.prepare(spec, settings),
        )

    def on_test(self, data: Any, settings: Settings) -> Any:
        """What `prepare` made, with the test samples where the validation samples were. The files
        have no problems."""
        return self.DATA.on_test(self.spec_for(settings), data, settings)

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
        from trials.loop.training import TrainingRun

        _use(setup.device)
        settings = self.SETTINGS.parse(setup.params)
        metrics = self.metrics or frozenset()
        monitor = settings.monitor
        if monitor not in metrics:
            hint = nearest(monitor, metrics)
            what = f"{monitor!r} is not a metric of this task; {hint}"
            raise TaskError([Problem("settings.monitor", what)])
        workload = self.workload(data, settings, setup)
        return TrainingRun(workload, settings, setup)

    def rehearse(self, setup: Setup, data: Any) -> dict[str, float]:
        """Train one step and evaluate one batch, each of the longest samples."""
        run = self.start(setup, data)
        try:
            return run.rehearse()
        finally:
            run.close()


def _use(device: str) -> None:
    """Make a GPU the current one of this thread before anything is put on it."""
    import torch

    from trials.devices.processes import use

    use(torch.device(device))
