"""One race: a contender spends a budget on a task, and is judged at every percent.

Races run on a virtual clock. Peers run here, through their own ask-and-tell interfaces; hpsearch
runs in its own driver and simulated executor. Both see the same curves, pay the same seconds,
report at the same levels, and may continue a paused trial from where it was, at no cost.

At each moment, a method recommends a configuration. For hpsearch that is the first of
`hpsearch.search.ranking.selection.rank`, which is what `hpsearch best` prints. For all peers it is
the configuration with the best value reported so far, at any resource. This is Syne Tune's rule. It
favours Optuna, whose own rule has no best trial before one is complete. Where curves turn upwards
again it flatters early values, so peers are judged a second time by the configuration whose newest
value is the best, and those with a rule of their own a third time by theirs. hpsearch is judged by
the best value it has shown too, so that one rule judges all.

A peer is not told the budget, so that one race of it gives the results of several budgets.

The recommendation is judged by its own final value: (value - best) / (median - best), at most 1,
and 1 as long as there is no recommendation.
"""

import heapq
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from hpsearch.search.rungs import Verdict
from races.curves import METRIC, Task
from simulation.running import Curves
from trials.contract import Diverged

FULL_TRIALS = 40
"""The budget of a race that names none."""

MARKS = 100
"""How many moments of a race are judged, at equal intervals; the last is its end."""


@dataclass(frozen=True)
class Terms:
    """What every method in a race gets."""

    trials: int = FULL_TRIALS
    """The budget, in mean full trials over all workers together."""
    workers: int = 8
    """How many trials run in parallel."""


@dataclass(frozen=True)
class Job:
    """A trial to start, or to continue from where it was paused."""

    trial: int
    params: dict[str, Any]


class Contender(Protocol):
    """A method with an ask-and-tell interface. Values are minimised."""

    def ask(self) -> Job | None:
        """The next job for a free worker; None to wait until something else happens."""

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """Take the value of a running trial at a resource below the full budget."""

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Take the last value of a trial: at the full budget, or where it diverged."""


@runtime_checkable
class Recommending(Protocol):
    """A contender with a rule of its own."""

    def recommended(self) -> Mapping[str, Any] | None:
        """The configuration that it hands out."""


@dataclass
class Result:
    """The result of a contender on a task with a seed."""

    method: str
    task: str
    family: str
    seed: int
    workers: int
    regret: list[float] = field(default_factory=list)
    """The regret of the recommended configuration, at each mark."""
    latest: list[float] = field(default_factory=list)
    """The regret of the configuration with the best newest value, at each mark; of peers."""
    own: list[float] = field(default_factory=list)
    """The regret of what a peer hands out by a rule of its own, at each mark, if it has one."""
    shown: list[float] = field(default_factory=list)
    """The regret of the configuration with the best value shown, at each mark; of hpsearch."""
    decisions: int = 0
    """How often a free worker got a job."""
    deciding_s: float = 0.0
    """Seconds of processor time spent in the method's own code."""
    trials: int = 0
    """How many trials were started."""
    budget: int = FULL_TRIALS
    """The budget, in mean full trials over all workers together."""

    @property
    def terms(self) -> Terms:
        """The budget and the number of workers."""
        return Terms(self.budget, self.workers)


class Judge:
    """Knows the final value of each configuration."""

    def __init__(self, task: Task, curves: Curves) -> None:
        self._task = task
        self._curves = curves

    def regret(self, value: float) -> float:
        """The normalised regret of a value, at most 1."""
        return min(1.0, (value - self._task.best) / (self._task.median - self._task.best))

    def of(self, params: Mapping[str, Any] | None) -> float:
        """The normalised regret of a configuration by its own final value; 1 for None."""
        return 1.0 if params is None else self.regret(self.value(params, self._task.total)[0])

    def value(self, params: Mapping[str, Any], level: int) -> tuple[float, bool]:
        """The value of a configuration at a level, and whether it has diverged there."""
        try:
            return self._curves.measure(params, 0, level)[METRIC], False
        except Diverged:
            return self._task.penalty, True


def moments(task: Task, terms: Terms) -> list[float]:
    """The moments at which a race is judged; the last one is its end."""
    end = terms.trials * task.full_seconds / terms.workers
    return [end * (i + 1) / MARKS for i in range(MARKS)]


@dataclass(order=True)
class _Report:
    """A report that will happen at a later time."""

    time: float
    order: int
    job: Job = field(compare=False)
    level: int = field(compare=False)


class Race:
    """Runs a peer on the virtual clock, once for results that differ in the budget alone."""

    def __init__(self, contender: Contender, task: Task, *results: Result) -> None:
        self._contender = contender
        self._task = task
        self._curves = task.curves()
        self._judge = Judge(task, self._curves)
        self._results = results
        self._free = results[0].workers
        self._coming: list[_Report] = []
        self._order = 0
        self._now = 0.0
        self._decisions = 0
        self._deciding_s = 0.0
        self._reached: dict[int, int] = {}
        self._best: tuple[float, dict[str, Any] | None] = (math.inf, None)
        self._newest: dict[int, tuple[float, dict[str, Any]]] = {}
        """By trial, its newest value and its configuration."""

    def run(self, looks: list[float] | None = None) -> Sequence[Result]:
        """Race until the last of these moments; without any, over the results' whole budgets."""
        due = [
            (moment, place)
            for place, result in enumerate(self._results)
            for moment in looks or moments(self._task, result.terms)
        ]
        self._fill()
        for moment, place in sorted(due):
            while self._coming and self._coming[0].time <= moment:
                self._happen(heapq.heappop(self._coming))
                self._fill()
            self._look(self._results[place])
        return self._results

    def _look(self, result: Result) -> None:
        result.regret.append(self._judge.of(self._best[1]))
        result.latest.append(self._judge.of(self._best_newest()))
        if isinstance(self._contender, Recommending):
            result.own.append(self._judge.of(self._contender.recommended()))
        result.decisions = self._decisions
        result.deciding_s = self._deciding_s
        result.trials = len(self._reached)

    def _best_newest(self) -> dict[str, Any] | None:
        """The configuration of the trial whose newest value is the best."""
        _, params = min(self._newest.values(), key=lambda each: each[0], default=(math.inf, None))
        return params

    def _fill(self) -> None:
        """Give jobs to free workers, as long as the contender has any."""
        while self._free:
            began = time.process_time()
            job = self._contender.ask()
            self._deciding_s += time.process_time() - began
            if job is None:
                return
            self._decisions += 1
            self._free -= 1
            self._train(job)

    def _train(self, job: Job) -> None:
        before = self._reached.setdefault(job.trial, 0)
        needed = self._curves.seconds(job.params, before + 1) - self._curves.seconds(
            job.params, before
        )
        self._order += 1
        heapq.heappush(self._coming, _Report(self._now + needed, self._order, job, before + 1))

    def _happen(self, report: _Report) -> None:
        self._now = report.time
        job = report.job
        value, diverged = self._judge.value(job.params, report.level)
        self._reached[job.trial] = report.level
        self._newest[job.trial] = value, job.params
        if value < self._best[0]:
            self._best = (value, job.params)
        began = time.process_time()
        over = diverged or report.level == self._task.total
        if over:
            self._contender.finish(job.trial, report.level, value)
        else:
            over = self._contender.report(job.trial, report.level, value) is not Verdict.CONTINUE
        self._deciding_s += time.process_time() - began
        if over:
            self._free += 1
        else:
            self._train(job)
