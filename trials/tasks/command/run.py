"""One attempt of a command: its reports, its checkpoints, and how it ends.

The program trains on while its reports are read. For a checkpoint, all of its processes are
suspended and its folder is copied. A file that is open for writing then is incomplete: the program
may first go on for a while. A trial that waits at a rung waits suspended.
"""

import collections
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.checkpoints.disk.whole_folders import removed_on_error
from trials.contract import Code, Finding, ProgramFailed, Report, Setup, Severity
from trials.descriptions.command import GRACE_S, harness_of
from trials.descriptions.command_line import BUDGET, FOLDER, PARAMS, RESUME, SEED, CommandLine
from trials.descriptions.programs import Start, Surroundings
from trials.descriptions.report_pattern import ReportPattern
from trials.loop.telemetry.findings import beyond_budget
from trials.running.exit_codes import NOT_STARTED, exit_text
from trials.running.reported import Stopwatch
from trials.settings import in_full
from trials.tasks.command.attempt_folder import AttemptFolder
from trials.tasks.command.checkout import check_out, confined
from trials.tasks.command.output import Output
from trials.tasks.command.program import Program, Source, own_environment
from trials.tasks.command.report_stream import ReportLine, ReportStream

_IMPORT = "No module named"  # in the output of a Python that lacks a package
POLL_S = 0.1  # the longest wait for news before the run hands control back to its worker
FINISH_S = 300.0  # the time that a program may take to end after its last report
LOOK_S = 0.05  # between two looks at a program's files and reports
SETTLE_S = 1.0  # the time until two looks in a row must have shown the same


@dataclass(frozen=True)
class Command:
    """A command as a study file states it."""

    task: Mapping[str, Any]
    line: CommandLine
    base: Path  # the folder that it runs in
    root: Path  # the folder of the study file
    surround: Callable[[Start], Surroundings]  # what its program is started with in an attempt
    patterns: tuple[ReportPattern, ...]
    """The patterns of reports; empty if they are lines of JSON, or rows of CSV."""
    ends_early: bool  # whether it may end before its budget: with exit code 0 it is complete then
    resumes: bool  # whether it continues from the files of its folder


class CommandRun:
    """One attempt of a command (a `contract.Run`). Raises CheckpointError if the checkpoint that it
    continues from is damaged."""

    def __init__(self, command: Command, setup: Setup) -> None:
        self.finished: str | None = None
        self._command, self._setup = command, setup
        self._total = setup.budget.total
        self._output = Output(setup.log)
        self._folder = AttemptFolder(setup, resumes=command.resumes)
        progress = self._folder.progress
        self._reports = collections.deque(ReportLine(*each) for each in progress.get("pending", []))
        """Reports that are yet to be yielded."""
        self._reached: float = progress.get("reached", 0.0)
        """The resource of the last report that was yielded."""
        self._known = self._reports[-1].resource if self._reports else self._reached
        """The resource of the last report of the trial."""
        self._printed = 0.0
        """The resource of the last report of this attempt's program."""
        self._metrics: Mapping[str, float] = {}
        self._watch = Stopwatch(progress.get("elapsed", 0.0))
        values, home = self._values(is_continued=bool(progress)), self._folder.home
        start = Start(command.task, setup, values, self._folder.path, home)
        self._surroundings = around = command.surround(start)
        self._place, self._words = command.base, around.words
        if setup.code is not None:
            with removed_on_error(home):
                self._place, self._words = self._checked_out(setup.code)
        metric = None if setup.goal is None else setup.goal.metric
        self._stream = ReportStream(command.patterns, around, metric, self._output)
        self._program: Program | None = None
        self._is_suspended = self._is_over = False
        self._is_at_report = False
        """The run was not iterated since its last report."""
        self._beyond: float | None = None
        """The resource of a report after the one at the full budget."""
        self._end_by: float | None = None
        self._began_again_at: float | None = None

    def __iter__(self) -> Iterator[Report | None]:
        """The program's reports; None while it takes its time between two of them. Raises
        ProgramFailed if it cannot be started, prints an impossible report, or ends in another way
        than it should."""
        while self.finished is None and not self._is_over:
            if self._reports:
                report = self._hand_over(self._reports.popleft())
                self._is_at_report = True
                yield report
                self._is_at_report = False
                continue
            program = self._go_on()
            if program.over and self._has_summary(program):
                continue
            if program.over:
                self._finish(program)
                return
            self._listen(program, POLL_S)
            if self._end_by is not None and time.monotonic() >= self._end_by:
                self._end_program(program, "its budget is used")
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

    def _values(self, *, is_continued: bool) -> dict[str, Any]:
        setup, folder = self._setup, self._folder
        values = {
            **dict(zip(("fold", "folds"), setup.fold or (None, None), strict=True)),
            **setup.params,
            BUDGET: int(self._total) if float(self._total).is_integer() else self._total,
            FOLDER: str(folder.path),
            RESUME: str(folder.path) if is_continued else None,
            SEED: setup.seed,
        }
        if PARAMS in self._command.line.names:
            values[PARAMS] = folder.write_params(setup.params)
        return values

    def _checked_out(self, code: Code) -> tuple[Path, list[str]]:
        command, home = self._command, self._folder.home
        harness = harness_of(command.task, command.root)
        place = check_out(code, command.root, harness, home)
        words = confined(self._words, command.root, harness, home)
        if words == self._words:
            self._output.note("unshare does not work here: the harness is not hidden from it")
        return place / command.task.get("cwd", "."), words

    def _started(self) -> Program:
        around = self._surroundings
        self._output.note(f"attempt {self._setup.attempt}: {' '.join(around.words)}")
        environment = {**own_environment(), **around.variables}
        if around.path:
            places = [*map(str, around.path), environment.get("PYTHONPATH", "")]
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, places))
        program = Program(self._words, self._place, environment)
        if program.other_python is not None:
            self._output.note(f"it runs on {program.other_python}, not on {sys.executable}")
        return program

    def _listen(self, program: Program, timeout_s: float) -> None:
        self._take_in(program.read(timeout_s))
        if program.over:
            for report in self._stream.last_reports():
                self._take_report(report)

    def _take_in(self, pieces: list[tuple[Source, bytes]], *, at_rest: bool = False) -> None:
        for report in self._stream.reports(pieces, at_rest=at_rest):
            self._take_report(report)

    def _take_report(self, report: ReportLine) -> None:
        resource = report.resource
        if self._surroundings.reports is not None and resource <= self._known:
            return  # the file is read as a whole
        if resource <= self._printed:
            if self._command.patterns:
                return  # a summary for people
            what = f"the command reported {in_full(resource)} after {in_full(self._printed)}"
            raise ProgramFailed(f"{what}: the {self._surroundings.resource} must rise")
        is_first = self._printed == 0.0
        self._printed = resource
        if resource <= self._known:
            self._output.note(f"the report at {resource:g} is of a part that was reported before")
            if is_first and resource < self._known:
                self._began_again_at = resource
        elif self._known < self._total:
            self._known = resource
            self._reports.append(report)
        else:
            self._beyond = resource
            self._end_by = time.monotonic()

    def _hand_over(self, report: ReportLine) -> Report:
        resource, metrics = report.resource, report.metrics
        elapsed = self._watch.seconds
        self._folder.history.note(metrics, None)
        self._reached, self._metrics = resource, metrics
        if resource >= self._total:
            self._end_by = time.monotonic() + FINISH_S
        saved = self._save_if_due()
        best = None if saved is None else self.best
        return Report(resource, metrics, None, elapsed, saved, best, samples=report.samples)

    def _has_summary(self, program: Program) -> bool:
        """Take in the summary of a program that has ended well, once, as the last report."""
        summary = self._surroundings.summary
        if summary is None or program.code != 0 or self._known >= self._total:
            return False
        metrics, note = summary()
        self._take_report(ReportLine(self._total, metrics))
        self._output.note(note)
        return True

    def _finish(self, program: Program) -> None:
        code = program.code
        assert code is not None
        self._watch.pause()
        self._is_over = True
        if self._reached >= self._total:
            why = "budget used"
            was_ended = self._end_by is not None and time.monotonic() >= self._end_by
            if code != 0 and not was_ended:
                why += f", and then the command ended with {exit_text(code)}"
        elif self._command.ends_early and code == 0 and self._reached > 0:
            unit = self._setup.budget.unit.value
            where = f"{in_full(self._reached)} of {in_full(self._total)} {unit}"
            why = f"the command ended by itself at {where}"
        else:
            raise self._failure(program, code)
        self._folder.save(self._progress(), self._metrics, is_last=True)
        self.finished = why

    def _failure(self, program: Program, code: int) -> ProgramFailed:
        what = f"the command ended with {exit_text(code)}"
        if self._reached > 0:
            unit = self._setup.budget.unit.value
            before = f"before its budget of {in_full(self._total)} {unit}"
            what += f" after its report at {in_full(self._reached)}, {before}"
        elif code == 0:
            what += " and without a report"
        details = self._output.last_lines
        if code == 0:
            return ProgramFailed(f"{what}; {self._advice()}", details)
        words = self._output.words
        why = words.last if code == -signal.SIGKILL else words.cause
        what = f"{what}: {why}" if why else what
        if code in NOT_STARTED and program.fault is not None:  # as `env` says it
            what += f"; {program.fault}"
        if program.other_python is not None and _IMPORT in f"{why} {details}":
            what += f"; it ran on {program.other_python}, not on the Python of this program"
        return ProgramFailed(what, details)

    def _advice(self) -> str:
        if self._reached > 0:
            return "it may end there without ends_early: false in the task"
        if self._command.patterns:
            return "no line of it matches the task's report"
        if self._surroundings.files is not None:
            return self._surroundings.files.seen()
        example = f'{{"{self._surroundings.resource}": 1, "accuracy": 0.8}}'
        file = self._surroundings.reports
        where = "its standard output" if file is None else file.relative_to(self._folder.path)
        return f"a report is a line such as {example} in {where}"

    def _end_program(self, program: Program, why: str) -> bool:
        """Ask the program to end, and kill it if it does not; true if its files are complete."""
        if program.over or program.code is not None:
            return True
        self._output.note(f"sent SIGTERM: {why}")
        program.terminate()
        self._is_suspended = False
        give_up = time.monotonic() + GRACE_S
        while not program.over and time.monotonic() < give_up:
            self._listen(program, POLL_S)
        is_complete = True
        if not program.over:
            self._take_in(program.suspend(), at_rest=True)
            is_complete = self._is_complete(program)
            self._output.note(f"killed: it did not end within {GRACE_S:g} s")
            program.kill()
            while not program.close():
                self._output.note("a process of it cannot be killed")
        self._watch.pause()
        return is_complete

    def save(self) -> Path | str | None:
        """Save the program's files.

        At a report, the program is suspended, and continues when the run is iterated. Between
        reports, the program is asked to end first, so that it can save its state. Returns None if
        there are no files, the program does not resume, or it is just writing."""
        if not self._command.resumes:
            return None
        if self._is_at_report:
            return self._saved(wait_s=GRACE_S)
        program = self._program
        if program is None or self._is_over:
            return None
        self._is_over = True
        if not self._end_program(program, "its trial is stopped"):
            return None
        return self._folder.save(self._progress(), self._metrics)

    def _save_if_due(self) -> Path | str | None:
        program = self._program
        if program is None or program.over or not self._command.resumes:
            return None
        return self._saved(wait_s=0.0) if self._folder.is_due else None

    def _saved(self, wait_s: float) -> Path | str | None:
        if self._folder.saved_at == self._reached:
            return self._folder.newest
        if self._program is not None and not self._suspended(self._program, wait_s):
            return None
        return self._folder.save(self._progress(), self._metrics)

    def _suspended(self, program: Program, wait_s: float) -> bool:
        """Suspend the program at a moment at which its files are complete and match its reports. It
        may just have saved a state before its report. So it goes on until two looks show the same.
        Returns whether its files are complete."""
        began = time.monotonic()
        before: object = None
        while not program.over:
            self._take_in(program.suspend(), at_rest=True)
            self._is_suspended = True
            self._watch.pause()
            now = self._folder.signature(), self._printed
            passed_s = time.monotonic() - began
            is_writing = bool(program.writes_in(self._folder.path))
            if is_writing and passed_s >= wait_s:
                return self._is_complete(program)
            if not is_writing and (now == before or passed_s >= SETTLE_S):
                break
            before = now
            self._go_on()
            time.sleep(LOOK_S)
        return True

    def _is_complete(self, program: Program) -> bool:
        writes = program.writes_in(self._folder.path)
        if not writes:
            return True
        names = ", ".join(path.name for path in writes)
        self._output.note(f"no checkpoint at {self._reached:g}: {names} is open for writing")
        return False

    def _progress(self) -> dict[str, Any]:
        return {
            "reached": self._reached,
            "elapsed": self._watch.seconds,
            "history": self._folder.history.state_dict(),
            "pending": [[each.resource, each.metrics] for each in self._reports],
        }

    @property
    def best(self) -> Path | str | None:
        return self._folder.best

    def recorded(self, resource: float) -> None:
        self._folder.checkpoints.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        found = self._folder.history.findings()
        if self._beyond is not None:
            found = (beyond_budget(self._beyond, self._setup.budget), *found)
        if self._began_again_at is None:
            return found
        what = f"reported {in_full(self._began_again_at)} first, though its trial was further"
        hint = "it does not continue from its folder: see resumes in docs/command.md"
        return (Finding("began_again", f"{what}: {hint}", Severity.WARNING), *found)

    def close(self) -> bool:
        """End all processes of the program, and remove the attempt's folder. False while a process
        cannot be killed."""
        program = self._program
        if program is not None:
            try:
                self._end_program(program, "its attempt has ended")
            except ProgramFailed as failure:
                self._output.note(str(failure))
            if not program.close():
                return False
        self._is_over = True
        self._output.close()
        self._folder.remove()
        return True
