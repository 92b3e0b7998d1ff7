"""What `track` in a study file can name: experiment trackers, with their options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from hpsearch.study_file.types import Mistake, Model, refusal, shown
from trials.settings import nearest

_PASSWORD = re.compile(
    r"://[^/@:]*:(?!\d+([/?]|$))[^@]+@|[?&]\w*(passw(or)?d|secret|token|api_?key)=", re.IGNORECASE
)
"""In a URL: before its host, or among its options. A number after a colon is a port."""


def _not_empty(value: str) -> str:
    if value.strip():
        return value
    raise refusal("must not be empty; give a name or leave the key out")


Text: TypeAlias = Annotated[
    str, AfterValidator(_not_empty), WithJsonSchema({"type": "string", "minLength": 1})
]


class MlflowOptions(Model):
    """MLflow: a run for the study, and nested in it one for each trial."""

    uri: Text | None = None
    """The tracking server or database; without it as MLFLOW_TRACKING_URI says."""
    experiment: Text | None = None
    """The experiment; without it the study's name."""

    def mistakes(self) -> Iterator[Mistake]:
        """A password: the study file is kept in the database."""
        if self.uri is not None and _PASSWORD.search(self.uri):
            what = "has a password in it, and study files are kept in the database"
            yield "uri", f"{what}; use MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD"


class WandbOptions(Model):
    """Weights & Biases: a run for each trial, in a group for the study."""

    project: Text = "hpsearch"
    """The project."""
    entity: Text | None = None
    """The team or user; without it as WANDB_ENTITY says."""
    mode: Literal["online", "offline"] | None = None
    """Whether runs are sent or only written; without it as WANDB_MODE says, else online."""
    folder: Text | None = None
    """The folder for wandb's files; without it `wandb` beside the study file."""


class TensorboardOptions(Model):
    """TensorBoard: event files, in a folder for each trial."""

    folder: Text = "runs"
    """The folder that the study gets a folder of its own in."""


TrackerOptions: TypeAlias = MlflowOptions | WandbOptions | TensorboardOptions


class NamedTracker(Model):
    """One tracker by its name, with its options."""

    mlflow: MlflowOptions | None = None
    """MLflow: a run for the study, and nested in it one for each trial."""
    wandb: WandbOptions | None = None
    """Weights & Biases: a run for each trial, in a group for the study."""
    tensorboard: TensorboardOptions | None = None
    """TensorBoard: event files, in a folder for each trial."""

    def mistakes(self) -> Iterator[Mistake]:
        """No tracker, or several in one item."""
        given = [kind for kind in TRACKERS if getattr(self, kind) is not None]
        if not given:
            yield "", f"names no tracker; known are {', '.join(TRACKERS)}"
        for kind in given[1:]:
            yield kind, f"stands beside {given[0]}; give each tracker an item of its own (- {kind})"

    @property
    def kind(self) -> str:
        """Which tracker it is."""
        return next(kind for kind in TRACKERS if getattr(self, kind) is not None)

    @property
    def options(self) -> TrackerOptions:
        """Its options."""
        options: TrackerOptions = getattr(self, self.kind)
        return options


TRACKERS = tuple(NamedTracker.model_fields)
"""The names of all trackers."""


def as_named(value: Any) -> Any:
    """`mlflow`, and `{mlflow: }` without any option, as the fields of a `NamedTracker`."""
    if isinstance(value, str):
        value = {value: {}}
    if isinstance(value, NamedTracker):
        return value
    if not isinstance(value, dict):
        raise refusal(f"must be the name of a tracker, or a mapping of it, not {shown(value)}")
    for kind in value:
        if kind not in TRACKERS:
            raise refusal(f"{shown(kind)} is not a tracker; {nearest(str(kind), TRACKERS)}")
    return {kind: {} if options is None else options for kind, options in value.items()}


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str | dict) else value


def _different(trackers: tuple[NamedTracker, ...]) -> tuple[NamedTracker, ...]:
    kinds = [tracker.kind for tracker in trackers]
    for kind in TRACKERS:
        if kinds.count(kind) > 1:
            raise refusal(f"names {kind} twice; remove one")
    return trackers


TrackerList = Annotated[
    tuple[Annotated[NamedTracker, BeforeValidator(as_named)], ...],
    Field(strict=False),
    BeforeValidator(_listed),
    AfterValidator(_different),
]
