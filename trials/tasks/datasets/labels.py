"""The classes of a data set, their names and numbers."""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from trials.contract import Problem

FIRST = 5
"""Rows or classes that a problem names."""
_WHOLE = re.compile(r"-?[0-9]{1,18}")


def class_names(labels: Iterable[str | None]) -> list[str]:
    """The classes in order: by number where all are whole numbers, else by name.

    The order follows from the names alone: 1, 01 and 001 are one number, ordered by letters.
    """
    names = {str(label) for label in labels}
    if all(_WHOLE.fullmatch(name) for name in names):
        return sorted(names, key=lambda name: (int(name), name))
    return sorted(names)


def numbers_of(labels: Iterable[str | None], names: Sequence[str]) -> npt.NDArray[np.int64]:
    """The place of each label among the names, shape (n,)."""
    numbers = {name: number for number, name in enumerate(names)}
    return np.array([numbers[str(label)] for label in labels], dtype=np.int64)


def rarest(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rarest label of each row, by all rows; empty for a row without labels."""
    counts = collections.Counter(itertools.chain.from_iterable(rows))
    return [min(row, key=lambda name: (counts[name], name), default="") for row in rows]


def problems_with(labels: Iterable[str | None], where: str) -> list[Problem]:
    """The problem of training data with one class only."""
    names = set(labels) - {None}
    if len(names) != 1:
        return []
    what = f"all training rows have one class, {names.pop()!r}; two are needed"
    return [Problem(where, what)]


def unseen(train: Sequence[str | None], other: Sequence[str | None], where: str) -> list[Problem]:
    """The problem of other data with classes that the training data does not have.

    Args:
        other: The class of each row; None for a row without one.
        where: The study file's key of the other data.
    """
    unknown = set(other) - set(train) - {None}
    if not unknown:
        return []
    rows = sum(label in unknown for label in other)
    names = sorted(map(repr, unknown))
    shown = ", ".join([*names[:FIRST], *(["..."] if len(names) > FIRST else [])])
    classes = "1 class" if len(names) == 1 else f"{len(names)} classes"
    what = f"has {classes} that no training row has: {shown} (rows: {rows})"
    return [Problem(where, f"{what}; remove them, or train them too")]
