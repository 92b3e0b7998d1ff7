"""The checkpoints of a place by name, and their order from old to new."""

from __future__ import annotations

import re

from trials.checkpoints.folder_place import TEMPORARY
from trials.checkpoints.protocol import Place
from trials.contract import Unit

_SINGULAR = {unit: unit.value.removesuffix("s") for unit in Unit}
_UNITS = "|".join(_SINGULAR.values())
_NAME = re.compile(rf"(?:{_UNITS})-(\d+(?:\.\d+)?(?:e-\d+)?)(?:-(\d+))?")


def is_checkpoint(name: str) -> bool:
    """Whether a checkpoint may have this name."""
    return _NAME.fullmatch(name) is not None


def order_of(name: str) -> tuple[float, int]:
    """Sorts checkpoints from old to new: by their level, then by how often it was saved."""
    match = _NAME.fullmatch(name)
    if match is None:
        return (0, 0)
    return (float(match[1]), int(match[2] or 1))


def free_name(where: Place, unit: Unit, level: float) -> str:
    """A name for a checkpoint, such as `epoch-0.5` or `step-300`.

    A level that is saved twice (after a resume, or with more known about it) gets a second name,
    because a folder cannot be replaced in one step.
    """
    number = int(level) if float(level).is_integer() else level
    name = first = f"{_SINGULAR[unit]}-{number}"
    again = 2
    while where.taken(name):
        name = f"{first}-{again}"
        again += 1
    return name


def checkpoints_in(where: Place) -> list[str]:
    """All of them, from old to new."""
    names = [name for name in where.names() if is_checkpoint(name)]
    return sorted(names, key=order_of)


def older_than(where: Place, name: str) -> list[str]:
    """Those before `name`, from old to new."""
    order = order_of(name)
    return [other for other in checkpoints_in(where) if order_of(other) < order]


def drafts_in(where: Place) -> list[str]:
    """What killed processes have left. Training code of the user may keep other folders there."""
    return [name for name in where.drafts() if is_checkpoint(name) or name.startswith(TEMPORARY)]


def named(where: Place, name: str) -> str:
    """The checkpoint that a name stands for: itself, or the target of a pointer."""
    if is_checkpoint(name):
        return name
    return where.target(name) or name
