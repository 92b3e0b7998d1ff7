"""What a worker uses to drive a run: advance it to a level, save it, close it, and say how it
failed."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from trials.contract import (
    Asking,
    Diagnosed,
    Diverged,
    Failure,
    Finding,
    Note,
    ProgramFailed,
    Question,
    Report,
    Setup,
    Task,
    TaskError,
)
from trials.devices.memory import is_out_of_memory
from trials.disk.whole_folders import is_disk_full

Ask = Callable[[Question], Mapping[str, Any]]
"""Gives the values that are known of a trial once a question is settled, by name. It has none of
that name where the run is to stop."""


def nobody_to_ask(question: Question) -> Mapping[str, Any]:
    """An `Ask` outside of a study, where nothing draws values.

    Raises:
        TaskError: Always.
    """
    what = f"asks for {question.name!r}, which has no value here; only a study draws values"
    raise TaskError.at("task.kind", what)


def take_no_note(note: Note) -> None:
    """Takes notes outside of a study, where nobody reads them."""


class Runner:
    """One attempt of a trial, in the hands of a worker."""

    def __init__(
        self,
        task: Task,
        data: Any,
        setup: Setup,
        ask: Ask = nobody_to_ask,
        note: Callable[[Note], None] = take_no_note,
    ) -> None:
        self._run = task.start(setup, data)
        self._iterator = iter(self._run)
        self._ask = ask
        self._note = note

    @property
    def finished(self) -> str | None:
        """Why the run ended by itself; None while it could continue."""
        return self._run.finished

    def advance(
        self, until: float, should_stop: Callable[[], bool] = lambda: False
    ) -> Iterator[Report]:
        """Continue training, and yield the reports.

        Ends after a report at or past `until`, when `should_stop` answers true (asked after every
        step), or when the run has finished. Whatever the run raises comes through.
        """
        for item in self._iterator:
            if isinstance(item, Question):
                if not self._settled(item):
                    return
            elif isinstance(item, Note):
                self._note(item)
            elif item is not None:
                yield item
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

    def save(self) -> Path | str | None:
        """Write a checkpoint of this moment; None if the task cannot."""
        return self._run.save()

    @property
    def best(self) -> Path | str | None:
        """Of the checkpoints that are whole by now, the one of the best report; None if the task
        keeps none."""
        return self._run.best

    def recorded(self, resource: float) -> None:
        """The reports up to `resource` are on record: checkpoints from before may go."""
        self._run.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        """What the run's course shows of its health; empty if it does not know."""
        return self._run.findings() if isinstance(self._run, Diagnosed) else ()

    def close(self) -> bool:
        """Release memory, files and threads. False while code of the run is still running: call it
        again."""
        return self._run.close()


def failure_of(error: BaseException) -> Failure:
    """How a run failed, from what it raised: diverged, out_of_memory, disk_full or error."""
    details = "".join(traceback.format_exception(error))
    text = traceback.format_exception_only(error)[-1].strip()
    if isinstance(error, Diverged):
        return Failure("diverged", str(error), details)
    if isinstance(error, TaskError):
        # A mistake in the study file or the data: the message says what is wrong.
        return Failure("error", str(error), details)
    if isinstance(error, ProgramFailed):
        return _of_program(error)
    first_line = text.splitlines()[0]
    if is_out_of_memory(error):
        return Failure("out_of_memory", first_line, details)
    if is_disk_full(error):
        return Failure("disk_full", first_line, details)
    return Failure("error", text, details)


def _of_program(error: ProgramFailed) -> Failure:
    """How another program failed, judged by its last lines."""
    text = str(error)
    last_words = RuntimeError(f"{text}\n{error.details}")
    if is_out_of_memory(last_words):
        return Failure("out_of_memory", text, error.details)
    if is_disk_full(last_words):
        return Failure("disk_full", text, error.details)
    return Failure("error", text, error.details)
