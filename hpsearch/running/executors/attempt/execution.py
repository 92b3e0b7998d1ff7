"""One attempt on a worker: its beginning, its training from level to level, and its end."""

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hpsearch.domain import events as ev
from hpsearch.domain.facts import ErrorKind
from hpsearch.running.executors import worker_process
from hpsearch.running.executors.attempt.thinning import Thinning
from hpsearch.running.executors.worker_config import WorkerState
from trials.checkpoints.disk.log_file import LogFile
from trials.checkpoints.manifests import CheckpointError
from trials.checkpoints.trimming import sizes_of
from trials.contract import (
    CheckpointSizes,
    Finding,
    Note,
    ProcessEnded,
    Pruned,
    Question,
    Ranks,
    Report,
    Setup,
    Severity,
)
from trials.foreign import text_of
from trials.running import arithmetic
from trials.running.arithmetic import Arithmetic
from trials.running.runner import Runner, failure_of

RETIRED = "told to end (SIGTERM)"
Ending = ev.Finished | ev.Stopped | ev.Failed
Message = ev.Reported | ev.Queried | ev.Noted  # what an attempt says while it trains

log = logging.getLogger("hpsearch")


@dataclass
class Control:
    """The orders of the command thread to the training thread about one attempt."""

    until: float
    ordered: float = field(default_factory=time.monotonic)
    """The time at which the attempt was ordered, by the monotonic clock."""
    deadline: float | None = None
    stop: bool = False
    save: bool = False
    retired: bool = False  # true if the whole process is to end
    signalled: bool = False  # true if that is by a SIGTERM
    recorded: float = 0.0  # up to which resource its reports are in the database
    given: dict[str, Any] = field(default_factory=dict)
    """The parameters that it has asked for, as far as they are known."""
    changed: threading.Event = field(default_factory=threading.Event)

    def limit(self, seconds: float | None) -> None:
        """Let the attempt train for so many seconds from now on; None for no limit."""
        if seconds is not None:
            self.deadline = time.monotonic() + seconds

    def interrupts(self) -> bool:
        """True if training should return now; asked after every step."""
        return self.stop or (self.deadline is not None and time.monotonic() > self.deadline)

    def wait_to_advance(self, resource: float) -> None:
        """Wait at a level until the attempt may train beyond it, or must stop."""
        self._wait(lambda: self.until > resource)

    def wait_for_value(self, name: str) -> None:
        """Wait until a parameter has its value, or the attempt must stop."""
        self._wait(lambda: name in self.given)

    def _wait(self, may_go_on: Callable[[], bool]) -> None:
        began = time.monotonic()
        while not may_go_on() and not self.stop:
            self.changed.wait()
            self.changed.clear()
        waited_s = time.monotonic() - began
        if self.deadline is not None:
            self.deadline += waited_s


@dataclass
class Execution:
    """One attempt, from its order to its end."""

    state: WorkerState
    order: ev.Launch
    control: Control
    began: Callable[[ev.Began], None]
    """Called with the arithmetic of the attempt, and again once it can train, with the seconds of
    its start."""
    said: Callable[[Message, bool], None]
    """Called with each report, question and note, and whether the attempt waits for an answer."""
    log: LogFile | None
    ranks: Ranks | None  # the processes that train it together; None for this one alone
    reached: float | None = None
    """The resource of the last report that was sent; None before the first one."""
    before: frozenset[int] | None = None
    """The processes that its own had started before it began to train; None until it has."""

    def __post_init__(self) -> None:
        self._config = self.state.config
        self._key = self.order.trial, self.order.attempt
        self._thinning = Thinning(self._config.budget)
        self._runner: Runner | None = None
        self._changes: list[Finding] = []
        """In what its arithmetic differs from how its trial has computed so far."""

    def run(self, given: Any) -> Ending:
        """Train, and return the ending of the attempt, whatever it raises. `given` is the data that
        came with the order, see `WorkerState.data_for`. Raises ProcessEnded if the attempt is lost
        with a process that has trained it."""
        ending = self._trained(given)
        self._send_rest()
        return ending

    def _send(self, report: ev.Reported, *, waits: bool) -> None:
        self.reached = report.resource
        self.said(report, waits)

    def _send_rest(self) -> None:
        last = self._thinning.rest()
        if last is not None:
            self._send(last, waits=False)

    def _trained(self, given: Any) -> Ending:
        try:
            self.state.make_ready(self.order)
            params, began = self._adopt_arithmetic()
            self.began(began)
            self._runner = self._start(params, given)
            self.began(replace(began, start_up_s=time.monotonic() - self.control.ordered))
            self.before = worker_process.started()
            return self._drive(self._runner)
        except Pruned as verdict:
            assert self._runner is not None, "only a run gives itself up"
            return replace(self._finished(self._runner, text_of(verdict)), pruned=True)
        # What a training job raises is its trial's failure.
        except BaseException as error:
            if isinstance(error, ProcessEnded) and error.is_lost:
                raise
            failure = failure_of(error)
            kind = ErrorKind(failure.kind)
            return ev.Failed(*self._key, kind, failure.text, details=failure.details)

    def end_run(self, ending: Ending) -> Ending:
        """End the run. Returns its ending with the findings on its health, and the best checkpoint,
        which is whole by now. A slot is not free while its training still runs."""
        runner = self._runner
        if runner is None:
            return ending
        while not runner.close():
            pass
        findings = (*self._changes, *self._thinning.findings(), *runner.findings())
        ending = replace(ending, findings=findings)
        if not isinstance(ending, ev.Stopped):
            return ending
        with suppress(Exception):  # a store that does not answer: the last report named the best
            best = runner.best
            return replace(ending, best=_text(best), sizes=_sizes(ending.checkpoint, best))
        return ending

    def _adopt_arithmetic(self) -> tuple[dict[str, Any], ev.Began]:
        given = self.order.arithmetic
        before = None if given is None else Arithmetic.from_plain(given)
        settings, now = arithmetic.adopt(
            before,
            self._config.params(self.order),
            self.state.device,
            threads=self._config.threads,
            known=self.state.task.settings,
        )
        changes = [] if before is None else arithmetic.differences(before, now)
        if changes:
            text = f"continued with {', '.join(changes)}"
            self._changes = [Finding("arithmetic_changed", text, Severity.NOTICE)]
        return settings, ev.Began(*self._key, now.as_plain())

    def _start(self, params: Mapping[str, Any], given: Any) -> Runner:
        """The run, continued where that is possible: not if all its checkpoints are damaged."""
        order = self.order
        setup = Setup(
            params=params,
            seed=order.seed,
            budget=self._config.budget,
            folder=self._config.folder(order.trial),
            resume_from=order.resume_from or None,
            device=self.state.device,
            goal=self._config.goal,
            attempt=order.attempt,
            log=None if self.log is None else self.log.path,
            number=order.trial,
            goals=self._config.goals,
            ranks=self.ranks,
            share=self.state.memory_fraction_for(order),
            code=order.code,
        )
        task = self.state.task
        data = self.state.data_for(order, given)
        try:
            return Runner(task, data, setup, self._ask, self._note)
        except CheckpointError as damage:
            log.warning("trial %d starts from the beginning: %s", order.trial, damage)
            afresh = replace(setup, resume_from=None)
            return Runner(task, data, afresh, self._ask, self._note)

    def _drive(self, runner: Runner) -> Ending:
        control = self.control
        total = self._config.budget.total
        checkpoint: str | None = None
        while not control.interrupts():
            last: ev.Reported | None = None
            until = control.until  # it may rise as soon as the report that waits is sent
            for report in runner.advance(until, control.interrupts):
                runner.recorded(control.recorded)
                last = self._report(runner, report)
                checkpoint = last.checkpoint
            if runner.finished is not None and (not control.stop or self._is_trained):
                return self._finished(runner, runner.finished)
            if runner.finished is not None:
                break  # it has heard of the stop by itself, as from a signal
            if last is None or last.resource < until:
                break  # interrupted between reports
            if last.resource >= total or last.is_last:
                control.until = math.inf  # its last report is made: let it end by itself
            control.wait_to_advance(last.resource)
        if not control.stop:
            return self._timed_out()
        return self._stopped(runner, checkpoint)

    @property
    def _is_trained(self) -> bool:
        return self.reached is not None and self.reached >= self._config.budget.total

    def _report(self, runner: Runner, report: Report) -> ev.Reported:
        """Send a report, unless there are very many. If the attempt waits after it, its checkpoint
        is of exactly this level, to continue from if it is paused. Else it does not wait for its
        disk."""
        waits = self.control.until <= report.resource < self._config.budget.total
        waits = waits and not report.is_last
        checkpoint, best, saved_at = report.checkpoint, report.best, report.saved_at
        if waits:
            checkpoint, saved_at = runner.save(), None
            best = runner.best
        reported = ev.Reported(
            *self._key,
            report.resource,
            dict(report.metrics),
            report.step,
            report.elapsed,
            _text(checkpoint),
            _text(best),
            _sizes(checkpoint, best),
            saved_at,
            report.is_last,
        )
        if self._thinning.due(reported, self.control.until):
            self._send(reported, waits=waits)
        return reported

    def _ask(self, question: Question) -> Mapping[str, Any]:
        self.control.given.pop(question.name, None)  # an answer from before
        self.said(ev.Queried(*self._key, question.name, question.distribution), True)
        self.control.wait_for_value(question.name)
        return self.control.given

    def _note(self, note: Note) -> None:
        self._send_rest()  # the note may add to the last one
        noted = ev.Noted(*self._key, note.attributes, note.constraints, note.metrics, note.kept)
        self.said(noted, False)

    def _finished(self, runner: Runner, why: str) -> ev.Finished:
        best = runner.best
        return ev.Finished(*self._key, why, _text(best), sizes=_sizes(best, best))

    def _timed_out(self) -> ev.Failed:
        text = f"ran past its time limit of {self.order.time_limit_s:g} s"
        return ev.Failed(*self._key, ErrorKind.TIMEOUT, text)

    def _stopped(self, runner: Runner, checkpoint: str | None) -> ev.Stopped:
        control = self.control
        saved = runner.save() if control.save else None
        why = RETIRED if control.retired else None
        kept = checkpoint if saved is None else str(saved)
        return ev.Stopped(*self._key, checkpoint=kept, why=why, signalled=control.signalled)


def _text(path: Path | str | None) -> str | None:
    return None if path is None else str(path)


def _sizes(newest: Path | str | None, best: Path | str | None) -> CheckpointSizes | None:
    """The bytes of a trial's checkpoints; None without any, or if they cannot be read."""
    if newest is None:
        return None
    try:
        return sizes_of(newest, best)
    # Each store has errors of its own, and no trial fails for a size.
    except Exception:  # noqa: BLE001
        return None
