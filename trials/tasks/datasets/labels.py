"""The classes of a data set, their names and numbers."""

import collections
import itertools
import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from trials.contract import Problem
from trials.descriptions.cells import number_in

FIRST = 5  # rows or classes that a problem names
LONGEST = 60  # letters of a name that a problem shows
_WHOLE = re.compile(r"-?[0-9]{1,18}")


def class_names(labels: Iterable[str | None]) -> list[str]:
    """The classes in order: by number where all are whole numbers, else by name. The order follows
    from the names alone: 1, 01 and 001 are one number, ordered by letters."""
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


def listed(names: Iterable[str], separator: str = ", ") -> str:
    found = list(names)
    return separator.join([*found[:FIRST], *(["..."] if len(found) > FIRST else [])])


def quoted(text: str) -> str:
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}…")


def alike(names: Iterable[str]) -> list[list[str]]:
    """The groups of names that differ in case, in white space, or in how a number is written."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(folded(name), []).append(name)
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def grouped(groups: Iterable[Iterable[str]]) -> str:
    return listed((" and ".join(map(quoted, group)) for group in groups), "; ")


def folded(name: str) -> str:
    """A name without what people do not see or mean: case, blanks, forms of letters and digits."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    shown = "".join(
        letter
        for letter in plain
        if not letter.isspace() and letter != "_" and unicodedata.category(letter) != "Cf"
    )
    number = number_in(shown)
    return shown if number is None else f"{float(number):.15g}"


def problems_with(labels: Iterable[str | None], where: str) -> list[Problem]:
    """The problem of training data with one class only."""
    names = set(labels) - {None}
    if len(names) != 1:
        return []
    what = f"all training rows have one class, {quoted(str(names.pop()))}; two are needed"
    return [Problem(where, what)]


def unseen(train: Sequence[str | None], other: Sequence[str | None], where: str) -> list[Problem]:
    """The problem of other data with classes that the training data does not have. `other`: the
    class of each row; None for a row without one. `where`: the study file's key of the other
    data."""
    known = set(train)
    unknown = {str(label) for label in set(other) - known - {None}}
    if not unknown:
        return []
    rows = sum(label in unknown for label in other)
    shown = listed(quoted(name) for name in sorted(unknown))
    classes = "1 class" if len(unknown) == 1 else f"{len(unknown)} classes"
    what = f"has {classes} that no training row has: {shown} (rows: {rows})"
    groups = alike([*unknown, *map(str, known - {None})])
    near = [group for group in groups if unknown.intersection(group)]
    if near:
        return [Problem(where, f"{what}; write them as in training: {grouped(near)} may be one")]
    return [Problem(where, f"{what}; remove them, or train them too")]
