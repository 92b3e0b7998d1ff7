"""Checkpoints behind a URL, such as in an object store.

A store cannot rename a folder in one step. A checkpoint is therefore uploaded with its manifest
last, and counts once the manifest is there. A pointer is a small file, which stores replace in one
step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trials.checkpoints.checkpoint_folder import CheckpointFolder, FolderError
from trials.disk import drafts, trees
from trials.disk.whole_folders import MANIFEST

UPLOAD, DOWNLOAD = "hpsearch-upload-", "hpsearch-download-"
"""Begin the names of drafts and of downloads among this machine's temporary files."""
_GROUPS = ("files", "state")
"""The keys of a manifest whose files have a digest."""


class StoreFolder(CheckpointFolder):
    """A folder that fsspec can read: ``s3://``, ``gs://``, ``memory://``, ``file://``.

    Raises:
        FolderError: There is no file system for it, or its package is not installed.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        try:
            from fsspec.core import url_to_fs  # imported here, since most studies never need it

            self._files, self._root = url_to_fs(self._url)
        except (ImportError, ValueError) as error:
            raise FolderError(f"checkpoints cannot be kept at {url}: {error}") from error

    def path(self, name: str) -> str:
        return f"{self._url}/{name}"

    def names(self) -> list[str]:
        self._files.invalidate_cache()  # other processes write here too
        found = self._files.glob(f"{self._root}/*/{MANIFEST}")
        return [str(path).rsplit("/", 2)[-2] for path in found]

    def taken(self, name: str) -> bool:
        self._files.invalidate_cache()
        return bool(self._files.exists(f"{self._root}/{name}"))

    def unfinished(self) -> list[str]:
        # Folders without a manifest: uploads that were cut short.
        self._files.invalidate_cache()
        if not self._files.exists(self._root):
            return []
        whole = set(self.names())
        names = []
        for each in self._files.ls(self._root, detail=True):
            name = _last_part(each["name"])
            if each["type"] == "directory" and name not in whole:
                names.append(name)
        return names

    def draft(self) -> Path:
        return drafts.private(UPLOAD)

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        for file in _files_in(draft):
            target = f"{self._root}/{name}/{_key(file)}"
            folder, _, _ = target.rpartition("/")
            self._files.makedirs(folder, exist_ok=True)
            source = str(draft / file)
            self._files.put_file(source, target)
        for pointer in pointers:
            self.point(pointer, name)
        drafts.discard(draft)

    def add(self, name: str, file: str, content: bytes) -> None:
        self._files.pipe_file(f"{self._root}/{name}/{file}", content)

    def read(self, name: str, file: str) -> bytes:
        return bytes(self._files.cat_file(f"{self._root}/{name}/{file}"))

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        source = f"{self._root}/{name}"
        with drafts.temporary(DOWNLOAD) as folder:
            self._files.invalidate_cache()
            manifest = self.manifest(name)
            names = {_key(file): file for group in _GROUPS for file in manifest.get(group, ())}
            for path in self._files.find(source):
                key = _below(source, str(path))
                if key in manifest.get("links", ()):
                    continue  # in a folder of a disk that was written to by its path
                target = folder / names.get(key, key)
                target.parent.mkdir(parents=True, exist_ok=True)
                self._files.get_file(path, str(target))
            _restore(folder, manifest)
            yield folder

    def remove(self, name: str) -> Exception | None:
        # The manifest first, so that what is half removed does not count.
        folder = f"{self._root}/{name}"
        try:
            self._files.invalidate_cache()
            for path in (f"{folder}/{MANIFEST}", folder):
                if self._files.exists(path):
                    self._files.rm(path, recursive=True)
        except FileNotFoundError:  # another process removes it too
            return None
        # Each store has errors of its own, and none of them may end a training.
        except Exception as error:  # noqa: BLE001
            return error
        return None

    def strip(self, name: str, files: Iterable[str]) -> None:
        for file in files:
            # Each store has errors of its own, and none of them may end a training.
            with suppress(Exception):
                self._files.rm_file(f"{self._root}/{name}/{file}")

    def target(self, pointer: str) -> str | None:
        path = f"{self._root}/{pointer}"
        try:
            return str(self._files.cat_file(path).decode())
        except FileNotFoundError:
            return None
        except IsADirectoryError:  # a link, in a folder of a disk that was written to by its path
            link = self._files.info(path)
            destination = os.fsdecode(link["destination"])
            return Path(destination).name

    def point(self, pointer: str, name: str) -> None:
        path = f"{self._root}/{pointer}"
        try:
            self._files.pipe_file(path, name.encode())
        except IsADirectoryError:  # a link, in a folder of a disk that was written to by its path
            self._files.rm_file(path)
            self._files.pipe_file(path, name.encode())

    def entries(self) -> list[str]:
        self._files.invalidate_cache()
        try:
            listed = self._files.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        names = [_last_part(path) for path in listed]
        return [name for name in names if name]

    def sizes(self) -> dict[str, int]:
        self._files.invalidate_cache()
        if not self._files.exists(self._root):
            return {}
        listed = self._files.find(self._root, detail=True)
        found = {}
        for path, each in listed.items():
            file = _below(self._root, path)
            found[file] = int(each["size"] or 0)
        return found

    def text(self, file: str) -> str | None:
        self._files.invalidate_cache()
        try:
            content = bytes(self._files.cat_file(f"{self._root}/{file}"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return content.decode("utf-8", "replace")

    def write(self, file: str, text: str) -> None:
        self._files.makedirs(self._root, exist_ok=True)
        self._files.pipe_file(f"{self._root}/{file}", text.encode())

    def dissolve(self, file: str) -> None:
        # A store has no empty folders; one of a disk behind a URL is removed.
        with suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{file}")
        if not self.entries():
            with suppress(FileNotFoundError, NotImplementedError):
                self._files.rmdir(self._root)


def _files_in(draft: Path) -> list[str]:
    files = [entry.name for entry in trees.entries(draft) if entry.is_file]
    return sorted(files, key=lambda file: (file == MANIFEST, file))


def _key(file: str) -> str:
    """A file's name in the store: stores take only text, and not every letter of it."""
    return file if file.isprintable() else quote(os.fsencode(file))


def _restore(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Make what the store could not hold: links, empty folders, and modes, the innermost first."""
    modes: dict[str, str] = manifest.get("modes", {})
    for name in modes:
        if name.endswith("/"):
            (folder / name).mkdir(parents=True, exist_ok=True)
    for name, target in manifest.get("links", {}).items():
        link = folder / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    for name, mode in sorted(modes.items(), reverse=True):
        path = folder / name
        if path.exists():
            path.chmod(int(mode, 8))


def _below(folder: str, path: str) -> str:
    start = len(folder)
    return path[start:].lstrip("/")


def _last_part(path: object) -> str:
    return str(path).rstrip("/").rpartition("/")[2]
