"""Hyperparameter search that spends a GPU budget well, survives failures,
and says how sure it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hpsearch.api import StudyReader

__all__ = ["open"]


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
