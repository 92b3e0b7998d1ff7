"""The experiment trackers that `track` in a study file can name: those that plugins offer."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationInfo, create_model

from hpsearch.domain.plugins.door import imported, offers_of
from hpsearch.domain.plugins.offers import TrackerPlugin
from hpsearch.study_file.methods import RECORDED
from hpsearch.study_file.validation import Mistake, Model, refusal, shown
from trials.settings import nearest

_offered = offers_of(TrackerPlugin)
_OPTIONS = imported("tracker", {name: each.options for name, each in _offered.items()})
TRACKERS: Mapping[str, TrackerPlugin] = {name: _offered[name] for name in _OPTIONS}
"""All trackers, by name."""


class _Named(Model):
    """One tracker by its name, with its options."""

    def mistakes(self) -> Iterator[Mistake]:
        given = [kind for kind in TRACKERS if getattr(self, kind) is not None]
        if not given:
            yield "", f"names no tracker; known are {', '.join(TRACKERS)}"
        for kind in given[1:]:
            yield kind, f"stands beside {given[0]}; give each tracker an item of its own (- {kind})"

    @property
    def kind(self) -> str:
        return next(kind for kind in TRACKERS if getattr(self, kind) is not None)

    @property
    def options(self) -> BaseModel:
        options: BaseModel = getattr(self, self.kind)
        return options


if TYPE_CHECKING:
    NamedTracker = _Named
else:
    NamedTracker = create_model(
        "Tracker",
        __base__=_Named,
        __doc__=_Named.__doc__,
        **{
            name: (options | None, Field(None, description=options.__doc__))
            for name, options in _OPTIONS.items()
        },
    )


def as_named(value: Any) -> Any:
    """`mlflow`, and `{mlflow: }` without any option, as the fields of a `NamedTracker`."""
    if isinstance(value, str) and value not in TRACKERS:
        raise refusal(f"{shown(value)} is not a tracker; {nearest(value, TRACKERS)}")
    if isinstance(value, str):
        return {value: {}}
    if not isinstance(value, dict):
        return value
    return {kind: {} if options is None else options for kind, options in value.items()}


def _listed(value: Any, info: ValidationInfo) -> Any:
    """One tracker as a list; of a recorded study without those of plugins that are gone."""
    trackers = [value] if isinstance(value, str | dict) else value
    if info.context != RECORDED or not isinstance(trackers, list):
        return trackers
    return [each for each in trackers if not uninstalled(each)]


def uninstalled(track: Any) -> list[str]:
    """The trackers in the `track` section of a recorded study that no installed plugin offers."""
    parts = track if isinstance(track, list) else [track] if track else []
    names = [name for part in parts for name in (part if isinstance(part, dict) else [part])]
    return [str(name) for name in names if name not in TRACKERS]


def _different(trackers: tuple[NamedTracker, ...]) -> tuple[NamedTracker, ...]:
    kinds = [tracker.kind for tracker in trackers]
    for kind in TRACKERS:
        if kinds.count(kind) > 1:
            raise refusal(f"names {kind} twice; remove one")
    return trackers


_Written: Any = Literal[tuple(TRACKERS)] | NamedTracker
TrackerList = Annotated[
    tuple[Annotated[NamedTracker, BeforeValidator(as_named)], ...],
    Field(strict=False),
    BeforeValidator(_listed, json_schema_input_type=_Written | list[_Written]),
    AfterValidator(_different),
]
"""The trackers of a study file: a name, a mapping of its options, or a list of these."""
