"""One race: a contender spends a budget on a task, on a virtual clock, and every percent is looked at what it has.

Peers run here, through their own ask-and-tell interfaces; hpsearch runs in its own driver and simulated executor. Both
see the same curves, pay the same seconds, report at the same levels and may go on with a paused trial from where it
was, at no cost.

What is handed out at a moment is what a method would recommend then. For hpsearch it is the first of
`hpsearch.selection.rank`, which is what `hpsearch best` prints. For all peers it is the configuration with the best
value reported so far, at whatever resource; this is Syne Tune's rule, and kinder to Optuna than its own, which knows no
best trial before one is complete. It is judged by its own final value: (value - best) / (median - best), at most 1, and
1 as long as there is none. Best-seen is the same for the best value that has been reported, at whatever resource.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from curves import METRIC, Task
from hpsearch.executors.simulated import Curves
from hpsearch.rungs import Verdict
from trials.contract import Diverged

FULL_TRIALS = 40
"""The budget, in mean full trials over all workers together."""

MARKS = 100
"""How often a race is looked at, at equal distances; the last time at its end."""


@dataclass(frozen=True)
class Job:
    """A trial to start, or to go on with where it was paused."""

    trial: int
    params: dict[str, Any]


class Contender(Protocol):
    """A method by its ask-and-tell interface. Values are minimised."""

    def ask(self) -> Job | None:
        """What a free worker does; None if nothing until something else happens."""

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """A running trial has a value at a resource below the full budget."""

    def finish(self, trial: int, resource: int, value: float) -> None:
        """A trial has its last value: at the full budget, or where it diverged."""


@dataclass
class Result:
    """How a contender did on a task with a seed."""

    method: str
    task: str
    family: str
    seed: int
    workers: int
    metric: str
    """Of LCBench."""
    regret: list[float] = field(default_factory=list)
    """Of the configuration handed out, at each mark."""
    seen: list[float] = field(default_factory=list)
    """Of the best value reported, at each mark."""
    decisions: int = 0
    """How often a free worker was given work."""
    deciding_s: float = 0.0
    """Seconds of processor time spent in the method's own code."""
    trials: int = 0


class Judge:
    """Knows what a configuration is worth in the end."""

    def __init__(self, task: Task, curves: Curves) -> None:
        self._task = task
        self._curves = curves

    def regret(self, value: float) -> float:
        """The normalised regret of a value, at most 1."""
        return min(1.0, (value - self._task.best) / (self._task.median - self._task.best))

    def of(self, params: dict[str, Any] | None) -> float:
        """The normalised regret of a configuration by its own final value; 1 where there is none."""
        return 1.0 if params is None else self.regret(self.value(params, self._task.total)[0])

    def value(self, params: dict[str, Any], level: int) -> tuple[float, bool]:
        """What a configuration measures at a level, and whether it has diverged there."""
        try:
            return self._curves.measure(params, 0, level)[METRIC], False
        except Diverged:
            return self._task.penalty, True


def moments(task: Task, workers: int) -> list[float]:
    """The times at which a race is looked at, the last one its end."""
    end = FULL_TRIALS * task.full_seconds / workers
    return [end * (i + 1) / MARKS for i in range(MARKS)]


@dataclass(order=True)
class _Report:
    """A report that will come."""

    time: float
    order: int
    job: Job = field(compare=False)
    level: int = field(compare=False)


class Race:
    """A peer on the virtual clock."""

    def __init__(self, contender: Contender, task: Task, workers: int, result: Result) -> None:
        self._contender = contender
        self._task = task
        self._curves = task.curves()
        self._judge = Judge(task, self._curves)
        self._result = result
        self._free = workers
        self._coming: list[_Report] = []
        self._order = 0
        self._now = 0.0
        self._reached: dict[int, int] = {}
        self._best: tuple[float, dict[str, Any] | None] = (math.inf, None)

    def run(self, looks: list[float]) -> Result:
        """Race until the last of the moments to look at."""
        self._fill()
        for moment in looks:
            while self._coming and self._coming[0].time <= moment:
                self._happen(heapq.heappop(self._coming))
                self._fill()
            value, params = self._best
            self._result.regret.append(self._judge.of(params))
            self._result.seen.append(self._judge.regret(value))
        self._result.trials = len(self._reached)
        return self._result

    def _fill(self) -> None:
        """Give free workers work, as long as the contender has any."""
        while self._free:
            began = time.process_time()
            job = self._contender.ask()
            self._result.deciding_s += time.process_time() - began
            if job is None:
                return
            self._result.decisions += 1
            self._free -= 1
            self._train(job)

    def _train(self, job: Job) -> None:
        before = self._reached.setdefault(job.trial, 0)
        needed = self._curves.seconds(job.params, before + 1) - self._curves.seconds(job.params, before)
        self._order += 1
        heapq.heappush(self._coming, _Report(self._now + needed, self._order, job, before + 1))

    def _happen(self, report: _Report) -> None:
        self._now = report.time
        job = report.job
        value, diverged = self._judge.value(job.params, report.level)
        self._reached[job.trial] = report.level
        if value < self._best[0]:
            self._best = (value, job.params)
        began = time.process_time()
        over = diverged or report.level == self._task.total
        if over:
            self._contender.finish(job.trial, report.level, value)
        else:
            over = self._contender.report(job.trial, report.level, value) is not Verdict.CONTINUE
        self._result.deciding_s += time.process_time() - began
        if over:
            self._free += 1
        else:
            self._train(job)
