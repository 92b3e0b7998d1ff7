"""A command: a program of its own that trains, searched through its arguments."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from trials.contract import Problem, TaskError
from trials.descriptions import report_pattern
from trials.descriptions.command_line import GIVEN, PARAMS, RESUME, CommandLine
from trials.descriptions.description import Field, TaskDescription, by_name
from trials.settings import nearest

KIND = "command"
GRACE_S = 10.0
"""How long a program may take to end where the task does not say."""
MOST_GRACE_S = 20.0
"""A worker that has not stopped an attempt after half a minute is replaced."""

_FIELDS = (
    Field("run", (str,), "the command, with placeholders such as {learning_rate}", required=True),
    Field(
        "cwd",
        (str,),
        "the folder that the command runs in; the study file's if missing",
        limits={"minLength": 1},
    ),
    Field("shell", (bool,), "whether a shell runs the command; false if missing"),
    Field(
        "report",
        (str, list),
        "a pattern of the lines that are reports, such as epoch {resource} .* val_acc {accuracy}, "
        "or a list of them; lines of JSON if missing",
        limits={"minLength": 1, "minItems": 1, "items": {"type": "string", "minLength": 1}},
    ),
    Field(
        "reports",
        (str,),
        "the file of the attempt's folder that reports are read from; standard output if missing",
        limits={"minLength": 1},
    ),
    Field(
        "resource",
        (str,),
        "the key of a report that says how far the trial has trained; resource if missing",
        limits={"minLength": 1},
    ),
    Field(
        "grace",
        (float,),
        "seconds that the program may take to end once it is told to; 10 if missing",
        limits={"exclusiveMinimum": 0, "maximum": MOST_GRACE_S},
    ),
    Field(
        "ends_early",
        (bool,),
        "whether the program may end before its budget, as with early stopping; false if missing",
    ),
    Field(
        "resumes",
        (bool,),
        "whether the program continues from what it has written into {folder}; true if missing",
    ),
)


class CommandDescription(TaskDescription):
    """The description of a command."""

    def problems_with(self, task: Mapping[str, Any]) -> list[Problem]:
        """Every unknown, missing or unfit key of a `task` part, and what is wrong with its
        command."""
        found = super().problems_with(task)
        if found:
            return found
        try:
            line_of(task)
        except TaskError as mistake:
            return mistake.problems
        return list(_option_problems(task))

    def problems_with_names(
        self, task: Mapping[str, Any], settings: Mapping[str, Any], space: Mapping[str, bool]
    ) -> list[Problem]:
        """Placeholders that stand for nothing, and settings and parameters that change nothing."""
        if super().problems_with(task):
            return []
        try:
            line = line_of(task)
        except TaskError:
            return []
        known = [*settings, *space]
        return [
            *_unknown(line, known),
            *_unused(line, "settings", settings),
            *_unused(line, "space", space),
            *_inseparable(line, space),
        ]


def line_of(task: Mapping[str, Any]) -> CommandLine:
    """The command of a `task` part.

    Raises:
        TaskError: It cannot be split, or a brace is not closed.
    """
    return CommandLine(task["run"], shell=task.get("shell", False))


def _option_problems(task: Mapping[str, Any]) -> Iterator[Problem]:
    grace = task.get("grace", GRACE_S)
    if not (math.isfinite(grace) and 0 < grace <= MOST_GRACE_S):
        what = f"must be above 0 and at most {MOST_GRACE_S:g} seconds, not {grace!r}"
        yield Problem("task.grace", what)
    for key in ("cwd", "reports", "resource"):
        if task.get(key) == "":
            yield Problem(f"task.{key}", "is empty; remove it, or name something")
    if "report" in task:
        yield from report_pattern.problems_with(report_pattern.texts_of(task))
    if "report" in task and "resource" in task:
        what = f"is not used beside report; write {{{report_pattern.RESOURCE}}} in that"
        yield Problem("task.resource", what)
    reports = PurePosixPath(task.get("reports") or "reports")
    if reports.is_absolute() or ".." in reports.parts:
        what = f"must be a path inside the attempt's folder, not {str(reports)!r}"
        yield Problem("task.reports", what)


def _unknown(line: CommandLine, known: list[str]) -> Iterator[Problem]:
    for name in sorted(line.names.difference(known, GIVEN)):
        what = f"nothing is named {name}, so {{{name}}} has no value"
        hint = nearest(name, dict.fromkeys([*known, *GIVEN]))
        braces = f"write {{{{{name}}}}} for braces of the command's own"
        yield Problem("task.run", f"{what}; {braces}, or a name: {hint}")


def _unused(line: CommandLine, section: str, names: Mapping[str, Any]) -> Iterator[Problem]:
    takes_all = PARAMS in line.names
    for name in names:
        if name in GIVEN:
            what = f"{{{name}}} is what every trial is given, so nothing else can have this name"
            yield Problem(f"{section}.{name}", f"{what}; choose another")
        elif name not in line.names and not takes_all:
            what = f"the command does not use it; write {{{name}}} where its value goes"
            hint = f"or {{{PARAMS}}} for a file with all of them"
            yield Problem(f"{section}.{name}", f"{what}, {hint}")


def _inseparable(line: CommandLine, space: Mapping[str, bool]) -> Iterator[Problem]:
    optional = [RESUME, *(name for name, always in space.items() if not always)]
    for name in optional:
        if line.shares_its_word(name):
            what = f"{{{name}}} has no value in some trials, and is in one word with another value"
            yield Problem("task.run", f"{what}; give it a word of its own")


COMMAND = CommandDescription(
    kind=KIND,
    fields=by_name(_FIELDS),
    settings=None,
    metrics=None,
    metrics_of=report_pattern.metrics_of,
)
"""The description of every command."""
