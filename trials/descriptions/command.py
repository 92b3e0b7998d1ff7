"""A command: a program of its own that trains, searched through its arguments."""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from trials.contract import Problem, TaskError
from trials.descriptions import report_pattern
from trials.descriptions.command_line import FOLDER, GIVEN, PARAMS, RESUME, CommandLine
from trials.descriptions.description import Field, TaskDescription, by_name
from trials.descriptions.programs import programs_of, report_files_of
from trials.settings import nearest

GRACE_S = 20.0
"""The time that a program may take to end: after half a minute, its worker is replaced."""

_NAMED = {"minLength": 1}
_A_TEXT = {"type": "string", "minLength": 1}
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
        (str, list, dict),
        "a pattern of the lines that are reports, such as epoch {resource} .* val_acc {accuracy}, "
        "or a list of them; tensorboard with the folder of its files; lines of JSON if missing",
        limits={
            "minLength": 1,
            "minItems": 1,
            "items": _A_TEXT,
            "maxProperties": 1,
            "additionalProperties": _A_TEXT,
        },
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
        "the library that the program is written for, which brings its parameters and takes its "
        "reports, such as wandb",
        limits=_NAMED,
    ),
    Field("config", (dict,), "with library: constants that the program is given"),
    Field(
        "measure",
        (str,),
        "a command that measures what run has left in {folder}, and prints the metrics as a line "
        "of JSON; what run reports if missing",
        limits=_NAMED,
    ),
    Field(
        "harness",
        (list,),
        "with measure: files and folders that changed code may neither change nor read, beside "
        "those that measure names",
        limits={"minItems": 1, "items": _A_TEXT},
    ),
)
_NOT_WITH_LIBRARY = ("report", "reports", "resource", "ends_early")
"""Keys that say how reports are found and when a trial ends."""
_NOT_WITH_MEASURE = ("library", "report", "reports", "resource")


def harness_of(task: Mapping[str, Any], base: Path) -> list[str]:
    """What measures what a command has trained, as paths from the folder of the study file."""
    if "measure" not in task:
        return []
    place = PurePosixPath(task.get("cwd", "."))
    words = [PurePosixPath(word) for word in CommandLine(task["measure"]).plain_words]
    scripts = [place / word for word in words if word.suffix[1:].isalpha()]
    named = [each for each in scripts if not each.is_absolute() and (base / each).is_file()]
    stated = map(PurePosixPath, task.get("harness", ()))
    return list(dict.fromkeys(map(str, [*named, *stated])))


def line_of(task: Mapping[str, Any]) -> CommandLine:
    """The command line of a `task` part, as its library reads it. Raises TaskError if it cannot be
    read, or there is no such library."""
    programs = programs_of(task)
    return CommandLine(task["run"]) if programs is None else programs.line(task["run"])


class CommandDescription(TaskDescription):
    def problems_with(self, task: Mapping[str, Any]) -> list[Problem]:
        found = super().problems_with(task)
        if found:
            return found
        try:
            line_of(task)
        except TaskError as mistake:
            return mistake.problems
        programs = programs_of(task)
        if programs is not None:
            if "measure" in task:
                return list(_measure_problems(task))
            return [*_problems_with_library(task), *programs.problems(task, ())]
        if "config" in task:
            what = "is for the program of a library; add library, or use settings"
            return [Problem("task.config", what)]
        return [*_report_problems(task), *_measure_problems(task)]

    def problems_with_names(
        self, task: Mapping[str, Any], settings: Mapping[str, Any], space: Mapping[str, bool]
    ) -> list[Problem]:
        if self.problems_with(task):
            return []
        line, names = line_of(task), [*settings, *space]
        problems = [*_unknown(line, names), *_inseparable(line, space)]
        programs = programs_of(task)
        if programs is not None:  # which gives the program all parameters
            return [*problems, *programs.problems(task, names)]
        unused = [*_unused(line, "settings", settings), *_unused(line, "space", space)]
        return [*problems, *unused]


def _problems_with_library(task: Mapping[str, Any]) -> Iterator[Problem]:
    for name in _NOT_WITH_LIBRARY:
        if name in task:
            what = f"is not used beside library: {task['library']}, which takes the reports"
            yield Problem(f"task.{name}", f"{what}; remove it")


def _measure_problems(task: Mapping[str, Any]) -> Iterator[Problem]:
    if "measure" not in task:
        if "harness" in task:
            yield Problem("task.harness", "is what measure needs; add measure, or remove it")
        return
    for name in _NOT_WITH_MEASURE:
        if name in task:
            yield Problem(f"task.{name}", "is not used beside measure, which reports; remove it")
    for key in ("run", "measure"):
        line = CommandLine(task[key])
        if FOLDER not in line.names:
            what = f"does not use {{{FOLDER}}}, through which run hands on what measure reads"
            yield Problem(f"task.{key}", f"{what}; write it where that goes")
    unknown = sorted(CommandLine(task["measure"]).names.difference(GIVEN))
    if unknown:
        yield Problem("task.measure", f"has no {{{unknown[0]}}}: it is given {', '.join(GIVEN)}")
    for stated in task.get("harness", ()):
        yield from _problems_with_place("task.harness", stated, "the folder of the study file")


def _report_problems(task: Mapping[str, Any]) -> Iterator[Problem]:
    if isinstance(task.get("report"), dict):
        yield from _problems_with_files(task)
        return
    if "report" in task:
        yield from report_pattern.problems_with(report_pattern.texts_of(task))
    if "report" in task and "resource" in task:
        what = f"is not used beside report; write {{{report_pattern.RESOURCE}}} in that"
        yield Problem("task.resource", what)
    yield from _problems_with_place("task.reports", task.get("reports", "reports"))


def _problems_with_files(task: Mapping[str, Any]) -> Iterator[Problem]:
    try:
        found = report_files_of(task)
    except TaskError as mistake:
        yield from mistake.problems
        return
    assert found is not None
    _, folders = found
    if not isinstance(folders, str) or not folders:
        yield Problem("task.report", f"must name folders, such as runs/*, not {folders!r}")
        return
    yield from _problems_with_place("task.report", folders)
    if "reports" in task:
        yield Problem("task.reports", "is not used beside the files of report; remove one")
    if FOLDER not in line_of(task).names:
        what = f"reads files of the attempt's folder, and the command does not use {{{FOLDER}}}"
        yield Problem("task.report", f"{what}; write it where the folder of its logs goes")


def _problems_with_place(
    where: str, stated: str, inside: str = "the attempt's folder"
) -> Iterator[Problem]:
    place = PurePosixPath(stated)
    if place.is_absolute() or ".." in place.parts:
        yield Problem(where, f"must be a path inside {inside}, not {stated!r}")


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
