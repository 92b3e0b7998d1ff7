"""Builds the task that a study file states: adapted where it names a library, else as it is."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from trials import tasks
from trials.contract import Problem, Task, TaskError
from trials.descriptions.builtin import OPTUNA, RAY_TUNE, describe

ADAPTERS: Mapping[str, str] = {
    RAY_TUNE: "hpsearch.adapters.ray_tune",
    OPTUNA: "hpsearch.adapters.optuna_objective",
}
"""By the name of a library: the module whose `adapt` turns code for it into a function that takes
`(params, trial)`. It is imported when code for the library is first loaded."""


def load(task: Mapping[str, Any], base: Path | None = None) -> Task:
    """Build the task that the `task` part of a study file states. Its relative paths and modules
    are found in a folder, or in the current one. Raises TaskError with every mistake in it."""
    library = task.get("library", "")
    if library not in ADAPTERS:
        return tasks.load(task, base)
    if problems := describe(task.get("kind")).problems_with(task):
        raise TaskError(problems)
    module = importlib.import_module(ADAPTERS[library])
    return tasks.load(task, base, module.adapt)


def inspect(
    task: Mapping[str, Any], base: Path | None = None, remark: Callable[[str], None] | None = None
) -> list[Problem]:
    """Everything wrong with a task that can be seen before training: its fields, its data, its
    function. `remark` as of `tasks.inspect`."""
    if task.get("library") not in ADAPTERS:
        return tasks.inspect(task, base, remark)
    try:
        getattr(load(task, base), "function", None)
    except TaskError as error:
        return error.problems
    return []


def contradictions(task: Mapping[str, Any], base: Path, directions: Sequence[str]) -> list[Problem]:
    """The problem of a study with these directions, whose task's code states others; the task has
    been inspected."""
    if task.get("library") != OPTUNA:
        return []
    from hpsearch.adapters import optuna_objective  # imported here: its code imports Optuna

    return optuna_objective.problems_with(task, base, directions)
