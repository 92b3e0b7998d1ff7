"""Driving a run: advance it to a level, save it, close it, and classify its failure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from trials.checkpoints.disk.whole_folders import is_disk_full
from trials.contract import (
    Asking,
    Diverged,
    Failure,
    Finding,
    Note,
    ProcessEnded,
    ProgramFailed,
    Question,
    Report,
    Setup,
    Task,
    TaskError,
    TrainingFailed,
)
from trials.devices.memory import is_out_of_memory
from trials.foreign import in_words, text_of, traceback_of
from trials.running.reported import note_of_samples, numbers_of, plain_note

Ask = Callable[[Question], Mapping[str, Any]]
"""Draws a value, and returns all known values by name; without the new one, the run stops."""


def nobody_to_ask(question: Question) -> Mapping[str, Any]:
    """An `Ask` outside of a study, where nothing draws values: raises TaskError."""
    what = f"asks for {question.name!r}, which has no value here; only a study draws values"
    raise TaskError.at("task.kind", what)


class Runner:
    def __init__(
        self,
        task: Task,
        data: Any,
        setup: Setup,
        ask: Ask = nobody_to_ask,
        note: Callable[[Note], None] = lambda note: None,
    ) -> None:
        self._run = task.start(setup, data)
        self._iterator = iter(self._run)
        self._ask = ask
        self._note = note
        self._goals = [goal.metric for goal in setup.objectives]
        self._was_finite = False

    @property
    def finished(self) -> str | None:
        return self._run.finished

    def advance(
        self, until: float, should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Report]:
        """Continue training, and yield the reports. Ends after a report at or past `until`, after a
        step if `should_stop` is true, or when the run has finished. Raises the errors of the run,
        and Diverged after a report whose objectives are not finite, where they have been."""
        for item in self._iterator:
            if isinstance(item, Question):
                if not self._settled(item):
                    return
            elif isinstance(item, Note):
                self._note(plain_note(item))
            elif item is not None:
                if item.samples:
                    self._note(note_of_samples(item.samples))
                report = replace(item, metrics=numbers_of(item.metrics), samples=None)
                yield report
                self._refuse_divergence(report)
                if item.resource >= until:
                    return
            if should_stop():
                return

    def _settled(self, question: Question) -> bool:
        values = self._ask(question)
        if question.name not in values:
            return False
        cast(Asking, self._run).give(values[question.name])
        return True

    def _refuse_divergence(self, report: Report) -> None:
        found = {name: report.metrics[name] for name in self._goals if name in report.metrics}
        for name, value in found.items():
            if self._was_finite and not math.isfinite(value):
                raise Diverged(f"{name} became {value} at {report.resource:g}, after finite values")
        self._was_finite |= bool(found) and all(map(math.isfinite, found.values()))

    def save(self) -> Path | str | None:
        return self._run.save()

    @property
    def best(self) -> Path | str | None:
        return self._run.best

    def recorded(self, resource: float) -> None:
        self._run.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        return self._run.findings()

    def close(self) -> bool:
        return self._run.close()


def failure_of(error: BaseException) -> Failure:
    """The failure of a run by its error: diverged, out_of_memory, disk_full or error."""
    error = _cause(error)
    if isinstance(error, TrainingFailed):
        return error.failure
    if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
        error = error.__cause__  # Python raises the other one where a generator lets it out
    details = traceback_of(error)
    try:
        if isinstance(error, Diverged):
            return Failure("diverged", text_of(error), details)
        if isinstance(error, TaskError):
            return Failure("error", text_of(error), details)
        if isinstance(error, ProcessEnded):
            return Failure("out_of_memory" if error.is_out_of_memory else "error", text_of(error))
        if isinstance(error, ProgramFailed):
            last_lines = RuntimeError(f"{error}\n{error.details}")
            return Failure(_kind_of(last_lines), text_of(error), error.details)
        kind = _kind_of(error)
    except Exception:  # noqa: BLE001 - of an attribute of theirs, such as `__class__`
        kind = "error"
    words = in_words(error)
    return Failure(kind, words if kind == "error" else words.splitlines()[0], details)


def _cause(error: BaseException) -> BaseException:
    with suppress(Exception):  # of an attribute of theirs
        cause = getattr(error, "cause", None)  # as Ray's have it
        if isinstance(cause, BaseException):
            return cause
    return error


def _kind_of(error: BaseException) -> str:
    if is_out_of_memory(error):
        return "out_of_memory"
    return "disk_full" if is_disk_full(error) else "error"
