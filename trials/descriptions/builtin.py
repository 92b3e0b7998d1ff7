"""The built-in kinds of task by name, and the description of any kind."""

from __future__ import annotations

from typing import Any

from trials.contract import TaskError
from trials.descriptions.command import COMMAND
from trials.descriptions.description import ASK, TaskDescription
from trials.descriptions.function import of_function
from trials.descriptions.images import IMAGE_CLASSIFICATION
from trials.descriptions.tabular import TABULAR
from trials.descriptions.text import (
    LANGUAGE_MODELING,
    SEQUENCE_TO_SEQUENCE,
    TEXT_CLASSIFICATION,
    TEXT_REGRESSION,
    TOKEN_CLASSIFICATION,
)
from trials.settings import nearest

_DESCRIPTIONS = (
    TEXT_CLASSIFICATION,
    TEXT_REGRESSION,
    TOKEN_CLASSIFICATION,
    LANGUAGE_MODELING,
    SEQUENCE_TO_SEQUENCE,
    IMAGE_CLASSIFICATION,
    TABULAR,
)
BUILT_IN: dict[str, TaskDescription] = {
    description.kind: description for description in _DESCRIPTIONS
}
"""The kinds that the training loop trains, by name."""


def describe(kind: Any) -> TaskDescription:
    """The description of a kind of task.

    Args:
        kind: The name of a built-in kind, ``command``, ``ask`` for trials that are asked for in
            Python, or ``package.module:function``.

    Raises:
        TaskError: There is no such kind.
    """
    if isinstance(kind, str):
        if kind in BUILT_IN:
            return BUILT_IN[kind]
        if kind == COMMAND.kind:
            return COMMAND
        if kind == ASK.kind:
            return ASK
        if ":" in kind:
            return of_function(kind)
    known = [*BUILT_IN, COMMAND.kind, ASK.kind]
    what = "is missing" if kind is None else f"{kind!r} is not a kind of task"
    hint = f"known are {', '.join(known)}" if kind is None else nearest(kind, known)
    function = "or name your own function as package.module:function, or script as module:__main__"
    raise TaskError.at("task.kind", f"{what}; {hint}, {function}")
