"""A trial that is trained again in the same parts, without Ray, and compared with its record."""

import math
import re
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hpsearch.brain.trial_log import with_later
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import THINNED
from hpsearch.store.reading.queries import TrialDetail
from trials.contract import Failure, Note, Report, Setup, Task
from trials.running.runner import Runner, failure_of

OF_THE_MACHINE = (ErrorKind.TIMEOUT, ErrorKind.DISK_FULL, ErrorKind.LOST)
"""Failures that another training of the same configuration need not have."""


OF_THE_RUN = re.compile(
    r"(runtime|_per_second|seconds|_time|time_s|_bytes|_joules|utilization|\bmfu)$"
)
"""The end of the names of metrics of time, memory or energy, which differ between any trainings."""

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")


@dataclass(frozen=True)
class RecordedTraining:
    """The training of a trial."""

    parts: tuple[float, ...]
    """The resources at which it was continued from a checkpoint, rising; the first is 0."""
    end: float  # the resource of its last report
    reports: Mapping[float, Mapping[str, float]]  # metrics, by resource
    must_end: bool  # true if it ended by itself there: it used its budget, stopped early or failed
    error: tuple[ErrorKind, str] | None
    """The kind and the text of its failure; None if it did not fail, or the machine did."""
    thinned: bool = False  # true if reports before its end are no longer on record


def recorded_training(detail: TrialDetail) -> RecordedTraining:
    """The training of a trial, without lost parts."""
    trial = detail.trial
    reports = {float(each["resource"]): each["metrics"] for each in detail.reports}
    end = max(reports, default=0.0)
    error = None
    if trial.state is State.FAILED and trial.error_kind not in (None, *OF_THE_MACHINE):
        error = trial.error_kind, trial.error_text or ""
    return RecordedTraining(
        parts=tuple(start for start in _parts(detail.attempts) if start < end or start == 0.0),
        end=end,
        reports=reports,
        must_end=trial.state is State.COMPLETE or error is not None,
        error=error,
        thinned=THINNED in trial.system_attrs,
    )


def _parts(attempts: Sequence[Mapping[str, Any]]) -> list[float]:
    """The resources at which the trial was continued. An attempt that continues from before another
    one's beginning replaces it."""
    parts: list[float] = []
    for each in attempts:
        if each["arithmetic"] is None:
            continue  # it never came to train
        start = float(each["start_resource"])
        while parts and parts[-1] >= start:
            parts.pop()
        parts.append(start)
    if not parts or parts[0] != 0.0:
        parts.insert(0, 0.0)
    return [start for start in parts if math.isfinite(start)]


@dataclass(frozen=True)
class Job:
    """A training to repeat."""

    task: Task
    data: Any  # prepared by the task
    setup: Setup  # the setup of its first part, but for the folder
    recorded: RecordedTraining
    problem_with: Callable[[Report], str | None]
    """Finds a fault of a report, in a sentence; None if there is none."""
    should_stop: Callable[[], bool]  # called after every step


@dataclass
class Repeated:
    """The end of a repeated training."""

    finished: str | None = None  # the reason why it ended by itself; None if it did not
    failure: Failure | None = None
    interrupted: bool = False  # true if it was asked to stop
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


class Comparison:
    """Compares a repetition with the trial's record, report by report."""

    def __init__(self, recorded: RecordedTraining) -> None:
        self._recorded = recorded
        self._reached: set[float] = set()
        self.difference: str | None = None
        """The first difference, for people; None while there is none."""
        self.reports = 0  # the number of reports that were the same

    def add(self, report: Report) -> None:
        """Compare a report."""
        at = report.resource
        self._reached.add(at)
        before = self._recorded.reports.get(at)
        if before is None and self._recorded.thinned and at < self._recorded.end:
            return
        if before is None:
            what = "the trial had ended before" if at > self._recorded.end else "it has none there"
            self._differ(f"at {at:g}: {what}")
            return
        for name in {**before, **report.metrics}:
            was, now = before.get(name), report.metrics.get(name)
            if OF_THE_RUN.search(name) is None and not _is_same(was, now):
                self._differ(f"at {at:g}: {_difference(name, was, now)}")
                return
        self.reports += 1

    def end(self, repeated: Repeated) -> None:
        """Compare the end, and look for missing reports."""
        missing = sorted(set(self._recorded.reports) - self._reached)
        if missing:
            self._differ(f"at {missing[0]:g}: it was not reported this time")
        ending = self._ending(repeated)
        if ending is not None:
            self._differ(f"in its end: {ending}")

    def _differ(self, what: str) -> None:
        self.difference = self.difference or what

    def _ending(self, repeated: Repeated) -> str | None:
        failure, error = repeated.failure, self._recorded.error
        if failure is None and error is not None:
            return f"the trial failed ({error[0].value}: {error[1]}), and this did not"
        if failure is None:
            is_longer = self._recorded.must_end and repeated.finished is None
            return "the trial ended here by itself, and this did not" if is_longer else None
        now = f"{failure.kind}: {failure.text}"
        if error is None:
            return f"this failed ({now}), and the trial did not"
        kind, text = error
        if failure.kind == kind.value and _plain(failure.text) == _plain(text):
            return None
        return f"the trial failed with {kind.value}: {text} - and this with {now}"


def _difference(metric: str, recorded: float | None, now: float | None) -> str:
    if recorded is None or now is None:
        return f"{metric} is missing {'now' if now is None else 'on record'}"
    return f"{metric} {now!r} instead of {recorded!r}"


def _is_same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or (math.isnan(one) and math.isnan(other))


def _plain(text: str) -> str:
    """The text of an error without addresses in memory, which differ each time."""
    return _ADDRESS.sub("0x", text).strip()
