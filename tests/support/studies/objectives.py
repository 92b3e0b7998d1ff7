"""Studies of Optuna's objectives on real workers in threads of this process: no Ray, a real
database."""

from __future__ import annotations

import sys
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from hpsearch.domain import events as ev
from hpsearch.domain.history import History
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver
from hpsearch.running.executors.worker import ReplaceWorker, Worker
from hpsearch.running.executors.worker_config import WorkerConfig
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from support.running.function_runs import TaskInThread

STUDY: dict[str, Any] = {
    "study": "objective",
    "seed": 5,
    "objective": {"metric": "score", "direction": "minimize"},
    "budget": {"trials": 8, "per_trial": {"steps": 4}},
    "search": {"sampler": "tpe", "pruner": "none"},
}


class Killed(Exception):
    """Stands for a driver that dies."""


class ThreadConfig(WorkerConfig):
    """The configuration of workers that call objectives in threads, not in other processes."""

    def load_task(self) -> Any:
        return TaskInThread(super().load_task())


@dataclass
class ThreadExecutor:
    """An executor whose slots are workers in threads of this process.

    Args:
        config: What every worker needs to know.
        count: How many slots.
        answers: The driver dies instead of sending the answer after so many; None for never.
    """

    config: WorkerConfig
    count: int = 1
    answers: int | None = None
    asked: list[tuple[int, int, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        fetch = lambda data: data  # noqa: E731
        config = ThreadConfig(**vars(self.config))
        self._workers = {f"t{n}": Worker(config, fetch) for n in range(self.count)}
        self._slots: dict[tuple[int, int], str] = {}
        self._news: list[ev.Event] = [ev.SlotUp(name, "here", "cpu", 1.0) for name in self._workers]

    def launch(self, order: ev.Launch) -> None:
        self._slots[(order.trial, order.attempt)] = order.slot
        self._workers[order.slot].launch(order, None)

    def advance(self, order: ev.Advance) -> None:
        if order.given and self.answers is not None:
            self.answers -= 1
            if self.answers < 0:
                raise Killed
        self._worker(order).advance(order)

    def stop(self, order: ev.Stop) -> None:
        self._worker(order).stop(order)

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        self._workers[self._slots[(trial, attempt)]].recorded(trial, attempt, resource)

    def poll(self, timeout_s: float) -> list[ev.Event]:
        events, self._news = self._news, []
        if events:
            return events
        for worker in self._workers.values():
            for event in worker.poll(0.02):
                assert not isinstance(event, ReplaceWorker)
                events.append(event)
                if isinstance(event, ev.Queried):
                    self.asked.append((event.trial, event.attempt, event.name))
        return events

    def _worker(self, order: ev.Advance | ev.Stop) -> Worker:
        return self._workers[self._slots[(order.trial, order.attempt)]]

    def close(self) -> None:
        """Let go of what still waits."""
        for (trial, attempt), name in self._slots.items():
            self._workers[name].stop(ev.Stop(trial, attempt))


class ObjectiveStudy:
    """A study of an objective, in a database of its own.

    Args:
        folder: For the database, the checkpoints and the module.
        code: The module, which defines `objective`.
        name: The name of the objective in the module; `__main__` for a script.
        changes: Sections of the study file.
    """

    def __init__(self, folder: Path, code: str, *, name: str = "objective", **changes: Any) -> None:
        self.module = f"objectives_{abs(hash((str(folder), code)))}"
        (folder / f"{self.module}.py").write_text(code)
        task = {"kind": f"{self.module}:{name}", "library": "optuna"}
        text = yaml.safe_dump({**STUDY, "task": task, **changes})
        self.spec: StudySpec = parse(text, base=folder)
        self.url = f"sqlite:///{folder / 'study.db'}"
        self._folder = folder
        with closing(Store.open(self.url)) as store:
            create_study(store, self.spec, folder / "checkpoints")

    def drive(self, workers: int = 1, answers: int | None = None) -> ThreadExecutor:
        """Drive it to its end, or until its driver dies."""
        config = worker_config(self.spec, self._folder / "checkpoints")
        executor = ThreadExecutor(config, workers, answers)
        with closing(Store.open(self.url)) as store:
            history = store.load(self.spec.study)
            lease = store.acquire(history.study.id, "a test", 600.0)
            study = build_study(history, self.spec)
            with suppress(Killed):
                Driver(study, executor, store, lease).run()
            store.release(lease)  # that of one who died would be waited for
        executor.close()
        return executor

    def history(self) -> History:
        with closing(Store.open(self.url)) as store:
            return store.load(self.spec.study)

    def state(self) -> Any:
        """The module's globals, which workers of this process share."""
        return vars(sys.modules[self.module])
