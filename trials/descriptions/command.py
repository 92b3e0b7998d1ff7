"""A command: a program of its own that trains, searched through its arguments."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from trials.contract import Problem, TaskError
from trials.descriptions import report_pattern
from trials.descriptions.command_line import GIVEN, PARAMS, RESUME, CommandLine, SweepLine
from trials.descriptions.description import Field, TaskDescription, by_name
from trials.settings import nearest

GRACE_S = 20.0
"""The time that a program may take to end. A worker that has not stopped an attempt after half a
minute is replaced."""

WANDB = "wandb"
_NAMED = {"minLength": 1}
_FIELDS = (
    Field(
        "run",
        (str,),
        "the command, with placeholders such as {learning_rate}",
        required=True,
        limits=_NAMED,
    ),
    Field("cwd", (str,), "the folder that it runs in; the study file's if missing", limits=_NAMED),
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
        limits=_NAMED,
    ),
    Field(
        "resource",
        (str,),
        "the key of a report that says how far the trial has trained; resource if missing",
        limits=_NAMED,
    ),
    Field(
        "ends_early",
        (bool,),
        "whether a program that ends with exit code 0 before its budget, as with early stopping, "
        "is complete at its last report; true if missing",
    ),
    Field(
        "resumes",
        (bool,),
        "whether the program continues from what it has written into {folder}; true if missing",
    ),
    Field(
        "library",
        (str,),
        "wandb for the script of a W&B sweep: it finds its parameters in wandb.config, and its "
        "logs are reports",
        limits={"enum": (WANDB,)},
    ),
    Field("config", (dict,), "constants of wandb.config; a parameter a.b goes into a mapping a"),
)
_NOT_WITH_WANDB = ("report", "reports", "resource", "ends_early")
"""Keys that say how reports are found and when a trial ends."""


def line_of(task: Mapping[str, Any]) -> CommandLine:
    """The command line of a `task` part. Raises TaskError if it cannot be read."""
    return SweepLine(task["run"]) if task.get("library") == WANDB else CommandLine(task["run"])


class CommandDescription(TaskDescription):
    def problems_with(self, task: Mapping[str, Any]) -> list[Problem]:
        found = super().problems_with(task)
        if found:
            return found
        try:
            line = line_of(task)
        except TaskError as mistake:
            return mistake.problems
        if isinstance(line, SweepLine):
            return list(_sweep_problems(task, line))
        if "config" in task:
            what = f"is what wandb.config has; add library: {WANDB}, or use settings"
            return [Problem("task.config", what)]
        return list(_report_problems(task))

    def problems_with_names(
        self, task: Mapping[str, Any], settings: Mapping[str, Any], space: Mapping[str, bool]
    ) -> list[Problem]:
        if self.problems_with(task):
            return []
        line = line_of(task)
        if isinstance(line, SweepLine):  # all parameters reach wandb.config
            names = [*settings, *space]
            return [*_unknown(line, names), *_stated_twice(task, names), *_inseparable(line, space)]
        return [
            *_unknown(line, [*settings, *space]),
            *_unused(line, "settings", settings),
            *_unused(line, "space", space),
            *_inseparable(line, space),
        ]


def _sweep_problems(task: Mapping[str, Any], line: SweepLine) -> Iterator[Problem]:
    for name in _NOT_WITH_WANDB:
        if name in task:
            what = f"is not used beside library: {WANDB}, whose logs are reports; remove it"
            yield Problem(f"task.{name}", what)
    problem = line.problem_with_macros()
    if problem is not None:
        yield problem


def _stated_twice(task: Mapping[str, Any], names: list[str]) -> Iterator[Problem]:
    config = task.get("config", {})
    for name in names:
        inner = config
        *parents, last = name.split(".")
        for parent in parents:
            inner = inner.get(parent, {}) if isinstance(inner, dict) else {}
        if name in config or (isinstance(inner, dict) and last in inner):
            what = f"{name} is a parameter, too, which would replace it; keep one"
            yield Problem("task.config", what)


def _report_problems(task: Mapping[str, Any]) -> Iterator[Problem]:
    if "report" in task:
        yield from report_pattern.problems_with(report_pattern.texts_of(task))
    if "report" in task and "resource" in task:
        what = f"is not used beside report; write {{{report_pattern.RESOURCE}}} in that"
        yield Problem("task.resource", what)
    reports = PurePosixPath(task.get("reports", "reports"))
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
    sometimes = [name for name, always in space.items() if not always]
    for name in [RESUME, *sometimes]:
        if line.shares_its_word(name):
            what = f"{{{name}}} has no value in some trials, and is in one word with another value"
            yield Problem("task.run", f"{what}; give it a word of its own")


COMMAND = CommandDescription(
    kind="command",
    fields=by_name(_FIELDS),
    settings=None,
    metrics=None,
    metrics_of=report_pattern.metrics_of,
)
