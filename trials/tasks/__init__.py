"""The tasks by kind. Nothing heavy is imported before one is built.

A kind is the name of a built-in task (`descriptions.builtin.BUILT_IN`), ``command`` for a program
of the user's own, or ``package.module:function`` for the user's own training function.

- `workloads`: the parts that all built-in kinds share
- `datasets`: data files, from reading to prepared data on the disk
- `command`, `function`, `images`, `tabular`, `text`, `sequences`: the tasks
- `huggingface`: the parts that the tasks on texts share
- `final`: the final training of one configuration
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trials.contract import Problem, Task, TaskError
from trials.descriptions.builtin import BUILT_IN, describe
from trials.descriptions.description import ASK

if TYPE_CHECKING:
    from trials.tasks.function.function_task import Adapt

_CLASSES = {
    "text_classification": "trials.tasks.text.text_task:TextClassification",
    "text_regression": "trials.tasks.text.text_task:TextRegression",
    "token_classification": "trials.tasks.sequences.tokens:TokenClassification",
    "language_modeling": "trials.tasks.sequences.language:LanguageModeling",
    "sequence_to_sequence": "trials.tasks.sequences.pairs:SequenceToSequence",
    "image_classification": "trials.tasks.images.image_task:ImageClassification",
    "tabular": "trials.tasks.tabular.table_task:Tabular",
    "command": "trials.tasks.command.command_task:CommandTask",
}
"""The class of each kind that has a name, imported when a task of its kind is built."""


def load(task: Mapping[str, Any], base: Path | None = None, adapt: Adapt | None = None) -> Task:
    """Build the task that the `task` part of a study file states. Raises TaskError with every
    mistake in it.

    Args:
        base: The folder of its relative paths and modules; None for the current one.
        adapt: Adapts a training function that is written for a library; only for functions.
    """
    description = describe(task.get("kind"))
    if problems := description.problems_with(task):
        raise TaskError(problems)
    if description is ASK:
        what = "nothing can train it here: its trials are asked for in Python, with study.ask()"
        raise TaskError.at("task.kind", what)
    base = Path.cwd() if base is None else base.absolute()
    name = _CLASSES.get(description.kind, "trials.tasks.function.function_task:FunctionTask")
    build = pkgutil.resolve_name(name)
    built: Task = build(task, base) if adapt is None else build(task, base, adapt)
    return built


def inspect(
    task: Mapping[str, Any],
    base: Path | None = None,
    remark: Callable[[str, str], None] | None = None,
) -> list[Problem]:
    """The mistakes in a `task` part, in its data and its function, as far as they show before
    training.

    Args:
        base: As for `load`.
        remark: Takes a key of the part, such as ``task.test``, and a sentence on its data, which
            can be used and may not be what its owner believes.
    """
    if task.get("kind") == ASK.kind:
        return ASK.problems_with(task)
    try:
        built = load(task, base)
        getattr(built, "function", None)  # a function is imported
    except TaskError as error:
        return error.problems
    if task["kind"] not in BUILT_IN:
        return []
    from trials.tasks.workloads.trained_task import BuiltInTask

    assert isinstance(built, BuiltInTask)
    return built.problems(remark)
