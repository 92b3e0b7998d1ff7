"""One attempt of a command: its reports, its checkpoints, and how it ends.

The program trains on while its reports are read. Where a checkpoint of a moment is wanted, all of
its processes are suspended and its folder is copied. A file that is open for writing then is not
complete: the program may first go on for a while. A trial that waits at a rung waits suspended.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trials.contract import Finding, ProgramFailed, Report, Setup, Severity
from trials.descriptions.command_line import BUDGET, FOLDER, PARAMS, RESUME, SEED
from trials.tasks.command.command import Command
from trials.tasks.command.output import Output
from trials.tasks.command.program import Program, Source, exit_text, own_environment
from trials.tasks.command.readers import ReportLine
from trials.tasks.command.report_stream import ReportStream
from trials.tasks.command.seals import Seals, trained_to
from trials.tasks.function.stopwatch import Stopwatch

POLL_S = 0.1
"""How long the run waits for news before it hands control back, so that a worker can look
around."""
FINISH_S = 300.0
"""How long a program may take to end after its last report."""
LOOK_S = 0.01
"""How long a program goes on between two looks at what it has written and reported."""
LOOK_TICKS = 2
"""How much processor time it has had by then, unless it waits for something else than a processor,
in ticks of the system's clock."""
SETTLE_S = 1.0
"""How long looks are taken until two of them show the same."""


class CommandRun:
    """One attempt of a command (a `contract.Run`).

    Raises:
        CheckpointError: What is continued from is damaged, or is another trial's that has nothing
            left to train.
    """

    def __init__(self, command: Command, setup: Setup) -> None:
        self.finished: str | None = None
        self._command = command
        self._setup = setup
        self._total = setup.budget.total
        self._output = Output(setup.log)
        self._seals = Seals(setup, self._output, resumes=command.resumes)
        self._folder = self._seals.folder
        progress = self._folder.progress
        self._continued = bool(progress)
        self._reached: float = progress.get("reached", 0.0)
        """The resource of the last report that was handed over."""
        pending = [ReportLine(*each) for each in progress.get("pending", [])]
        self._reports = collections.deque(pending)
        """Reports that were not handed over yet."""
        self._known = trained_to(progress) if progress else 0.0
        """The resource of the last report of the trial."""
        if setup.takes_over:
            # What the other trial had trained is in the files, and is reported by that one.
            self._reports.clear()
            self._reached = self._known
        self._printed = 0.0
        """The resource of the last report of this attempt's program."""
        self._metrics: Mapping[str, float] = {}
        self._watch = Stopwatch(progress.get("elapsed", 0.0))
        self._stream = self._new_stream()
        self._program: Program | None = None
        self._is_suspended = self._is_over = False
        self._at_report = False
        """The run was not iterated since its last report."""
        self._end_by: float | None = None
        self._began_again_at: float | None = None

    def _new_stream(self) -> ReportStream:
        return ReportStream(self._command, self._setup, self._folder.path, self._output)

    # ---------------------------------------------------------------------------------- training

    def __iter__(self) -> Iterator[Report | None]:
        """The program's reports; None while it takes its time between two of them.

        Raises:
            ProgramFailed: It cannot be started, prints a report that cannot be right, or ends in
                another way than it should.
        """
        while self.finished is None and not self._is_over:
            if self._reports:
                report = self._hand_over(self._reports.popleft())
                self._at_report = True
                yield report
                self._at_report = False
                continue
            program = self._go_on()
            if program.over and self._must_begin_afresh(program):
                self._begin_afresh(program)
                continue
            if program.over:
                self._finish(program)
                return
            self._listen(POLL_S)
            self._end_in_time(program)
            if not self._reports:
                yield None

    def _go_on(self) -> Program:
        program = self._program
        if program is None:
            program = self._program = self._started()
        elif self._is_suspended:
            program.resume()
        self._is_suspended = False
        self._watch.go_on()
        return program

    def _started(self) -> Program:
        setup = self._setup
        folder = self._folder
        total = setup.budget.total
        values: dict[str, Any] = {
            **setup.params,
            BUDGET: int(total) if total == int(total) else total,
            FOLDER: folder.path,
            RESUME: folder.path if self._continued else None,
            SEED: setup.seed,
        }
        if PARAMS in self._command.line.names:
            values[PARAMS] = folder.write_params(setup.params)
        words = self._command.line.filled(values)
        self._output.note(f"attempt {setup.attempt}: {' '.join(words)}")
        return Program(words, self._command.base, own_environment())

    def _listen(self, timeout_s: float) -> None:
        program = self._program
        assert program is not None
        self._take_in(program.read(timeout_s))
        if program.over:
            for reports in self._stream.rest():
                self._take_reports(reports)

    def _take_in(self, pieces: Iterable[tuple[Source, bytes]]) -> None:
        for reports in self._stream.taken(pieces):
            self._take_reports(reports)

    def _take_reports(self, reports: Iterable[ReportLine]) -> None:
        if self._stream.is_reread:
            reports = self._without_history(list(reports))
        for report in reports:
            self._take_report(report)

    def _without_history(self, reports: list[ReportLine]) -> list[ReportLine]:
        if not reports or reports[-1].resource < self._known:
            return reports
        return [report for report in reports if report.resource > self._known]

    def _take_report(self, report: ReportLine) -> None:
        resource = report.resource
        if resource <= self._printed:
            if self._stream.repeats:
                return
            what = f"the command reported {resource:g} after {self._printed:g}"
            raise ProgramFailed(f"{what}: the {self._command.resource} must rise")
        is_first = self._printed == 0.0
        self._printed = resource
        if resource <= self._known:
            self._output.note(f"the report at {resource:g} is of a part that was reported before")
            if is_first and resource < self._known:
                self._refuse_to_begin_again(resource)
                self._began_again_at = resource
            return
        if self._known < self._total:
            self._known = resource
            self._reports.append(report)
        else:
            self._end_by = time.monotonic()

    def _refuse_to_begin_again(self, resource: float) -> None:
        """A program that begins from nothing does not continue another trial."""
        if self._setup.takes_over:
            what = f"the command reported {resource:g} first, though it was to continue another"
            raise ProgramFailed(
                f"{what} trial from {self._known:g}: see resumes in docs/command.md"
            )

    def _hand_over(self, report: ReportLine) -> Report:
        resource = report.resource
        elapsed = self._watch.seconds
        self._seals.history.note(report.metrics, elapsed, None)
        self._reached = resource
        self._metrics = report.metrics
        if resource >= self._total:
            self._end_by = time.monotonic() + FINISH_S
        saved = self._save_if_cheap()
        best = None if saved is None else self.best
        return Report(resource, report.metrics, elapsed=elapsed, checkpoint=saved, best=best)

    def _must_begin_afresh(self, program: Program) -> bool:
        """True if a program that was to continue had nothing left to train, though its trial has.

        It was suspended after it had saved its last state, and before it printed the report.
        """
        ended_well = program.code == 0 and not program.left
        has_more = self._printed == 0.0 < self._total - self._reached
        may_not = self._setup.takes_over or self._command.ends_early
        return self._continued and ended_well and has_more and not may_not

    def _begin_afresh(self, program: Program) -> None:
        self._output.note("it has nothing left to train, but not reported it: begun afresh")
        while not program.close():
            pass
        self._program = None
        self._continued = False
        self._folder.clear()
        self._stream = self._new_stream()

    # ------------------------------------------------------------------------------------- ending

    def _end_in_time(self, program: Program) -> None:
        if self._end_by is None or time.monotonic() < self._end_by or program.code is not None:
            return
        self._end_program("its budget is used")

    def _finish(self, program: Program) -> None:
        code = program.code
        assert code is not None
        self._watch.pause()
        self._is_over = True
        may_end = self._command.ends_early and code == 0
        if self._reached >= self._total:
            why = "budget used"
            if code != 0 and self._end_by is not None and time.monotonic() < self._end_by:
                why += f", and then the command ended with {exit_text(code)}"
        elif may_end and self._reached > 0:
            why = "the command ended"
        else:
            raise self._failure(program, code)
        self._seal()
        self.finished = why

    def _failure(self, program: Program, code: int) -> ProgramFailed:
        what = f"the command ended with {exit_text(code)}"
        unit = self._setup.budget.unit.value
        if self._setup.takes_over and self._printed == 0.0:
            what += f" and without a report, though it was to continue from {self._known:g}"
        elif self._reached > 0:
            before = f"before its budget of {self._total:g} {unit}"
            what += f" after its report at {self._reached:g}, {before}"
        elif code == 0:
            what += " and without a report"
        if program.left:
            count = "a process" if program.left == 1 else f"{program.left} processes"
            what += f"; it left {count} behind, now killed: a command must stay in the foreground"
        details = self._output.last_lines
        if code == 0:
            return ProgramFailed(f"{what}; {self._advice()}", details)
        last = details.rpartition("\n")[2].strip()
        return ProgramFailed(f"{what}: {last}" if last else what, details)

    def _advice(self) -> str:
        if self._reached > 0:
            return "if it may stop early, add ends_early: true to the task"
        if self._command.patterns:
            return "no line of it matches the task's report"
        example = f'{{"{self._command.resource}": 1, "accuracy": 0.8}}'
        where = self._command.reports or "its standard output"
        return f"a report is a line such as {example} in {where}"

    def _end_program(self, why: str) -> bool:
        """Tell the program to end, and kill it if it does not."""
        program = self._program
        assert program is not None
        is_complete = True
        if not program.over:
            self._output.note(f"told to end (SIGTERM): {why}")
            program.terminate()
            self._is_suspended = False
            give_up = time.monotonic() + self._command.grace_s
            while not program.over and time.monotonic() < give_up:
                self._listen(POLL_S)
        if not program.over:
            self._take_in(program.suspend())
            is_complete = self._says_complete(program)
            self._output.note(f"killed: it did not end within {self._command.grace_s:g} s")
            program.kill()
            while not program.close():
                self._output.note("a process of it cannot be killed")
        self._watch.pause()
        return is_complete

    # ------------------------------------------------------------------------------- checkpoints

    def save(self) -> Path | str | None:
        """Seal what the program has written.

        At a report, the program is suspended, and continues when the run is iterated. Between
        reports, the program is told to end first, so that it can save what it has.

        Returns: None if it has written nothing, does not continue, or is just writing.
        """
        if not self._command.resumes:
            return None
        if self._at_report:
            return self._sealed(wait_s=self._command.grace_s)
        if self._program is None or self._is_over:
            return None
        self._is_over = True
        is_complete = self._end_program("its trial is stopped")
        return self._seal() if is_complete else None

    def _save_if_cheap(self) -> Path | str | None:
        program = self._program
        if program is None or program.over or not self._command.resumes:
            return None
        return self._sealed(wait_s=0.0) if self._seals.is_due else None

    def _sealed(self, wait_s: float) -> Path | str | None:
        """Suspend the program, and seal what it has written."""
        if self._seals.sealed_at == self._reached:
            return self._seals.newest
        if self._program is not None and not self._suspended(self._program, wait_s):
            return None
        return self._seal()

    def _suspended(self, program: Program, wait_s: float) -> bool:
        """Suspend the program at a moment at which its files are complete, and what they hold was
        reported.

        Just before, it may have written a state that it has not reported yet. So it goes on for a
        moment, until nothing changes in one.

        Returns: Whether its files are complete.
        """
        began = time.monotonic()
        before: object = None
        while not program.over:
            self._take_in(program.suspend())
            self._is_suspended = True
            self._watch.pause()
            now = self._folder.signature(), self._printed
            passed_s = time.monotonic() - began
            is_writing = bool(program.writes_in(self._folder.path))
            if is_writing and passed_s >= wait_s:
                return self._says_complete(program)
            if not is_writing and (now == before or passed_s >= SETTLE_S):
                break
            before = now
            self._let_run(until=began + max(SETTLE_S, wait_s))
        return True

    def _let_run(self, until: float) -> None:
        """Let the suspended program go on for a moment.

        On a busy machine it may have to wait for a processor first.

        Args:
            until: The time to end at in any case, by the monotonic clock.
        """
        program = self._go_on()
        enough = program.ticks + LOOK_TICKS
        least = time.monotonic() + LOOK_S
        while not program.over and (now := time.monotonic()) < until:
            if now >= least and (program.ticks >= enough or not program.would_run):
                return
            self._listen(LOOK_S)

    def _says_complete(self, program: Program) -> bool:
        writes = program.writes_in(self._folder.path)
        if not writes:
            return True
        names = ", ".join(path.name for path in writes)
        self._output.note(f"no checkpoint at {self._reached:g}: {names} is open for writing")
        return False

    def _seal(self) -> Path | str | None:
        return self._seals.seal(self._progress(), self._metrics)

    def _progress(self) -> dict[str, Any]:
        return {
            "reached": self._reached,
            "elapsed": self._watch.seconds,
            "history": self._seals.history.state_dict(),
            "pending": [[each.resource, each.metrics] for each in self._reports],
        }

    @property
    def best(self) -> Path | str | None:
        return self._seals.best

    def recorded(self, resource: float) -> None:
        self._seals.recorded(resource)

    # ------------------------------------------------------------------------------ health, end

    def findings(self) -> tuple[Finding, ...]:
        found = self._seals.history.findings()
        if self._began_again_at is None:
            return found
        what = f"reported {self._began_again_at:g} first, though its trial was further"
        hint = "it does not continue from its folder: see resumes in docs/command.md"
        return (Finding("began_again", f"{what}: {hint}", Severity.WARNING), *found)

    def close(self) -> bool:
        """End the program and all of its processes, and remove the attempt's folder. False while a
        process cannot be killed."""
        program = self._program
        if program is not None:
            if not program.over:
                self._end_quietly()
            if not program.close():
                return False
        self._is_over = True
        self._output.close()
        self._folder.remove()
        return True

    def _end_quietly(self) -> None:
        try:
            self._end_program("its attempt has ended")
        except ProgramFailed as failure:
            self._output.note(str(failure))
