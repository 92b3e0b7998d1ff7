"""Checkpoints behind a URL, such as an object store.

A store cannot rename a folder. A checkpoint is uploaded file by file, its manifest last; without a
manifest it does not count. A pointer is a small file.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any

from fsspec.core import url_to_fs

from trials.checkpoints.checkpoint_folder import CheckpointFolder, FolderError, is_checkpoint
from trials.checkpoints.disk import drafts, trees
from trials.checkpoints.disk.names import UnsafeName, below
from trials.checkpoints.disk.whole_folders import MANIFEST

UPLOAD, DOWNLOAD = "hpsearch-upload-", "hpsearch-download-"
"""Begin the names of drafts and of downloads among this machine's temporary files."""


class StoreFolder(CheckpointFolder):
    """A folder that fsspec can read: ``s3://``, ``gs://``, ``memory://``, ``file://``. Raises
    FolderError if there is no file system for it, or its package is not installed."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        try:
            # Other processes write here too, so nothing that was listed is remembered.
            files, root = url_to_fs(self._url, use_listings_cache=False)
        except (ImportError, ValueError) as error:
            raise FolderError(f"checkpoints cannot be kept at {url}: {error}") from error
        super().__init__(files, root)

    def path(self, name: str) -> str:
        return f"{self._url}/{name}"

    def names(self) -> list[str]:
        found = self._files.glob(self._inside("*", MANIFEST))
        return [PurePosixPath(path).parent.name for path in found]

    def drafts(self) -> list[str]:
        # Folders without a manifest: uploads that were cut short.
        unfinished = set(self.entries()) - set(self.names())
        return sorted(name for name in unfinished if is_checkpoint(name))

    def draft(self) -> Path:
        return drafts.private(UPLOAD)

    def publish(self, draft: Path, name: str, pointers: Sequence[str]) -> None:
        files = trees.files_in(draft)
        for file in sorted(files, key=lambda file: (file == MANIFEST, file)):
            target = self._inside(name, file)
            self._files.makedirs(target.rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(files[file]), target)
        for pointer in pointers:
            self.point(pointer, name)
        drafts.discard(draft)

    @contextmanager
    def local(self, name: str) -> Iterator[Path]:
        source = self._inside(name)
        with drafts.temporary(DOWNLOAD) as folder:
            for path in self._files.find(source):
                file = str(path)[len(source) :].removeprefix("/")
                with suppress(UnsafeName):  # not of a checkpoint, so none of its files is missing
                    target = below(folder, file)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    self._files.get_file(path, str(target))
            _restore_links(folder, self.manifest(name))
            yield folder

    def remove(self, name: str) -> Exception | None:
        # The manifest first, so that a half removed checkpoint does not count.
        try:
            if self.is_link(name):
                self._files.rm_file(self._inside(name))
                return None
            for path in (self._inside(name, MANIFEST), self._inside(name)):
                if self._files.exists(path):
                    self._files.rm(path, recursive=True)
        except FileNotFoundError:  # another process removes it too
            return None
        # Each store has errors of its own, and none of them may end a training.
        except Exception as error:  # noqa: BLE001
            return error
        return None

    def _pointed(self, pointer: str) -> str | None:
        return self.text(pointer)

    def point(self, pointer: str, name: str) -> None:
        self._files.pipe_file(self._inside(pointer), name.encode())

    def write(self, file: str, text: str) -> None:
        self._files.makedirs(self._root, exist_ok=True)
        self._files.pipe_file(self._inside(file), text.encode())


def _restore_links(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Make the links of a checkpoint, which a store does not hold."""
    for name, target in manifest.get("links", {}).items():
        with suppress(UnsafeName, FileExistsError):  # below another link, or a file
            link = below(folder, name)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
