"""Builds the task that a study file states: adapted where it names a library, else as it is."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hpsearch.domain.plugins.door import named, offers_of
from hpsearch.domain.plugins.offers import LibraryPlugin
from trials import tasks
from trials.contract import Problem, Task, TaskError
from trials.descriptions.builtin import describe
from trials.descriptions.command import COMMAND
from trials.foreign import in_words
from trials.settings import nearest


def library_of(task: Mapping[str, Any]) -> LibraryPlugin | None:
    """The library of a task's code; None for none. Raises TaskError if it is not known."""
    name, known = task.get("library"), offers_of(LibraryPlugin)
    if not isinstance(name, str) or describe(task["kind"]) is COMMAND:
        return None
    if name not in known:
        what = f"{name!r} is not a library that is known; {nearest(name, known)}"
        raise TaskError.at("task.library", what)
    return known[name]


def load(task: Mapping[str, Any], base: Path | None = None) -> Task:
    """Build the task that the `task` part of a study file states. Its relative paths and modules
    are found in a folder, or in the current one. Raises TaskError with every mistake in it."""
    library = library_of(task)
    if library is None:
        return tasks.load(task, base)
    if problems := describe(task.get("kind")).problems_with(task):
        raise TaskError(problems)
    try:
        adapt = named(library.adapt)
    except Exception as error:
        what = f"{library.name} does not work: {in_words(error)}"
        raise TaskError.at("task.library", what) from error
    return tasks.load(task, base, adapt)


def inspect(
    task: Mapping[str, Any],
    base: Path | None = None,
    remark: Callable[[str, str], None] | None = None,
) -> list[Problem]:
    """Everything wrong with a task that can be seen before training: its fields, its data, its
    function. `remark` as of `tasks.inspect`."""
    try:
        if library_of(task) is None:
            return tasks.inspect(task, base, remark)
        getattr(load(task, base), "function", None)
    except TaskError as error:
        return error.problems
    return []


def contradictions(task: Mapping[str, Any], base: Path, directions: Sequence[str]) -> list[Problem]:
    """The problem of a study with these directions, whose task's code states others; the task has
    been inspected."""
    library = library_of(task)
    if library is None or not library.problems:
        return []
    problems: list[Problem] = named(library.problems)(task, base, directions)
    return problems
