"""A folder of checkpoints, on a disk or behind a URL: its operations, and the order in it.

It holds checkpoints by name, and two pointers to them. Each kind of folder keeps one promise: a
checkpoint that is listed is whole.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from trials.contract import Unit
from trials.disk.whole_folders import MANIFEST

TEMPORARY = ".writing-"
"""Begins the names of drafts, which are beside the checkpoints."""
_SINGULAR = {unit: unit.value.removesuffix("s") for unit in Unit}
_UNITS = "|".join(_SINGULAR.values())
_NAME = re.compile(rf"(?:{_UNITS})-(\d+(?:\.\d+)?(?:e-\d+)?)(?:-(\d+))?")


class FolderError(Exception):
    """A URL that cannot be used as a folder for checkpoints."""


def is_checkpoint(name: str) -> bool:
    """Whether a checkpoint may have this name."""
    return _NAME.fullmatch(name) is not None


def order_of(name: str) -> tuple[float, int]:
    """Sorts checkpoints from old to new: by their level, then by how often it was saved."""
    match = _NAME.fullmatch(name)
    if match is None:
        return (0, 0)
    return (float(match[1]), int(match[2] or 1))


class CheckpointFolder(ABC):
    """The checkpoints of a trial. Operations raise the errors of the disk or the store."""

    @abstractmethod
    def path(self, name: str) -> Path | str:
        """The full name of a checkpoint, as reports give it."""

    # ---------------------------------------------------------------------------- checkpoints

    @abstractmethod
    def names(self) -> list[str]:
        """Everything in the folder that may be a checkpoint; behind a URL, what has a manifest."""

    @abstractmethod
    def taken(self, name: str) -> bool:
        """Whether there is anything of this name already."""

    @abstractmethod
    def unfinished(self) -> list[str]:
        """What processes have begun to write and not finished."""

    @abstractmethod
    def draft(self) -> Path:
        """A new empty folder of this machine to write a checkpoint in, as in `disk.drafts`."""

    @abstractmethod
    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        """Turn a sealed draft into a checkpoint, which `pointers` (of `last` and `best`) then name.

        Raises:
            FileExistsError: The name is taken. The draft stays.
        """

    @abstractmethod
    def remove(self, name: str) -> Exception | None:
        """Remove a checkpoint or a draft; what cannot be removed stays.

        Returns: Why something of it is left; None if nothing is.
        """

    @abstractmethod
    def strip(self, name: str, files: Iterable[str]) -> None:
        """Remove files of a checkpoint; what cannot be removed stays."""

    @abstractmethod
    def add(self, name: str, file: str, content: bytes) -> None:
        """Put one more small file into a checkpoint that is there."""

    @abstractmethod
    def read(self, name: str, file: str) -> bytes:
        """One file of a checkpoint.

        Raises:
            FileNotFoundError: There is no such file.
        """

    @abstractmethod
    def local(self, name: str) -> AbstractContextManager[Path]:
        """A context with a folder of this machine that holds the checkpoint's files."""

    @abstractmethod
    def target(self, pointer: str) -> str | None:
        """The name of the checkpoint that a pointer names, or None."""

    @abstractmethod
    def point(self, pointer: str, name: str) -> None:
        """Let a pointer name a checkpoint that is there, in one step."""

    # -------------------------------------------------------------------- files of the folder

    @abstractmethod
    def entries(self) -> list[str]:
        """The names of all files and folders in it; empty if it does not exist."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """The size of each file in it, in bytes, by its path inside the folder."""

    @abstractmethod
    def text(self, file: str) -> str | None:
        """The content of a small file, in which bytes that are not UTF-8 are replaced; None if
        there is no such file."""

    @abstractmethod
    def write(self, file: str, text: str) -> None:
        """Write a small file in one step; the folder is created if missing."""

    @abstractmethod
    def dissolve(self, file: str) -> None:
        """Remove a small file, and then the folder if nothing else is in it."""

    # --------------------------------------------------------------------------- by their order

    def checkpoints(self) -> list[str]:
        """The names of all checkpoints, from old to new."""
        names = [name for name in self.names() if is_checkpoint(name)]
        return sorted(names, key=order_of)

    def older_than(self, name: str) -> list[str]:
        """The checkpoints before `name`, from old to new."""
        order = order_of(name)
        return [other for other in self.checkpoints() if order_of(other) < order]

    def drafts(self) -> list[str]:
        """The drafts of killed processes. Training code may keep other folders beside them."""
        found = self.unfinished()
        return [name for name in found if is_checkpoint(name) or name.startswith(TEMPORARY)]

    def named(self, name: str) -> str:
        """The checkpoint that a name stands for: itself, or the target of a pointer."""
        return name if is_checkpoint(name) else self.target(name) or name

    def free_name(self, unit: Unit, level: float) -> str:
        """A name for a checkpoint, such as `epoch-0.5` or `step-300`.

        A level that is saved twice (after a resume, or with more known about it) gets a second
        name, because a folder cannot be replaced in one step.
        """
        number = int(level) if float(level).is_integer() else level
        name = first = f"{_SINGULAR[unit]}-{number}"
        again = 2
        while self.taken(name):
            name = f"{first}-{again}"
            again += 1
        return name

    # --------------------------------------------------------------------------- by their manifest

    def manifest(self, name: str) -> dict[str, Any]:
        """The manifest of a checkpoint; empty if it cannot be read."""
        try:
            content = self.read(name, MANIFEST)
            manifest = json.loads(content)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return {}
        return manifest if isinstance(manifest, dict) else {}

    def of_stretch(self, names: Collection[str], stretch: str) -> list[str]:
        """The checkpoints among `names` that belong to a stretch of a run."""
        return [name for name in names if self.manifest(name).get("stretch") == stretch]

    def take_state(self, name: str) -> None:
        """Leave only the weights of a checkpoint, if its manifest says which files those are."""
        files = self.manifest(name).get("state", {})
        self.strip(name, files)
