"""Where a trial's checkpoints live: a folder of this machine, or a folder of an object store named by a URL.

A place holds checkpoints by name and two pointers to them. Both kinds keep one promise: a checkpoint that is listed is
whole. In a local folder it is renamed there, and pointers are symbolic links; a store cannot rename a folder at once,
so a checkpoint is uploaded with its manifest last and counts once that is there, and a pointer is a small file.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Protocol

MANIFEST = "manifest.json"
TEMPORARY = ".writing-"


class PlaceError(Exception):
    """A URL that cannot be used as a place for checkpoints."""


class Place(Protocol):
    """A folder of checkpoints."""

    def path(self, name: str) -> Path | str:
        """The full name of a checkpoint, as reports give it."""

    def names(self) -> list[str]:
        """Everything in it that may be a checkpoint; of a store, what has a manifest."""

    def taken(self, name: str) -> bool:
        """Whether there is anything of this name already."""

    def drafts(self) -> list[str]:
        """What writers that were killed have left behind."""

    def draft(self) -> Path:
        """A new empty folder of this machine to write a checkpoint in."""

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        """Turn a sealed draft into the checkpoint `name`, take the draft away, and let pointers (`last`, `best`) name
        the checkpoint."""

    def remove(self, name: str) -> None:
        """Remove a checkpoint or a draft; whatever cannot be removed stays."""

    def used_bytes(self) -> int:
        """What all files in it take, in bytes."""

    def target(self, pointer: str) -> str | None:
        """The name of the checkpoint that a pointer names, or None."""

    def point(self, pointer: str, name: str) -> None:
        """Let a pointer name a checkpoint that is there."""

    def add(self, name: str, file: str, content: bytes) -> None:
        """Put one more small file into a checkpoint that is there."""

    def read(self, name: str, file: str) -> bytes:
        """One file of a checkpoint.

        Raises:
            FileNotFoundError: There is none.
        """

    def local(self, name: str) -> AbstractContextManager[Path]:
        """A context with a folder of this machine that holds the checkpoint's files."""


def is_url(folder: Path | str) -> bool:
    """Whether it names a store, such as ``s3://bucket/studies``, and no path."""
    return isinstance(folder, str) and "://" in folder


def absolute(folder: Path | str) -> str:
    """A folder by a name that is good in every process: an absolute path, or the URL as it is."""
    return folder.rstrip("/") if isinstance(folder, str) and is_url(folder) else str(Path(folder).absolute())


def inside(folder: Path | str, name: str) -> Path | str:
    """The folder `name` inside another one."""
    return f"{folder}/{name}" if is_url(folder) else Path(folder) / name


def trial_folder(number: int) -> str:
    """The name of a trial's folder in its study's."""
    return f"trial-{number:05d}"


def used_bytes(folder: Path | str) -> int:
    """What the files in a folder take, in bytes; 0 where there is none.

    Raises:
        PlaceError: Nothing here can read such URLs.
        OSError: It cannot be read.
    """
    return place(folder).used_bytes()


def split(source: Path | str) -> tuple[Path | str, str]:
    """The folder a checkpoint is in, and its name."""
    if not is_url(source):
        path = Path(source)
        return path.parent, path.name
    folder, _, name = str(source).rstrip("/").rpartition("/")
    return folder, name


def place(folder: Path | str) -> Place:
    """The place that a path or a URL names. Nothing is made before the first checkpoint is written.

    Raises:
        PlaceError: Nothing here can read or write such URLs.
    """
    return Store(str(folder)) if is_url(folder) else Folder(Path(folder))


class Folder:
    """A folder of this machine, or one that is mounted here."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def path(self, name: str) -> Path:
        """The checkpoint's folder."""
        return self._folder / name

    def names(self) -> list[str]:
        """What stands in the folder."""
        return [path.name for path in self._folder.iterdir()] if self._folder.is_dir() else []

    def taken(self, name: str) -> bool:
        """Whether there is anything of this name already."""
        return (self._folder / name).exists()

    def drafts(self) -> list[str]:
        """Drafts stand beside the checkpoints, under temporary names."""
        return [path.name for path in self._folder.glob(f"{TEMPORARY}*")]

    def draft(self) -> Path:
        """A folder under a temporary name, on the same file system, so that it can be renamed."""
        folder = self._folder / f"{TEMPORARY}{uuid.uuid4().hex}"
        folder.mkdir(parents=True)
        return folder

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        """Rename it: it is there at once; and replace relative links at once."""
        for path in [*draft.rglob("*"), draft]:
            _flush(path)
        draft.rename(self._folder / name)
        for pointer in pointers:
            self.point(pointer, name)
        _flush(self._folder)

    def point(self, pointer: str, name: str) -> None:
        """Replace the link at once."""
        temporary = self._folder / f".{pointer}-{os.getpid()}"
        temporary.unlink(missing_ok=True)
        temporary.symlink_to(name)
        temporary.replace(self._folder / pointer)

    def add(self, name: str, file: str, content: bytes) -> None:
        """Write it beside the checkpoint's other files."""
        (self._folder / name / file).write_bytes(content)

    def remove(self, name: str) -> None:
        """Remove a folder."""
        shutil.rmtree(self._folder / name, ignore_errors=True)

    def used_bytes(self) -> int:
        """Each file once: links take nothing. A file that goes meanwhile counts no more."""
        total = 0
        for path in self._folder.rglob("*"):
            with suppress(FileNotFoundError):
                status = path.lstat()
                total += status.st_size if stat.S_ISREG(status.st_mode) else 0
        return total

    def target(self, pointer: str) -> str | None:
        """Where a link leads."""
        path = self._folder / pointer
        return path.readlink().name if path.is_symlink() else None

    def read(self, name: str, file: str) -> bytes:
        """A file's content."""
        return (self._folder / name / file).read_bytes()

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """The folder itself."""
        yield self._folder / name


class Store:
    """A folder of anything that fsspec has a file system for: ``s3://``, ``gs://``, ``memory://``, ``file://``.

    Args:
        url: The folder.

    Raises:
        PlaceError: There is no file system for it, or its package is not installed.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        try:
            from fsspec.core import url_to_fs  # here: most studies never need it

            self._files, self._root = url_to_fs(self._url)
        except (ImportError, ValueError) as error:
            raise PlaceError(f"checkpoints cannot be kept at {url}: {error}") from error

    def path(self, name: str) -> str:
        """The checkpoint's URL."""
        return f"{self._url}/{name}"

    def names(self) -> list[str]:
        """The folders that have a manifest."""
        self._files.invalidate_cache()  # other processes write here too
        found = self._files.glob(f"{self._root}/*/{MANIFEST}")
        return [str(path).rsplit("/", 2)[-2] for path in found]

    def taken(self, name: str) -> bool:
        """Whether there is anything of this name already, whole or not."""
        self._files.invalidate_cache()
        return bool(self._files.exists(f"{self._root}/{name}"))

    def drafts(self) -> list[str]:
        """Folders without a manifest: uploads that were cut short."""
        self._files.invalidate_cache()
        if not self._files.exists(self._root):
            return []
        whole = set(self.names())
        folders = (str(e["name"]) for e in self._files.ls(self._root, detail=True) if e["type"] == "directory")
        return [name for path in folders if (name := path.rstrip("/").rpartition("/")[2]) not in whole]

    def draft(self) -> Path:
        """A temporary folder of this machine."""
        return Path(tempfile.mkdtemp(prefix="checkpoint-"))

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        """Upload it, its manifest last; and write small files, which stores replace at once."""
        files = [path.relative_to(draft).as_posix() for path in sorted(draft.rglob("*")) if path.is_file()]
        for file in sorted(files, key=lambda file: file == MANIFEST):
            target = f"{self._root}/{name}/{file}"
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(draft / file), target)
        for pointer in pointers:
            self.point(pointer, name)
        shutil.rmtree(draft, ignore_errors=True)

    def point(self, pointer: str, name: str) -> None:
        """Write the small file anew."""
        self._files.pipe_file(f"{self._root}/{pointer}", name.encode())

    def add(self, name: str, file: str, content: bytes) -> None:
        """Upload it beside the checkpoint's other files."""
        self._files.pipe_file(f"{self._root}/{name}/{file}", content)

    def remove(self, name: str) -> None:
        """Remove a folder, its manifest first: what is half removed is no checkpoint."""
        folder = f"{self._root}/{name}"
        with suppress(OSError):  # no training fails because something old stays
            for path in (f"{folder}/{MANIFEST}", folder):
                if self._files.exists(path):
                    self._files.rm(path, recursive=True)

    def used_bytes(self) -> int:
        """As the store lists them."""
        self._files.invalidate_cache()
        return int(self._files.du(self._root)) if self._files.exists(self._root) else 0

    def target(self, pointer: str) -> str | None:
        """What the small file says."""
        try:
            return str(self._files.cat_file(f"{self._root}/{pointer}").decode())
        except FileNotFoundError:
            return None

    def read(self, name: str, file: str) -> bytes:
        """A file's content."""
        return bytes(self._files.cat_file(f"{self._root}/{name}/{file}"))

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """A download that goes with the context."""
        source = f"{self._root}/{name}"
        with tempfile.TemporaryDirectory(prefix="checkpoint-") as folder:
            self._files.invalidate_cache()
            for path in self._files.find(source):
                target = Path(folder) / str(path)[len(source) :].lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                self._files.get_file(path, str(target))
            yield Path(folder)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
