"""The configuration of workers, and the state of their process that stays between attempts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpsearch.domain import events as ev
from hpsearch.running.loading import load
from trials.checkpoints import folders
from trials.contract import Budget, Goal, Task
from trials.devices.memory import keep_to_share
from trials.running.rounds import TaskInRounds
from trials.tasks.function import own

KEPT_DATA = 2  # how many prepared data sets a worker keeps references to


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
    """Threads that torch uses for a trial that begins; one that goes on keeps its own number."""
    goal: Goal | None = None  # the study's objective
    goals: tuple[Goal, ...] = ()  # all its objectives, `goal` first

    def load_task(self) -> Task:
        """Build the task. Python also looks for the user's modules beside the study file."""
        own.look_in(Path(self.base))
        task = load(self.task, Path(self.base))
        return task if self.budget.each is None else TaskInRounds(task, self.budget)

    def needs_torch(self, processes: int) -> bool:
        """True if torch must be able to use each GPU of a slot, to train or to connect so many
        processes. The user's own code may use something else."""
        connects = processes > 1 and not self.task["kind"].endswith(":__main__")
        return self.prepares or connects

    def params(self, order: ev.Launch) -> dict[str, Any]:
        return {**self.settings, **order.params}

    def folder(self, trial: int) -> Path | str:
        """The folder of a trial's checkpoints: a path, or a URL."""
        return folders.inside(self.checkpoints, folders.trial_folder(trial))

    def log(self, trial: int, attempt: int) -> Path | str:
        """The file for the output of an attempt: a path, or a URL."""
        return folders.log_of(self.checkpoints, trial, attempt)


class WorkerState:
    """The state of a worker process that stays between attempts: the task, and its prepared data.
    `fetch` makes the data from `launch`'s argument; `memory_fraction` is its part of the device's
    memory, 1 and more for all."""

    def __init__(
        self, config: WorkerConfig, fetch: Callable[[Any], Any], device: str, memory_fraction: float
    ) -> None:
        self.config = config
        self.device = device
        self._memory_fraction = memory_fraction
        self._fetch = fetch
        self._task: Task | None = None
        self._data: dict[str, Any] = {}

    def make_ready(self, order: ev.Launch) -> None:
        """Build the task, unless it is there, and keep to its part of the device."""
        _ = self.task
        if self.config.prepares:  # others train in a process of their own
            keep_to_share(self.device, self.memory_fraction_for(order))

    def memory_fraction_for(self, order: ev.Launch) -> float:
        """The part of the device's memory that an attempt may take."""
        return self._memory_fraction if order.memory_fraction is None else order.memory_fraction

    @property
    def task(self) -> Task:
        """The task; built when it is first asked for."""
        if self._task is None:
            self._task = self.config.load_task()
        return self._task

    def data_for(self, order: ev.Launch, given: Any) -> Any:
        """The prepared data of an attempt, fetched if it is not here; None if none is prepared."""
        if not self.config.prepares:
            return None
        key = self.task.data_key(self.config.params(order))
        kept = self._data
        if key in kept:
            return kept[key]
        while len(kept) >= KEPT_DATA:
            oldest = next(iter(kept))
            del kept[oldest]
        kept[key] = self._fetch(given)
        return kept[key]
