"""Programs that are written for a library (`task: {kind: command, library: NAME}`), and files of a
library's own format that reports are read from (`report: {NAME: FOLDERS}`).

The library of a program brings it its parameters and takes its reports. Another package says how,
by the entry point `trials.programs`, which names an object with the methods of `Programs`. Files
have the entry point `trials.reports`, with those of `ReportFiles`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol

from trials.contract import Problem, Setup, TaskError
from trials.descriptions.command_line import CommandLine
from trials.foreign import in_words
from trials.settings import nearest

GROUP = "trials.programs"
REPORTS = "trials.reports"


@dataclass(frozen=True)
class Start:
    """The start of a program in one attempt."""

    task: Mapping[str, Any]  # the `task` part
    setup: Setup
    values: Mapping[str, Any]
    """The values of placeholders, by name; None for one that has none in this trial."""
    folder: Path  # the folder that the program writes into
    home: Path  # the folder around it, for other files


@dataclass(frozen=True)
class Surroundings:
    """What a program is started with, and what is read back."""

    words: list[str]  # the command
    resource: str  # the key of a report that says how far the trial has trained
    reports: Path | None = None  # the file that its reports are read from; None for standard output
    files: "FileReader | None" = None
    """The reader of its reports in files of a library; None for others."""
    path: tuple[Path, ...] = ()  # folders that come before those of its PYTHONPATH
    variables: Mapping[str, str] = field(default_factory=dict)  # environment variables
    summary: Callable[[], tuple[dict[str, float], str]] | None = None
    """Called once for a program that has ended well before its budget. Returns its metrics at the
    full budget, and a line for its log. Raises ProgramFailed. None where its last report is its
    result."""


class Programs(Protocol):
    """The programs of one library."""

    def line(self, text: str) -> CommandLine:
        """The command line of a `task` part. Raises TaskError if it cannot be read."""

    def problems(self, task: Mapping[str, Any], names: Iterable[str]) -> Iterable[Problem]:
        """The mistakes of a `task` part beside parameters of these names."""

    def surround(self, start: Start) -> Surroundings:
        """What the program of an attempt is started with; its files are written."""


def programs_of(task: Mapping[str, Any]) -> Programs | None:
    """The library that the command of a `task` part is written for; None without one. Raises
    TaskError if there is no such library, or it does not work."""
    name = task.get("library")
    return None if name is None else _loaded(GROUP, name, "task.library")


class FileReader(Protocol):
    """The files of one attempt."""

    def reports(self, *, at_rest: bool) -> Iterator[Mapping[str, float]]:
        """The reports since the last call, by the names of their numbers. `at_rest`: nothing is
        being written. Raises ProgramFailed."""

    def seen(self) -> str:
        """What the files have instead of a report, as a sentence for a person."""


class ReportFiles(Protocol):
    """The files of one format."""

    resource: str  # the name of the number that says how far the trial has trained

    def fault(self) -> str | None:
        """Why they cannot be read here, with what to do; None if they can."""

    def reader(
        self, folder: Path, folders: str, resource: str, metrics: Collection[str]
    ) -> FileReader:
        """The reader of the files that a program will write into the folders of one that match a
        pattern. A report has the resource and the metrics; none are named without a study."""

    def found_in(self, folder: Path) -> tuple[str, list[dict[str, float]]] | None:
        """The pattern for the files that a program has written into a folder, and their numbers,
        report for report; None without files."""


def report_files_of(task: Mapping[str, Any]) -> tuple[ReportFiles, str] | None:
    """The format of the files that a `task` part names for its reports, and the pattern of their
    folders; None if it names none. Raises TaskError if there is no such format."""
    stated = task.get("report")
    if not isinstance(stated, dict):
        return None
    if len(stated) != 1:
        raise TaskError.at("task.report", "must name one format of files, with their folders")
    ((name, folders),) = stated.items()
    return _loaded(REPORTS, name, "task.report"), folders


def report_files() -> Iterator[tuple[str, ReportFiles]]:
    """All formats of files by their names."""
    for entry in entry_points(group=REPORTS):
        yield entry.name, _loaded(REPORTS, entry.name, "task.report")


@cache
def _loaded(group: str, name: str, where: str) -> Any:
    known = {each.name: each for each in entry_points(group=group)}
    if name not in known:
        what = f"{name!r} is not a library that is known; {nearest(str(name), known)}"
        raise TaskError.at(where, what)
    try:
        return known[name].load()
    except Exception as error:
        raise TaskError.at(where, f"{name} does not work: {in_words(error)}") from error
