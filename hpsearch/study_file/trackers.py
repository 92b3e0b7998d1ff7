"""The experiment trackers that `track` in a study file can name, with their options."""

import re
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field

from hpsearch.study_file.validation import Mistake, Model, refusal, shown
from trials.settings import nearest

_PASSWORD = re.compile(
    r"://[^/@:]*:(?!\d+([/?]|$))[^@]+@|[?&]\w*(passw(or)?d|secret|token|api_?key)=", re.IGNORECASE
)
"""In a URL: before its host, or among its options. A number after a colon is a port."""

Text: TypeAlias = Annotated[str, Field(min_length=1)]


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
    """Online sends runs, offline writes them; without it as WANDB_MODE says, else online."""
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
        """The name of the tracker."""
        return next(kind for kind in TRACKERS if getattr(self, kind) is not None)

    @property
    def options(self) -> TrackerOptions:
        """The options of the tracker."""
        options: TrackerOptions = getattr(self, self.kind)
        return options


TRACKERS = tuple(NamedTracker.model_fields)
"""The names of all trackers."""


def as_named(value: Any) -> Any:
    """`mlflow`, and `{mlflow: }` without any option, as the fields of a `NamedTracker`."""
    if isinstance(value, str) and value not in TRACKERS:
        raise refusal(f"{shown(value)} is not a tracker; {nearest(value, TRACKERS)}")
    if isinstance(value, str):
        return {value: {}}
    if not isinstance(value, dict):
        return value
    return {kind: {} if options is None else options for kind, options in value.items()}


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str | dict) else value


def _different(trackers: tuple[NamedTracker, ...]) -> tuple[NamedTracker, ...]:
    kinds = [tracker.kind for tracker in trackers]
    for kind in TRACKERS:
        if kinds.count(kind) > 1:
            raise refusal(f"names {kind} twice; remove one")
    return trackers


_Kind = Literal["mlflow", "wandb", "tensorboard"]
_Written: TypeAlias = _Kind | NamedTracker
TrackerList = Annotated[
    tuple[Annotated[NamedTracker, BeforeValidator(as_named)], ...],
    Field(strict=False),
    BeforeValidator(_listed, json_schema_input_type=_Written | list[_Written]),
    AfterValidator(_different),
]
"""The trackers of a study file: a name, a mapping of its options, or a list of these."""
