"""A worker: one process that trains one attempt at a time and stays warm between them.

It knows no cluster. Orders come in by `launch`, `advance` and `stop`, events go out by `poll`; all four return at once
(or, for `poll`, after its timeout), while a thread of its own trains. What is expensive stays in the process: imported
libraries, the task, its prepared data, and the pretrained weights that the task itself keeps.
"""

from __future__ import annotations

import logging
import math
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from hpsearch import events as ev
from trials import memory, places, tasks
from trials.checkpoint import CheckpointError, Checkpoints
from trials.contract import Budget, Goal, Report, Setup, Task
from trials.memory import allocated_bytes, release_memory
from trials.runner import Runner, failure_of

GATHER_S = 0.004
"""How long a first event waits for company, unless its attempt waits for an answer: one message, not six."""

Ending = ev.Finished | ev.Stopped | ev.Failed

LEAK_BYTES = 128 << 20
"""GPU memory that may stay behind after an attempt: the workspaces of cuBLAS take some tens of MiB once and for all."""

KEPT_DATA = 2
"""Prepared data sets a worker keeps references to."""

RETIRED = "told to end (SIGTERM)"

log = logging.getLogger("hpsearch")


@dataclass(frozen=True)
class WorkerConfig:
    """What is the same for all attempts of a study.

    Args:
        task: The `task` part of the study file.
        base: The folder its relative paths start from.
        settings: Fixed settings, to be merged under each trial's parameters.
        budget: The trial budget with its report grid.
        checkpoints: The study's folder for checkpoints, a path or a URL.
        prepares: Whether the task has data to prepare.
        threads: Threads torch may use.
        goal: The study's objective.
    """

    task: Mapping[str, Any]
    base: str
    settings: Mapping[str, Any]
    budget: Budget
    checkpoints: str
    prepares: bool
    threads: int = 1
    goal: Goal | None = None

    def load_task(self) -> Task:
        """Build the task; the user's own modules are looked for beside the study file too."""
        if self.base not in sys.path:
            sys.path.insert(0, self.base)
        return tasks.load(self.task, Path(self.base))

    def params(self, order: ev.Launch) -> dict[str, Any]:
        """Every setting of an attempt."""
        return {**self.settings, **order.params}

    def folder(self, trial: int) -> Path | str:
        """Where a trial's checkpoints live: a path, or a URL."""
        return places.inside(self.checkpoints, places.trial_folder(trial))


@dataclass(frozen=True, slots=True)
class Unfit:
    """Word to the executor: replace this worker. It comes together with the event that ends the attempt before."""

    why: str


@dataclass
class _Control:
    """What the command thread tells the training thread about one attempt."""

    until: float
    deadline: float | None = None
    stop: bool = False
    save: bool = False
    recorded: float = 0.0
    """Up to which resource its reports are in the database."""
    changed: threading.Event = field(default_factory=threading.Event)

    def interrupts(self) -> bool:
        """Whether training should come back now; asked after every step."""
        return self.stop or (self.deadline is not None and time.monotonic() > self.deadline)


class Worker:
    """Trains attempts, one after another.

    Args:
        config: What is the same for all of them.
        fetch: Turns what `launch` was given as data into the data.
        device: The torch device attempts train on.
    """

    def __init__(self, config: WorkerConfig, fetch: Callable[[Any], Any], device: str = "cpu") -> None:
        self._config = config
        self._fetch = fetch
        self._device = device
        self._task: Task | None = None
        self._data: dict[Any, Any] = {}
        self._orders: SimpleQueue[tuple[ev.Launch, Any, _Control]] = SimpleQueue()
        self._controls: dict[tuple[int, int], _Control] = {}
        self._events: list[ev.Event | Unfit] = []
        self._news = threading.Condition()
        self._delivered: list[ev.Reported] = []
        self._retiring = False
        self._urgent = False
        threading.Thread(target=self._work, name="trials", daemon=True).start()

    # ------------------------------------------------------------------------------- orders, from another thread

    def launch(self, order: ev.Launch, data: Any) -> None:
        """Start an attempt as soon as the one before has ended. Repeating it does nothing."""
        key = (order.trial, order.attempt)
        if key in self._controls:
            return
        control = self._controls[key] = _Control(order.until, stop=self._retiring)
        self._orders.put((order, data, control))

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt train on."""
        control = self._controls.get((order.trial, order.attempt))
        if control is not None and order.until > control.until:
            control.until = order.until
            control.changed.set()

    def stop(self, order: ev.Stop) -> None:
        """End an attempt after its current step."""
        control = self._controls.get((order.trial, order.attempt))
        if control is not None:
            control.stop, control.save = True, control.save or order.save
            control.changed.set()

    def retire(self) -> None:
        """This process has been told that it will end: save what runs, and take nothing more."""
        self._retiring = True
        controls = list(self._controls.values())
        for control in controls:
            control.stop = control.save = True
            control.changed.set()
        if not controls:
            self._emit(Unfit(RETIRED), urgent=True)

    def poll(self, timeout_s: float) -> list[ev.Event | Unfit]:
        """Events since the last call, which are on record now that the next one comes; waits for the first one."""
        for event in self._delivered:
            control = self._controls.get((event.trial, event.attempt))
            if control is not None:
                control.recorded = event.resource
        with self._news:
            if self._news.wait_for(lambda: bool(self._events), timeout_s):
                self._news.wait_for(lambda: self._urgent, GATHER_S)
            events, self._events, self._urgent = self._events, [], False
        self._delivered = [event for event in events if isinstance(event, ev.Reported)]
        return events

    # ------------------------------------------------------------------------------------------------- training

    def _work(self) -> None:
        while True:
            order, data, control = self._orders.get()
            try:
                self._attempt(order, data, control)
            except BaseException:  # noqa: BLE001 - it ends the process
                traceback.print_exc()
                os._exit(1)  # a worker whose thread has died would take orders and never answer: be replaced instead
            finally:
                self._controls.pop((order.trial, order.attempt), None)

    def _attempt(self, order: ev.Launch, data: Any, control: _Control) -> None:
        """Run one attempt and tell how it ended, whatever it raises."""
        if order.time_limit_s is not None:
            control.deadline = time.monotonic() + order.time_limit_s
        runner: Runner | None = None
        ending: Ending
        before = allocated_bytes(self._device)
        try:
            if self._task is None:
                self._warm_up()
            assert self._task is not None
            memory.learn(order.known)
            runner = self._runner(order, data)
            ending = self._drive(runner, order, control)
        except BaseException as error:  # noqa: BLE001 - whatever a training job raises is that trial's failure
            failure = failure_of(_cause(error))
            ending = ev.Failed(order.trial, order.attempt, failure.kind, failure.text, details=failure.details)
        try:
            if runner is not None:
                ending = replace(ending, findings=tuple(finding.as_plain() for finding in runner.findings()))
            while runner is not None and not runner.close():
                """A slot is not free while a training function runs on in it; whoever is tired of that kills us."""
        finally:
            del runner
            if self._device != "cpu" or (isinstance(ending, ev.Failed) and ending.kind == "out_of_memory"):
                release_memory()
            self._emit(ending, *self._learned(order.known), *self._unfit(before), urgent=True)

    def _learned(self, known: memory.Facts) -> list[ev.Learned]:
        """What this process has learnt about memory beyond what it was told."""
        facts = memory.facts()
        news = {kind: fact for kind, fact in facts.items() if list(fact) != list(known.get(kind, ()))}
        return [ev.Learned(news)] if news else []

    def _unfit(self, before: int | None) -> list[Unfit]:
        """Word that this process is to end, or that GPU memory of its last attempt would be missing from the next."""
        now = allocated_bytes(self._device)
        if self._retiring:
            return [Unfit(RETIRED)]
        if before is None or now is None or now - before <= LEAK_BYTES:
            return []
        return [Unfit(f"{(now - before) >> 20} MiB of GPU memory stayed behind after its last trial")]

    def _drive(self, runner: Runner, order: ev.Launch, control: _Control) -> Ending:
        """Train to each level that is allowed, wait there for word, and return how the attempt ended."""
        trial, attempt, total = order.trial, order.attempt, self._config.budget.total
        checkpoint: str | None = None
        while not control.interrupts():
            report: Report | None = None
            for report in runner.advance(control.until, control.interrupts):
                runner.recorded(control.recorded)
                waits = control.until <= report.resource < total
                # Whoever is paused here goes on from exactly here; one that trains on need not wait for its disk.
                saved = runner.save() if waits else report.checkpoint
                checkpoint = str(saved) if saved is not None else None
                self._emit(_reported(order, report, checkpoint), urgent=waits)
            if runner.finished is not None:
                return ev.Finished(trial, attempt, runner.finished, _best_in(self._config.folder(trial)))
            if report is None or report.resource < control.until:
                break  # interrupted between reports
            if report.resource >= total:
                control.until = math.inf  # its last report is out: let it come to its own end
            while control.until <= report.resource and not control.stop:
                control.changed.wait()
                control.changed.clear()
        if not control.stop:
            return ev.Failed(trial, attempt, "timeout", f"ran past its time limit of {order.time_limit_s:g} s")
        if control.save and (saved := runner.save()) is not None:
            checkpoint = str(saved)
        return ev.Stopped(trial, attempt, checkpoint=checkpoint, why=RETIRED if self._retiring else None)

    def _runner(self, order: ev.Launch, data: Any) -> Runner:
        """The attempt, continued where it can be: a trial whose checkpoints are all damaged starts afresh."""
        assert self._task is not None
        setup, data = self._setup(order), self._prepared(order, data)
        try:
            return Runner(self._task, data, setup)
        except CheckpointError as damage:
            log.warning("trial %d starts afresh: %s", order.trial, damage)
            return Runner(self._task, data, replace(setup, resume_from=None))

    def _warm_up(self) -> None:
        self._task = self._config.load_task()
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(self._config.threads)

    def _prepared(self, order: ev.Launch, data: Any) -> Any:
        if not self._config.prepares:
            return None
        assert self._task is not None
        key = self._task.data_key(self._config.params(order))
        if key not in self._data:
            while len(self._data) >= KEPT_DATA:
                del self._data[next(iter(self._data))]
            self._data[key] = self._fetch(data)
        return self._data[key]

    def _setup(self, order: ev.Launch) -> Setup:
        return Setup(
            params=self._config.params(order),
            seed=order.seed,
            budget=self._config.budget,
            folder=self._config.folder(order.trial),
            resume_from=order.resume_from or None,
            device=self._device,
            goal=self._config.goal,
        )

    def _emit(self, *events: ev.Event | Unfit, urgent: bool) -> None:
        with self._news:
            self._events += events
            self._urgent |= urgent
            self._news.notify_all()


def _reported(order: ev.Launch, report: Report, checkpoint: str | None) -> ev.Reported:
    return ev.Reported(
        order.trial,
        order.attempt,
        report.resource,
        dict(report.metrics),
        report.step,
        report.elapsed,
        checkpoint,
    )


def _best_in(folder: Path | str) -> str | None:
    best = Checkpoints(folder).best
    return str(best) if best is not None else None


def _cause(error: BaseException) -> BaseException:
    """What a remote task really raised, out of its wrapping."""
    cause = getattr(error, "cause", None)
    return cause if isinstance(cause, BaseException) else error
