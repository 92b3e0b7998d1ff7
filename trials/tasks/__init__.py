"""The tasks by kind: describe one cheaply, build one, and look at its data before anything is trained.

A kind is either the name of a built-in task (`BUILT_IN`) or ``package.module:function``, the user's own training
function. Nothing heavy is imported before a task is built or its data read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trials.contract import Problem, Task, TaskError
from trials.settings import nearest
from trials.tasks import function, pretrained
from trials.tasks.description import Field, TaskDescription
from trials.tasks.image_classification import ImageClassification
from trials.tasks.language_modeling import LanguageModeling
from trials.tasks.sequence_to_sequence import SequenceToSequence
from trials.tasks.tabular import Tabular
from trials.tasks.text_classification import TextClassification
from trials.tasks.token_classification import TokenClassification
from trials.tasks.trained import TrainedTask

__all__ = ["BUILT_IN", "Field", "TaskDescription", "describe", "inspect", "load"]

_CLASSES: dict[str, type[TrainedTask]] = {
    task.DESCRIPTION.kind: task
    for task in (
        TextClassification,
        TokenClassification,
        LanguageModeling,
        SequenceToSequence,
        ImageClassification,
        Tabular,
    )
}
BUILT_IN: dict[str, TaskDescription] = {kind: task.DESCRIPTION for kind, task in _CLASSES.items()}
"""The built-in tasks by name."""


def describe(kind: Any) -> TaskDescription:
    """The fields, settings and metrics of a kind of task.

    Raises:
        TaskError: There is no such kind.
    """
    if isinstance(kind, str) and kind in BUILT_IN:
        return BUILT_IN[kind]
    if isinstance(kind, str) and ":" in kind:
        return function.describe(kind)
    what = "is missing" if kind is None else f"{kind!r} is no kind of task"
    hint = nearest(kind, BUILT_IN) if kind is not None else f"known are {', '.join(BUILT_IN)}"
    raise TaskError([Problem("task.kind", f"{what}; {hint}, or name your own function as package.module:function")])


def load(task: Mapping[str, Any], base: Path | None = None) -> Task:
    """Build the task that the `task` part of a study file states.

    Args:
        task: The part, as parsed.
        base: The folder that its relative paths and modules are found in; None for the current one.

    Raises:
        TaskError: With every mistake in it.
    """
    description = describe(task.get("kind"))
    if problems := description.problems_with(task):
        raise TaskError(problems)
    base = Path.cwd() if base is None else base.absolute()
    if description.kind in _CLASSES:
        return _CLASSES[description.kind](task, base)
    return function.FunctionTask(task, base)


def inspect(task: Mapping[str, Any], base: Path | None = None) -> list[Problem]:
    """Everything wrong with a task that can be seen before training: its fields, its data, its function.

    Args:
        task: The `task` part of a study file.
        base: The folder that its relative paths and modules are found in; None for the current one.
    """
    try:
        built = load(task, base)
    except TaskError as error:
        return error.problems
    if not isinstance(built, TrainedTask):
        return []
    return [*built.problems(), *pretrained.problems_with(built.model, built.DESCRIPTION.tokens)]
