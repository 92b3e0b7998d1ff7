"""Checkpoints in a folder of this machine.

A checkpoint is renamed into its place, so that it is there as a whole or not at all. A pointer is a
symbolic link.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from fsspec.implementations.local import LocalFileSystem

from trials.checkpoints.checkpoint_folder import TEMPORARY, CheckpointFolder
from trials.checkpoints.disk import drafts, trees, whole_folders
from trials.checkpoints.disk.names import component
from trials.checkpoints.disk.whole_folders import MANIFEST, flush_one, make_folder, whole_file


class DiskFolder(CheckpointFolder):
    def __init__(self, folder: Path) -> None:
        super().__init__(LocalFileSystem(), str(folder.absolute()))
        self._folder = folder

    def path(self, name: str) -> Path:
        return self._folder / component(name)

    def names(self) -> list[str]:
        # Those with a manifest, and the empty ones, with which a removal ends.
        if not self._folder.is_dir():
            return []
        return [path.name for path in self._folder.iterdir() if _is_ours(path)]

    def drafts(self) -> list[str]:
        return [path.name for path in self._folder.glob(f"{TEMPORARY}*")]

    def draft(self) -> Path:
        # On the same file system, so that it can be renamed.
        make_folder(self._folder)
        return drafts.new(self._folder, TEMPORARY)

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        # The checkpoint is on the disk before a pointer names it.
        whole_folders.put(draft, self.path(name))
        for pointer in pointers:
            self._link(pointer, name)
        flush_one(self._folder)

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        yield self.path(name)

    def remove(self, name: str) -> Exception | None:
        # The manifest last: what is left of a checkpoint is still seen as one, and removed later.
        folder = self.path(name)
        if folder.is_symlink():
            folder.unlink(missing_ok=True)
            return None
        if (folder / MANIFEST).is_file():
            for path in folder.iterdir():
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                elif path.name != MANIFEST:
                    path.unlink(missing_ok=True)
        return trees.remove(folder)

    def _pointed(self, pointer: str) -> str | None:
        path = self._folder / pointer
        return path.readlink().name if path.is_symlink() else None

    def point(self, pointer: str, name: str) -> None:
        self._link(pointer, name)
        flush_one(self._folder)

    def _link(self, pointer: str, name: str) -> None:
        temporary = self._folder / f".{pointer}-{os.getpid()}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(name)
        temporary.replace(self._folder / pointer)

    def sizes(self) -> dict[str, int]:
        sizes = {}
        for name, path in trees.files_in(self._folder).items():
            with suppress(FileNotFoundError):  # another process removes it
                sizes[name] = path.lstat().st_size
        return sizes

    def write(self, file: str, text: str) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with whole_file(self.path(file)) as unfinished:
            unfinished.write_text(text, "utf-8")


def _is_ours(path: Path) -> bool:
    if (path / MANIFEST).is_file():
        return True
    return path.is_dir() and not any(path.iterdir())
