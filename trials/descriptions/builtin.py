"""The kinds of task by name, and the description of any kind, a training function too."""

from collections.abc import Mapping
from typing import Any

from trials.contract import TaskError
from trials.descriptions.command import COMMAND
from trials.descriptions.description import ASK, IN_FOLDS, Field, TaskDescription, by_name
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

_FUNCTION_FIELDS = (
    Field("args", (dict,), "parameters given to every trial"),
    Field(
        "warm",
        (bool,),
        "whether trials after each other share a process; by default, functions do and scripts"
        " do not",
    ),
    Field(
        "library",
        (str,),
        "the library that the function is written for; if missing, it takes (params, trial)",
    ),
)
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


def with_folds(task: Mapping[str, Any], folds: Any) -> dict[str, Any]:
    """A `task` part whose built-in kind measures on folds, if it states no validation data."""
    if folds is None or task.get("kind") not in BUILT_IN:
        return dict(task)
    return {"validation": f"{folds}{IN_FOLDS}", **task}


def stays_warm(task: Mapping[str, Any]) -> bool:
    """True if the process of a function or script trains one attempt after another. A script has a
    new one for each, unless its library calls its function again and again, or the `task` part says
    otherwise."""
    is_script = task["kind"].endswith(":__main__")
    return bool(task.get("warm", "library" in task or not is_script))


def of_function(kind: str) -> TaskDescription:
    return TaskDescription(kind, by_name(_FUNCTION_FIELDS), settings=None, metrics=None)


def describe(kind: Any) -> TaskDescription:
    """The description of a kind of task. `kind` is the name of a built-in kind, ``command``,
    ``ask`` for trials that are asked for in Python, or ``package.module:function``. Raises
    TaskError if there is no such kind."""
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
