"""The base of the built-in tasks: settings are parsed, data is prepared, and a run is started.

A task is a package: its task is light to import and turns files into flat arrays. Its description
is in `trials.descriptions`. The loop trains a model that is joined with the data in a
`workload.Workload`; trees grow in a run of their own.
"""

from __future__ import annotations

import abc
import copy
import functools
import hashlib
import json
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar

from trials.contract import Fold, Problem, Run, Setting, Setup, TaskError
from trials.descriptions.description import TaskDescription
from trials.descriptions.models import ADAPTER_CONFIG, Pretrained, Scratch
from trials.settings import Settings, nearest
from trials.tasks.datasets import prepared
from trials.tasks.datasets.data_set import DataSet, DataSpec

if TYPE_CHECKING:
    from trials.data.workload import Workload
    from trials.loop.training import TrainingRun


SpecT = TypeVar("SpecT", bound=DataSpec)


class BuiltInTask(abc.ABC, Generic[SpecT]):
    """A task on data files (a `contract.Task`). `task`: the `task` part of a study file, its keys
    and types checked."""

    DESCRIPTION: ClassVar[TaskDescription]
    SETTINGS: ClassVar[type[Settings]]
    DATA: ClassVar[type[DataSet[Any, Any]]]
    DATA_SETTINGS: ClassVar[tuple[str, ...]] = ()  # the settings that change the prepared data

    def __init__(self, task: Mapping[str, Any], base: Path, spec: SpecT) -> None:
        self.metrics: frozenset[str] | None = self.DESCRIPTION.of_part(task).metrics
        self.settings: Mapping[str, Setting] | None = self.DESCRIPTION.settings
        self.spec, self._base = spec, base
        identity = json.dumps([dict(task), str(base)], sort_keys=True)
        self._digest = hashlib.sha256(identity.encode()).hexdigest()[:12]

    def spec_for(self, settings: Settings) -> SpecT:
        return self.spec

    def on_fold(self, fold: Fold) -> Self:
        """The task whose validation samples are a fold of the training data."""
        other = copy.copy(self)
        other.spec = replace(self.spec, validation=fold)
        return other

    def problems(self, remark: Callable[[str, str], None] | None = None) -> list[Problem]:
        """The problems of the data files; `remark` as of `DataSet.problems`."""
        return self.DATA(self.spec).problems(remark)

    def prepare(self, params: Mapping[str, Any]) -> Any:
        settings = self.SETTINGS.parse(params)
        data = self.DATA(self.spec_for(settings))
        build = functools.partial(data.prepare, settings)
        return prepared.prepare(self.name_of_data(settings), build, data.TYPES)

    def remarks(self, params: Mapping[str, Any], data: Any) -> list[str]:
        return []

    def name_of_data(self, settings: Settings) -> str | None:
        """The name of the prepared data in the cache; None if they are not kept."""
        spec = self.spec_for(settings)
        decisive = [getattr(settings, name) for name in self.DATA_SETTINGS if name != "model"]
        sources, facts = (spec.train, spec.validation), (*spec.facts, spec.group, *decisive)
        return prepared.fingerprint(self.DESCRIPTION.kind, sources, facts, spec.encoder)

    def data_key(self, params: Mapping[str, Any]) -> str:
        settings = self.SETTINGS.parse(params)
        parts = [f"{name}={getattr(settings, name)}" for name in self.DATA_SETTINGS]
        return ":".join([self.DESCRIPTION.kind, self._digest, *parts])

    @abc.abstractmethod
    def start(self, setup: Setup, data: Any) -> Run:
        """Build the model and the run, continued from a checkpoint where `setup` names one. Raises
        TaskError if the settings do not fit, CheckpointError if the checkpoint is damaged, and so
        are those before it."""

    @abc.abstractmethod
    def rehearse(self, setup: Setup, data: Any) -> dict[str, float]:
        """As `contract.Rehearsed.rehearse`."""

    def complete(self, folder: Path, data: Any, setup: Setup) -> None:
        """Turn the files of a checkpoint into a whole model."""

    @abc.abstractmethod
    def evaluate(self, folder: Path, data: Any, setup: Setup) -> dict[str, float]:
        """The metrics of the model in `folder` on the validation samples of `data`."""


class TrainedTask(BuiltInTask[SpecT]):
    """A task that the loop of `trials.loop.training` trains."""

    WORKLOAD: ClassVar[str]
    """The workload as ``module:class``; imported when a model is built, as it imports torch."""

    def model_for(self, settings: Any) -> Pretrained | Scratch | None:
        """The model to train; None for the kind's own small network."""
        return None

    def workload(self, data: Any, settings: Any, setup: Setup) -> Workload:
        build = pkgutil.resolve_name(self.WORKLOAD)
        built: Workload = build(self.model_for(settings), data, settings, setup)
        return built

    def start(self, setup: Setup, data: Any) -> Run:
        from trials.loop.on_ranks import RunOnRanks

        if setup.ranks is None:
            return self._begun(setup, data)
        return RunOnRanks(setup, lambda: self._begun(setup, data))

    def _begun(self, setup: Setup, data: Any) -> TrainingRun:
        import torch

        from trials.devices import processes
        from trials.loop.training import TrainingRun

        processes.use(torch.device(setup.device))
        settings = self.SETTINGS.parse(setup.params)
        metrics = self.metrics or frozenset()
        monitor = settings.monitor
        if monitor not in metrics:
            what = f"{monitor!r} is not a metric of this task; {nearest(monitor, metrics)}"
            raise TaskError.at("settings.monitor", what)
        return TrainingRun(self.workload(data, settings, setup), settings, setup)

    def rehearse(self, setup: Setup, data: Any) -> dict[str, float]:
        run = self._begun(setup, data)
        try:
            return run.rehearse()
        finally:
            run.close()

    def complete(self, folder: Path, data: Any, setup: Setup) -> None:
        """Turn the adapters of a checkpoint into a whole model."""
        from trials.data.workload import Adaptable

        if not (folder / ADAPTER_CONFIG).is_file():
            return
        workload = self._alone(data, setup)
        workload.read(folder)
        assert isinstance(workload, Adaptable)
        workload.merge(folder)

    def evaluate(self, folder: Path, data: Any, setup: Setup) -> dict[str, float]:
        import torch

        from trials.data.workload import Adaptable
        from trials.devices.precision import Precision

        settings = self.SETTINGS.parse(setup.params)
        workload = self._alone(data, setup)
        if isinstance(workload, Adaptable) and setup.params.get("lora"):
            # Fresh adapters change nothing, and the base stays in the type it was trained in.
            workload.take(folder)
        else:
            workload.read(folder)
        return workload.evaluate(Precision(settings.precision, torch.device(setup.device)))

    def _alone(self, data: Any, setup: Setup) -> Workload:
        from trials.devices.memory import release_memory

        release_memory()
        return self.workload(data, self.SETTINGS.parse(setup.params), setup)
