"""Trains a trial again, in the parts that it was trained in, in this process and without Ray."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpsearch.brain.trial_log import with_later
from hpsearch.running.reproduction.recorded import RecordedTraining
from trials.contract import Failure, Note, Report, Setup, Task
from trials.running.runner import Runner, failure_of


@dataclass(frozen=True)
class Job:
    """A training to repeat."""

    task: Task
    data: Any
    """Prepared by the task."""
    setup: Setup
    """The setup of its first part, but for the folder."""
    recorded: RecordedTraining
    problem_with: Callable[[Report], str | None]
    """Finds a fault of a report, in a sentence; None if there is none."""
    should_stop: Callable[[], bool]
    """Called after every step."""


@dataclass
class Repeated:
    """The end of a repeated training."""

    finished: str | None = None
    """The reason why it ended by itself; None if it did not."""
    failure: Failure | None = None
    interrupted: bool = False
    """True if it was asked to stop."""
    unpaused: tuple[float, ...] = ()
    """The resources at which it should have been paused, but had no checkpoint."""


def train(job: Job, outcome: Repeated) -> Generator[Report, None, None]:
    """Train, yield the reports, and write the end into `outcome`; the files are removed.

    A report of the full budget comes when the training has ended, with later measurements. As in a
    study, a training that fails after that has its result.
    """
    last: Report | None = None

    def add_later(note: Note) -> None:
        nonlocal last
        if last is not None:
            last = replace(last, metrics=with_later(last.metrics, note.metrics))

    with tempfile.TemporaryDirectory(prefix="hpsearch-repeat-") as folder:
        setup = replace(job.setup, folder=Path(folder) / "trial")
        try:
            for report in _train_parts(job, setup, outcome, add_later):
                problem = job.problem_with(report)
                if problem is not None:
                    outcome.failure = Failure("error", problem)
                    return
                if report.resource < setup.budget.total:
                    yield report
                else:
                    last = report
        except Exception as error:  # noqa: BLE001 - any error of the job is its trial's failure
            failure = failure_of(error)
            if last is None:
                outcome.failure = failure
            else:
                outcome.finished = failure.text
        if last is not None:
            yield last


def _train_parts(
    job: Job, setup: Setup, outcome: Repeated, note: Callable[[Note], None]
) -> Iterator[Report]:
    pauses = [*job.recorded.parts[1:], math.inf]
    runner = Runner(job.task, job.data, setup, note=note)
    try:
        for number, pause in enumerate(pauses, start=2):
            yield from _advance(runner, min(pause, _end(job.recorded)), job.should_stop)
            outcome.finished = runner.finished
            outcome.interrupted = job.should_stop()
            if outcome.finished or outcome.interrupted or pause == math.inf:
                return
            checkpoint = runner.save()
            if checkpoint is None:
                outcome.unpaused += (pause,)
                continue
            _close(runner)
            setup = replace(setup, resume_from=checkpoint, attempt=number)
            runner = Runner(job.task, job.data, setup, note=note)
    finally:
        _close(runner)


def _end(recorded: RecordedTraining) -> float:
    """The resource to train up to; further for a trial that must end by itself, so that another
    report would show that it does not."""
    return math.nextafter(recorded.end, math.inf) if recorded.must_end else recorded.end


def _advance(runner: Runner, until: float, should_stop: Callable[[], bool]) -> Iterator[Report]:
    for report in runner.advance(until, should_stop):
        yield report
        runner.recorded(report.resource)


def _close(runner: Runner) -> None:
    while not runner.close():
        pass
