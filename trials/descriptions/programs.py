"""Programs that are written for a library: `task: {kind: command, library: NAME}`.

The library brings such a program its parameters and takes its reports. Another package says how, by
the entry point `trials.programs`, which names an object with the methods of `Programs`.
"""

from collections.abc import Callable, Iterable, Mapping
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


@dataclass(frozen=True)
class Start:
    """The start of a program in one attempt.

    Attributes:
        task: The `task` part.
        values: The values of placeholders, by name; None for one that has none in this trial.
        folder: The folder that the program writes into.
        home: The folder around it, for other files.
    """

    task: Mapping[str, Any]
    setup: Setup
    values: Mapping[str, Any]
    folder: Path
    home: Path


@dataclass(frozen=True)
class Surroundings:
    """What a program is started with, and what is read back.

    Attributes:
        words: The command.
        resource: The key of a report that says how far the trial has trained.
        reports: The file that its reports are read from; None for standard output.
        path: Folders that come before those of its PYTHONPATH.
        variables: Environment variables.
        summary: Called once for a program that has ended well before its budget. Returns its
            metrics at the full budget, and a line for its log. Raises ProgramFailed. None where its
            last report is its result.
    """

    words: list[str]
    resource: str
    reports: Path | None = None
    path: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    summary: Callable[[], tuple[dict[str, float], str]] | None = None


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
    return None if name is None else _loaded(name)


@cache
def _loaded(name: str) -> Programs:
    known = {each.name: each for each in entry_points(group=GROUP)}
    if name not in known:
        what = f"{name!r} is not a library that is known; {nearest(name, known)}"
        raise TaskError.at("task.library", what)
    try:
        found: Programs = known[name].load()
    except Exception as error:
        what = f"{name} does not work: {in_words(error)}"
        raise TaskError.at("task.library", what) from error
    return found
