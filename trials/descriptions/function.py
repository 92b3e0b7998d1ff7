"""A training function of the user's own, which may be written for another library."""

from __future__ import annotations

from trials.descriptions.description import Field, TaskDescription, by_name

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


def of_function(kind: str) -> TaskDescription:
    """The description of a training function, from its name alone."""
    return TaskDescription(kind, by_name(_FIELDS), settings=None, metrics=None)
