"""The classes of a data set: their names and numbers, and classes that were never trained."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from trials.contract import Problem

FIRST = 5
"""How many rows or classes a problem names."""
LONGEST_NAME = 1000
"""Characters in the name of a class, which is written into every checkpoint."""
_WHOLE = re.compile(r"-?[0-9]{1,18}")


def class_names(labels: Iterable[str | None]) -> list[str]:
    """The classes in order: by number where all are whole numbers, else by name."""
    names = {str(label) for label in labels}
    if all(_WHOLE.fullmatch(name) for name in names):
        return sorted(names, key=int)
    return sorted(names)


def problems_with(labels: Iterable[str | None], where: str) -> list[Problem]:
    """The problem of training data with one class only, or with something that is no class's name."""
    names = {label for label in labels if label is not None}
    if too_long := [len(name) for name in names if len(name) > LONGEST_NAME]:
        what = f"has a class whose name has {max(too_long)} characters, {LONGEST_NAME} is the most; is it the right "
        return [Problem(where, f"{what}column? Name another one, or shorten it")]
    if len(names) != 1:
        return []
    return [Problem(where, f"all training rows have one class, {names.pop()!r}; two are needed")]


def unseen(train: Sequence[str | None], other: Sequence[str | None], where: str) -> list[Problem]:
    """The problem of data with classes that the training data has not.

    Args:
        train: The class of each training row.
        other: The class of each row of the other data; None where it has none.
        where: The study file's key that names the other data.
    """
    names = sorted({label for label in other if label is not None} - {str(label) for label in train})
    if not names:
        return []
    named = ", ".join(map(repr, names[:FIRST])) + (", ..." if len(names) > FIRST else "")
    rows = sum(label in set(names) for label in other)
    classes = f"{len(names)} class" + ("es" if len(names) != 1 else "")
    what = f"has {classes} that no training row has: {named} (rows: {rows}); remove them, or train them too"
    return [Problem(where, what)]
