"""Hyperparameter search that spends a GPU budget well, and says how sure its result is."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpsearch.api import StudyReader
    from hpsearch.asking.opening import SpecSource
    from hpsearch.asking.study import AskedStudy

__all__ = ["create", "open", "resume"]


def _import_trials() -> None:
    """Import the package `trials` that belongs to this one, also in a program beside which a file
    or folder has that name."""
    place = Path(__file__).parents[1] / "trials" / "__init__.py"
    found = sys.modules.get("trials")
    if found is not None and found.__file__ == str(place):
        return
    if found is not None:
        what = f"hpsearch has a package trials, and {found.__file__} has the same name"
        raise ImportError(f"{what}: rename it")
    spec = spec_from_file_location("trials", place, submodule_search_locations=[str(place.parent)])
    assert spec is not None
    assert spec.loader is not None
    sys.modules["trials"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["trials"])


_import_trials()


def create(url: str, spec: SpecSource) -> AskedStudy:
    """Create a study whose trials this program asks for and trains itself.

    If the database has a study of that name with the same study file, that one goes on: so the same
    call can stand in each of several processes.

    Args:
        url: The database, such as ``sqlite:///hpsearch.db``.
        spec: The study file: a mapping, its path, or its text. It needs no ``task``.

    Raises:
        SpecError: The study file has mistakes; the error lists them all.
        StudyExists: The name is taken by a study with another study file.
        StudyHeld: ``hpsearch run`` or ``resume`` drives the study.
        StoreUnreachable: The database does not answer.
    """
    from hpsearch.asking.opening import create as create_study

    return create_study(url, spec)


def resume(
    url: str, name: str, *, retry: str | None = None, changed: bool = False, **budget: float | str
) -> AskedStudy:
    """Go on with a study, to ask for its trials.

    Args:
        url: The database.
        name: The study's name in it.
        retry: Failed trials to run again under their numbers: ``failed`` for all, such as ``3,7``,
            or a filter as of ``hpsearch trials --where``.
        changed: True to begin a new version of the study, as this program has changed.
        budget: New limits for the study, by their keys in the study file: ``trials=40``.

    Raises:
        StudyNotFound: There is no study of that name.
        SpecError: The new budget is not valid.
        UserError: A trial that is to be retried has not failed, or no budget is left for it.
        StudyHeld: ``hpsearch run`` or ``resume`` drives the study.
        StoreUnreachable: The database does not answer, or nothing of ours is in it.
    """
    from hpsearch.asking.opening import resume as resume_study

    return resume_study(url, name, budget, retry, changed=changed)


def open(url: str, name: str) -> StudyReader:
    """Open a study for reading, as pandas frames or as an Optuna study.

    Args:
        url: The database, such as ``sqlite:///hpsearch.db``.
        name: The study's name in it.

    Raises:
        StudyNotFound: There is no study of that name.
        StoreUnreachable: The database does not answer, or nothing of ours is in it.
    """
    from hpsearch.api import (
        open_study,  # here, so that `hpsearch --help` loads neither pandas nor SQLAlchemy
    )

    return open_study(url, name)
