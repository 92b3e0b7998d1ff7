"""Checkpoints behind a URL, such as in an object store.

A store cannot rename a folder in one step. A checkpoint is therefore uploaded with its manifest
last, and counts once the manifest is there. A pointer is a small file, which stores replace in one
step.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from trials.checkpoints.protocol import PlaceError
from trials.disk import drafts, trees
from trials.disk.whole_folders import MANIFEST

UPLOAD, DOWNLOAD = "hpsearch-upload-", "hpsearch-download-"
"""Begin the names of drafts and of downloads among this machine's temporary files."""
_GROUPS = ("files", "state")
"""The keys of a manifest whose files have a digest."""


class UrlPlace:
    """A folder that fsspec can read: ``s3://``, ``gs://``, ``memory://``, ``file://`` (a `Place`).

    Args:
        url: The folder.

    Raises:
        PlaceError: There is no file system for it, or its package is not installed.
    """

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        try:
            from fsspec.core import url_to_fs  # imported here, since most studies never need it

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

    # ---------------------------------------------------------------------------- checkpoints

    def drafts(self) -> list[str]:
        """Folders without a manifest: uploads that were cut short."""
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
        """A temporary folder of this machine."""
        return drafts.private(UPLOAD)

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        """Upload it, its manifest last, and write the pointers."""
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
        """Upload it beside the checkpoint's other files."""
        self._files.pipe_file(f"{self._root}/{name}/{file}", content)

    def read(self, name: str, file: str) -> bytes:
        """The content of a file."""
        return bytes(self._files.cat_file(f"{self._root}/{name}/{file}"))

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        """A download, which is removed with the context."""
        source = f"{self._root}/{name}"
        with drafts.temporary(DOWNLOAD) as folder:
            self._files.invalidate_cache()
            manifest = self._manifest(name)
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

    def _manifest(self, name: str) -> dict[str, Any]:
        """Empty where there is none that can be read: comparing the files with it says so."""
        try:
            found = json.loads(self.read(name, MANIFEST))
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def remove(self, name: str) -> Exception | None:
        """Remove a folder, its manifest first, so that what is half removed does not count."""
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
        """Remove files."""
        for file in files:
            # Each store has errors of its own, and none of them may end a training.
            with suppress(Exception):
                self._files.rm_file(f"{self._root}/{name}/{file}")

    # ------------------------------------------------------------------------------- pointers

    def target(self, pointer: str) -> str | None:
        """The text of the small file, or the target of a link that was written through a path."""
        path = f"{self._root}/{pointer}"
        try:
            return str(self._files.cat_file(path).decode())
        except FileNotFoundError:
            return None
        except IsADirectoryError:
            link = self._files.info(path)
            destination = os.fsdecode(link["destination"])
            return Path(destination).name

    def point(self, pointer: str, name: str) -> None:
        """Write the small file again."""
        path = f"{self._root}/{pointer}"
        try:
            self._files.pipe_file(path, name.encode())
        except IsADirectoryError:  # a link, in a folder of a disk that was written to by its path
            self._files.rm_file(path)
            self._files.pipe_file(path, name.encode())

    # --------------------------------------------------------------------------- what is there

    def entries(self) -> list[str]:
        """The names that the store lists."""
        self._files.invalidate_cache()
        try:
            listed = self._files.ls(self._root, detail=False)
        except FileNotFoundError:
            return []
        names = [_last_part(path) for path in listed]
        return [name for name in names if name]

    def sizes(self) -> dict[str, int]:
        """The sizes that the store lists."""
        self._files.invalidate_cache()
        if not self._files.exists(self._root):
            return {}
        listed = self._files.find(self._root, detail=True)
        found = {}
        for path, each in listed.items():
            file = _below(self._root, path)
            found[file] = int(each["size"] or 0)
        return found

    # ---------------------------------------------------------------------------- small files

    def text(self, file: str) -> str | None:
        """The content of a file; bytes that are not UTF-8 are replaced."""
        self._files.invalidate_cache()
        try:
            content = bytes(self._files.cat_file(f"{self._root}/{file}"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return content.decode("utf-8", "replace")

    def write(self, file: str, text: str) -> None:
        """Upload it, which stores do in one step."""
        self._files.makedirs(self._root, exist_ok=True)
        self._files.pipe_file(f"{self._root}/{file}", text.encode())

    def dissolve(self, file: str) -> None:
        """Remove the file. A store has no empty folders; one of a disk behind a URL is removed."""
        with suppress(FileNotFoundError):
            self._files.rm_file(f"{self._root}/{file}")
        if not self.entries():
            with suppress(FileNotFoundError, NotImplementedError):
                self._files.rmdir(self._root)


def _files_in(draft: Path) -> list[str]:
    """All files of a draft, the manifest last."""
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
    """A path as it is seen from a folder above it."""
    start = len(folder)
    return path[start:].lstrip("/")


def _last_part(path: object) -> str:
    return str(path).rstrip("/").rpartition("/")[2]
