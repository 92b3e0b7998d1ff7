"""Checkpoints in a folder of this machine.

A checkpoint is renamed into its place, so that it is there as a whole or not at all. A pointer is a
symbolic link.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from trials.checkpoints.checkpoint_folder import TEMPORARY, CheckpointFolder
from trials.disk import drafts, trees, whole_folders
from trials.disk.whole_folders import MANIFEST, flush_one, make_folder


class DiskFolder(CheckpointFolder):
    """A folder of this machine, or one that is mounted here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        return self._folder / name

    def names(self) -> list[str]:
        # Those with a manifest, and the empty ones, with which a removal ends. Training code may
        # have folders of its own beside them.
        if not self._folder.is_dir():
            return []
        return [path.name for path in self._folder.iterdir() if _is_ours(path)]

    def taken(self, name: str) -> bool:
        return (self._folder / name).exists()

    def unfinished(self) -> list[str]:
        return [path.name for path in self._folder.glob(f"{TEMPORARY}*")]

    def draft(self) -> Path:
        # On the same file system, so that it can be renamed.
        make_folder(self._folder)
        return drafts.new(self._folder, TEMPORARY)

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        # The checkpoint is on the disk before a pointer names it.
        whole_folders.put(draft, self._folder / name)
        for pointer in pointers:
            self._link(pointer, name)
        flush_one(self._folder)

    def add(self, name: str, file: str, content: bytes) -> None:
        checkpoint = self._folder / name
        path = checkpoint / file
        path.write_bytes(content)
        flush_one(path)
        flush_one(checkpoint)

    def read(self, name: str, file: str) -> bytes:
        return (self._folder / name / file).read_bytes()

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        yield self._folder / name

    def remove(self, name: str) -> Exception | None:
        # The manifest last: what is left of a checkpoint is still seen as one, and removed later.
        folder = self._folder / name
        with suppress(OSError):
            for path in folder.iterdir():
                if path.name != MANIFEST:
                    _remove(path)
        return trees.remove(folder)

    def strip(self, name: str, files: Iterable[str]) -> None:
        checkpoint = self._folder / name
        for file in files:
            path = checkpoint / file
            with suppress(OSError):
                path.unlink()

    def target(self, pointer: str) -> str | None:
        path = self._folder / pointer
        if not path.is_symlink():
            return self.text(pointer)  # a file that was written through the folder's URL
        target = path.readlink()
        return target.name

    def point(self, pointer: str, name: str) -> None:
        self._link(pointer, name)
        flush_one(self._folder)

    def _link(self, pointer: str, name: str) -> None:
        temporary = self._folder / f".{pointer}-{os.getpid()}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(name)
        temporary.replace(self._folder / pointer)

    def entries(self) -> list[str]:
        try:
            return [path.name for path in self._folder.iterdir()]
        except FileNotFoundError:
            return []

    def sizes(self) -> dict[str, int]:
        # Each file once: links and further names of a file count as nothing.
        found = {}
        counted = set()
        for entry in trees.entries(self._folder):
            if entry.is_file and entry.inode not in counted:
                counted.add(entry.inode)
                found[entry.name] = entry.facts.st_size
        return found

    def text(self, file: str) -> str | None:
        try:
            return (self._folder / file).read_text("utf-8", "replace")
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, file: str, text: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        temporary = self._folder / f"{TEMPORARY}{uuid.uuid4().hex}"
        try:
            temporary.write_text(text, "utf-8")
            flush_one(temporary)
            temporary.replace(self._folder / file)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def dissolve(self, file: str) -> None:
        (self._folder / file).unlink(missing_ok=True)
        if not self.entries():
            with suppress(FileNotFoundError):
                self._folder.rmdir()


def _is_ours(path: Path) -> bool:
    if (path / MANIFEST).is_file():
        return True
    return path.is_dir() and not any(path.iterdir())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        trees.remove(path)
    else:
        path.unlink()
