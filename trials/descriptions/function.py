"""A training function of the user's own, which may be written for another library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trials.contract import Problem
from trials.descriptions.description import Field, TaskDescription, by_name
from trials.settings import nearest

RAY_TUNE, OPTUNA = "ray_tune", "optuna"
LIBRARIES = (RAY_TUNE, OPTUNA)
"""The libraries whose code is adapted."""

_FIELDS = (
    Field("args", (dict,), "parameters given to every trial"),
    Field(
        "library",
        (str,),
        "the library that the function is written for; if missing, it takes (params, trial)",
        limits={"enum": LIBRARIES},
    ),
)


class FunctionDescription(TaskDescription):
    """The description of a training function."""

    def problems_with(self, task: Mapping[str, Any]) -> list[Problem]:
        """Every unknown or unfit key of a `task` part, and a library that nobody adapts."""
        found = super().problems_with(task)
        library = task.get("library")
        if isinstance(library, str) and library not in LIBRARIES:
            what = f"code for {library!r} cannot be adapted; {nearest(library, LIBRARIES)}"
            found.append(Problem("task.library", what))
        return found


def of_function(kind: str) -> TaskDescription:
    """The description of a training function, from its name alone."""
    return FunctionDescription(kind, by_name(_FIELDS), settings=None, metrics=None)
