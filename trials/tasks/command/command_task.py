"""A command as a task: ``kind: command``.

task:
  kind: command
  run: python train.py --lr {learning_rate} --epochs {budget} --out {folder}
"""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from trials.contract import Setting, Setup, TaskError
from trials.descriptions import report_pattern
from trials.descriptions.command import harness_of, line_of
from trials.descriptions.command_line import CommandLine
from trials.descriptions.programs import Start, Surroundings, programs_of, report_files_of
from trials.tasks.command import starting
from trials.tasks.command.measuring import measured
from trials.tasks.command.report_stream import FROM_0
from trials.tasks.command.run import Command, CommandRun


class CommandTask:
    """The task of a command (a `contract.Task`). Raises TaskError if the command cannot be read, or
    there is no such program."""

    def __init__(self, task: Mapping[str, Any], base: Path) -> None:
        self.metrics = report_pattern.metrics_of(task)
        self.settings: Mapping[str, Setting] | None = None
        self._task, self._base = dict(task), base
        line = line_of(task)
        folder = base / task.get("cwd", ".")
        if not folder.is_dir():
            raise TaskError.at("task.cwd", f"there is no folder {folder}")
        _demand_program(line, folder)
        for name in harness_of(task, base):
            if not (base / name).exists():
                raise TaskError.at("task.harness", f"there is no {name} in {base}")
        programs, files = programs_of(task), report_files_of(task)
        fault = None if files is None else files[0].fault()
        if fault is not None:
            raise TaskError.at("task.report", fault)
        self._command = Command(
            task=task,
            line=line,
            base=folder,
            root=base,
            surround=partial(_surround, base) if programs is None else programs.surround,
            patterns=tuple(map(report_pattern.ReportPattern, report_pattern.texts_of(task))),
            ends_early=task.get("ends_early", True),
            resumes=task.get("resumes", programs is None),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return CommandTask, (self._task, self._base)

    def data_key(self, params: Mapping[str, Any]) -> str:
        return "none"

    def prepare(self, params: Mapping[str, Any]) -> None:
        """Do nothing: a command reads its own data."""

    def start(self, setup: Setup, data: Any) -> CommandRun:
        return CommandRun(self._command, setup)


def _surround(base: Path, start: Start) -> Surroundings:
    if "measure" in start.task:
        return Surroundings(
            words=CommandLine(start.task["run"]).filled(start.values),
            resource=report_pattern.RESOURCE,
            reports=start.home / "none",  # all that it prints is log
            summary=partial(measured, start, base),
        )
    reports, files = start.task.get("reports"), report_files_of(start.task)
    usual = report_pattern.RESOURCE if files is None else files[0].resource
    resource, reader = start.task.get("resource", usual), None
    if files is not None:
        metrics = [goal.metric for goal in start.setup.objectives]
        of_format, folders = files
        counter = resource.removesuffix(FROM_0)
        reader = of_format.reader(start.folder, folders, counter, metrics)
    return Surroundings(
        words=CommandLine(start.task["run"]).filled(start.values),
        resource=resource,
        reports=None if reports is None else start.folder / reports,
        files=reader,
    )


def _demand_program(line: CommandLine, folder: Path) -> None:
    program = line.program
    if program is None:
        return
    is_path = "/" in program
    file = starting.file_of(program, folder)
    if file is not None and file.exists():
        is_startable = os.access(file, os.X_OK) and not file.is_dir()
        what = starting.certain_fault_of(file) if is_startable else starting.fault_of(file)
    else:
        where = f"in {folder}" if is_path else "on the PATH"
        what = f"there is no program {program!r} {where}"
    if what is not None:
        raise TaskError.at("task.run", what)
