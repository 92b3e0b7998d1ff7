"""A folder of checkpoints, on a disk or behind a URL: its operations, and the order in it.

It holds checkpoints by name, and two pointers to them, `last` and `best`. Every checkpoint that it
lists is whole.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from trials.checkpoints.disk.names import below, component, relative
from trials.checkpoints.disk.whole_folders import MANIFEST, manifest_of
from trials.contract import Unit

TEMPORARY = ".writing-"  # begins the names of drafts, which are beside the checkpoints on a disk
_SINGULAR = {unit: unit.value.removesuffix("s") for unit in Unit}
_UNITS = "|".join(_SINGULAR.values())
_NAME = re.compile(rf"(?:{_UNITS})-(\d+(?:\.\d+)?(?:e-\d+)?)(?:-(\d+))?")


class FolderError(Exception):
    """A URL that cannot be used as a folder for checkpoints."""


def is_checkpoint(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def order_of(name: str) -> tuple[float, int]:
    """The key that sorts checkpoints from old to new: the level, then the count of its saves."""
    match = _NAME.fullmatch(name)
    if match is None:
        return (0, 0)
    return (float(match[1]), int(match[2] or 1))


class CheckpointFolder(ABC):
    """The checkpoints of a trial. Operations raise the errors of the disk or the store."""

    def __init__(self, files: Any, root: str) -> None:
        self._files = files
        self._root = root

    @abstractmethod
    def path(self, name: str) -> Path | str:
        """The full name of a checkpoint, as reports give it."""

    @abstractmethod
    def names(self) -> list[str]:
        """The names of checkpoints and of other folders that may be checkpoints."""

    @abstractmethod
    def drafts(self) -> list[str]:
        """The names of unfinished checkpoints. Training code may keep other folders beside them."""

    @abstractmethod
    def draft(self) -> Path:
        """A new empty folder of this machine to write a checkpoint in
        (`trials.checkpoints.disk.drafts`)."""

    @abstractmethod
    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        """Turn a sealed draft into a checkpoint, which `pointers` (of `last` and `best`) then name.
        Raises FileExistsError if the name is taken. The draft stays."""

    @abstractmethod
    def remove(self, name: str) -> Exception | None:
        """Remove a checkpoint or a draft. Returns why a part of it is left; else None."""

    @abstractmethod
    def local(self, name: str) -> AbstractContextManager[Path]:
        """A folder of this machine with the checkpoint's files, for the length of the context."""

    def target(self, pointer: str) -> str | None:
        """The name of the checkpoint that a pointer names; None if it is missing, or damaged."""
        name = self._pointed(pointer)
        return name if name is not None and is_checkpoint(name) else None

    @abstractmethod
    def _pointed(self, pointer: str) -> str | None:
        """What a pointer says."""

    @abstractmethod
    def point(self, pointer: str, name: str) -> None:
        """Let a pointer name an existing checkpoint, in one step."""

    @abstractmethod
    def write(self, file: str, text: str) -> None:
        """Write a small file in one step; the folder is created if missing."""

    def taken(self, name: str) -> bool:
        return bool(self._files.exists(self._inside(name)))

    def strip(self, name: str, files: Iterable[str]) -> None:
        """Remove files of a checkpoint, as far as possible."""
        for file in files:
            # Each store has errors of its own, and none of them may end a training.
            with suppress(Exception):
                inside = self._inside(name, file)
                if isinstance(self._files, LocalFileSystem):
                    below(Path(self._root), f"{name}/{file}")
                self._files.rm_file(inside)

    def add(self, name: str, file: str, content: bytes) -> None:
        self._files.pipe_file(self._inside(name, file), content)

    def read(self, name: str, file: str) -> bytes:
        return bytes(self._files.cat_file(self._inside(name, file)))

    def entries(self) -> list[str]:
        """The names of all files and folders in it; empty if it does not exist."""
        try:
            listed = self._files.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        names = [PurePosixPath(path).name for path in listed]
        return [name for name in names if name]

    def sizes(self) -> dict[str, int]:
        """The size of each file in it, in bytes, by its path inside the folder."""
        if not self._files.exists(self._root):
            return {}
        listed = self._files.find(self._root, detail=True)
        start = len(self._root)
        return {path[start:].lstrip("/"): int(each["size"] or 0) for path, each in listed.items()}

    def text(self, file: str) -> str | None:
        """The content of a small file, without bytes that are not UTF-8; None if it is missing."""
        try:
            content = bytes(self._files.cat_file(self._inside(file)))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return content.decode("utf-8", "replace")

    def dissolve(self, file: str) -> None:
        """Remove a small file, and then the folder if it is empty."""
        with suppress(FileNotFoundError):
            self._files.rm_file(self._inside(file))
        if not self.entries():
            # A store has no empty folders.
            with suppress(FileNotFoundError, NotImplementedError):
                self._files.rmdir(self._root)

    def is_link(self, name: str) -> bool:
        """True if something in the folder only leads elsewhere. Removed is then the link."""
        is_on_disk = isinstance(self._files, LocalFileSystem)
        return is_on_disk and Path(self._inside(name)).is_symlink()

    def _inside(self, name: str, file: str | None = None) -> str:
        """The path of something in the folder, or of a file in there. Raises UnsafeName."""
        inside = f"{self._root}/{component(name)}"
        return inside if file is None else f"{inside}/{relative(file)}"

    def checkpoints(self) -> list[str]:
        names = [name for name in self.names() if is_checkpoint(name)]
        return sorted(names, key=order_of)

    def older_than(self, name: str) -> list[str]:
        """The checkpoints before `name`, from old to new."""
        order = order_of(name)
        return [other for other in self.checkpoints() if order_of(other) < order]

    def named(self, name: str) -> str:
        """The name of a checkpoint, from its own name or a pointer's."""
        return name if is_checkpoint(name) else self.target(name) or name

    def free_name(self, unit: Unit, level: float) -> str:
        """A name for a checkpoint, such as `epoch-0.5` or `step-300`. A level that is saved twice
        gets a second name, because a folder cannot be replaced in one step."""
        number = int(level) if float(level).is_integer() else level
        name = first = f"{_SINGULAR[unit]}-{number}"
        again = 2
        while self.taken(name):
            name = f"{first}-{again}"
            again += 1
        return name

    def manifest(self, name: str) -> dict[str, Any]:
        """The manifest of a checkpoint; empty if it cannot be read."""
        try:
            return manifest_of(self.read(name, MANIFEST))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return {}

    def of_stretch(self, names: Collection[str], stretch: str) -> list[str]:
        return [name for name in names if self.manifest(name).get("stretch") == stretch]

    def take_state(self, name: str) -> None:
        """Leave only the weights of a checkpoint, by its manifest."""
        files = self.manifest(name).get("state", {})
        self.strip(name, files)
