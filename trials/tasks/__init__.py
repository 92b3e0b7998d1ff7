"""The tasks by kind: build one, and look at its data before anything is trained.

A kind is the name of a built-in task (`descriptions.builtin.BUILT_IN`), ``command`` for a program
of the user's own, or ``package.module:function`` for the user's own training function. Nothing
heavy is imported before a task is built.

- `workloads`: the parts that all built-in kinds share
- `datasets`: data files, from reading to prepared data on the disk
- `command`, `function`, `images`, `tabular`, `text`, `tokens`, `language`, `pairs`: the tasks
- `huggingface`: what the tasks on texts share
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Task, TaskError
from trials.descriptions.builtin import describe
from trials.descriptions.description import ASK

if TYPE_CHECKING:
    from trials.tasks.function.task import Adapt

_CLASSES = {
    "text_classification": "trials.tasks.text.task:TextClassification",
    "text_regression": "trials.tasks.text.task:TextRegression",
    "token_classification": "trials.tasks.tokens.task:TokenClassification",
    "language_modeling": "trials.tasks.language.task:LanguageModeling",
    "sequence_to_sequence": "trials.tasks.pairs.task:SequenceToSequence",
    "image_classification": "trials.tasks.images.task:ImageClassification",
    "tabular": "trials.tasks.tabular.task:Tabular",
    "command": "trials.tasks.command.task:CommandTask",
}
"""The class of each kind that has a name, imported when a task of its kind is built."""


def load(task: Mapping[str, Any], base: Path | None = None, adapt: Adapt | None = None) -> Task:
    """Build the task that the `task` part of a study file states.

    Args:
        base: The folder that its relative paths and modules are found in; None for the current one.
        adapt: For a function that is written for a library, as its `library` says: turns it into
            one that takes `(params, trial)`. Only for the kind ``package.module:function``.

    Raises:
        TaskError: With every mistake in it.
    """
    description = describe(task.get("kind"))
    if problems := description.problems_with(task):
        raise TaskError(problems)
    if description is ASK:
        what = "nothing can train it here: its trials are asked for in Python, with study.ask()"
        raise TaskError.at("task.kind", what)
    base = Path.cwd() if base is None else base.absolute()
    build = _class_of(description.kind)
    built: Task = build(task, base) if adapt is None else build(task, base, adapt)
    return built


def _class_of(kind: str) -> Any:
    return pkgutil.resolve_name(_CLASSES.get(kind, "trials.tasks.function.task:FunctionTask"))


def inspect(task: Mapping[str, Any], base: Path | None = None) -> list[Problem]:
    """Everything wrong with a task that can be seen before training: its fields, its data, its
    function.

    Args:
        task: The `task` part of a study file.
        base: The folder that its relative paths and modules are found in; None for the current one.
    """
    if task.get("kind") == ASK.kind:
        return ASK.problems_with(task)
    from trials.tasks.workloads.task import TrainedTask

    try:
        built = load(task, base)
    except TaskError as error:
        return error.problems
    if not isinstance(built, TrainedTask):
        return []
    return built.problems()
