"""The packages that trackers need."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from hpsearch.errors import UserError
from hpsearch.study_file.trackers import NamedTracker

DISTRIBUTIONS = {
    "mlflow": ("mlflow-skinny", "mlflow"),
    "wandb": ("wandb",),
    "tensorboard": ("tensorboard",),
    "trackio": ("trackio",),
}
"""By tracker, the packages of which one must be installed. Folders of the same names, which these
trackers make beside a study file, are no packages."""


def missing(trackers: Iterable[NamedTracker]) -> list[str]:
    """The trackers, by name, whose package is not installed."""
    return [tracker.kind for tracker in trackers if not _is_installed(tracker.kind)]


def refuse_missing(trackers: Iterable[NamedTracker]) -> None:
    """Check that all packages are installed; raises a `UserError` if one is not."""
    absent = missing(trackers)
    if absent:
        what = f"track: {', '.join(absent)} cannot be used: not installed here"
        raise UserError(what, f"{install(absent)} - or remove it from track in the study file")


def install(absent: Iterable[str]) -> str:
    """The command that installs what trackers need."""
    extras = ",".join(absent)
    return f'pip install ".[{extras}]" in the folder of hpsearch\'s sources'


def _is_installed(kind: str) -> bool:
    return any(_has(distribution) for distribution in DISTRIBUTIONS[kind])


def _has(distribution: str) -> bool:
    try:
        metadata.distribution(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
