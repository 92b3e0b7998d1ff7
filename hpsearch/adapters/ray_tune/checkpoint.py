"""A checkpoint as Ray Tune's users know it: a folder that a trial saves and continues from."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trials.checkpoints import folders

FOLDER = "checkpoint"
"""In a checkpoint of a trial: the folder with what the trainable saved."""


class Checkpoint:
    """A folder with files of a trainable: a local one, or the URL of one in an object store."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    @classmethod
    def from_directory(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """The checkpoint that a folder is."""
        return cls(path)

    def to_directory(self, path: str | os.PathLike[str] | None = None) -> str:
        """Copy the files into a folder, else into a new temporary one, and return its path."""
        target = Path(tempfile.mkdtemp(prefix="checkpoint_")) if path is None else Path(path)
        with self.as_directory() as files:
            shutil.copytree(files, target, dirs_exist_ok=True)
        return str(target)

    @contextmanager
    def as_directory(self) -> Iterator[str]:
        """A local folder with the files, to be read only: the folder itself where it is local."""
        if not folders.is_url(self.path):
            yield self.path
            return
        whole, _, inner = self.path.rpartition("/")
        folder, name = folders.split(whole)
        with folders.folder_at(folder).local(name) as files:
            yield str(files / inner)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"Checkpoint({self.path!r})"
