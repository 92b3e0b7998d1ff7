"""What a place that holds the checkpoints of a trial can do.

A place holds checkpoints by name, and two pointers to them. Each kind of place keeps one promise: a
checkpoint that is listed is whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class PlaceError(Exception):
    """A URL that cannot be used as a place for checkpoints."""


class Place(Protocol):
    """A folder of checkpoints."""

    def path(self, name: str) -> Path | str:
        """The full name of a checkpoint, as reports give it."""

    def names(self) -> list[str]:
        """Everything in it that may be a checkpoint; behind a URL, what has a manifest."""

    def taken(self, name: str) -> bool:
        """Whether there is anything of this name already."""

    def drafts(self) -> list[str]:
        """What processes have begun to write and not finished."""

    def draft(self) -> Path:
        """A new empty folder of this machine to write a checkpoint in, as in `disk.drafts`."""

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        """Turn a sealed draft into a checkpoint.

        Args:
            draft: Gone afterwards.
            name: That of the checkpoint.
            pointers: Which of `last` and `best` are to name it.

        Raises:
            FileExistsError: The name is taken. The draft stays.
        """

    def remove(self, name: str) -> Exception | None:
        """Remove a checkpoint or a draft; what cannot be removed stays.

        Returns: Why something of it is left; None if nothing is.
        """

    def entries(self) -> list[str]:
        """The names of all files and folders in it; none if it does not exist.

        Raises:
            Exception: It cannot be read; each store has errors of its own.
        """

    def text(self, file: str) -> str | None:
        """The content of a small file in it; None if there is no such file.

        Raises:
            Exception: It cannot be read.
        """

    def write(self, file: str, text: str) -> None:
        """Write a small file in one step; the folder is created if missing.

        Raises:
            Exception: It cannot be written.
        """

    def dissolve(self, file: str) -> None:
        """Remove a small file, and then the folder if nothing else is in it.

        Raises:
            Exception: It cannot be removed.
        """

    def strip(self, name: str, files: Iterable[str]) -> None:
        """Remove files of a checkpoint; what cannot be removed stays."""

    def sizes(self) -> dict[str, int]:
        """The size of each file in it, in bytes, by its path inside the place."""

    def target(self, pointer: str) -> str | None:
        """The name of the checkpoint that a pointer names, or None."""

    def point(self, pointer: str, name: str) -> None:
        """Let a pointer name a checkpoint that is there."""

    def add(self, name: str, file: str, content: bytes) -> None:
        """Put one more small file into a checkpoint that is there."""

    def read(self, name: str, file: str) -> bytes:
        """One file of a checkpoint.

        Raises:
            FileNotFoundError: There is no such file.
        """

    def local(self, name: str) -> AbstractContextManager[Path]:
        """A context with a folder of this machine that holds the checkpoint's files."""
