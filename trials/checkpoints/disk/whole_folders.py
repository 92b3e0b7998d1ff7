"""A folder, or a file, that is written whole or not at all.

A folder is written as a draft (`trials.checkpoints.disk.drafts`), hashed, flushed to the disk and
renamed. A process that is killed at any moment leaves the folders before it untouched, and at most
a draft behind, which the next draft of its kind removes.

    draft = drafts.new(parent, ".writing-")
    with removed_on_error(draft):
        (draft / "weights").write_bytes(weights)
        seal(draft, {"files": digests(draft)})
        put(draft, parent / "step-1")

The manifest that `seal` writes has the SHA-256 of every file. `damage` compares the files with it.
"""

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trials.checkpoints.disk import drafts, trees
from trials.checkpoints.disk.names import UnsafeName, below, relative
from trials.foreign import MOST_OF_A_TRACEBACK, text_of

MANIFEST = "manifest.json"  # the file of a sealed folder that names all others, written last
FULL_BYTES = 1 << 20  # a disk with less space than this counts as full
AT_ONCE = 8  # files that are hashed or flushed side by side
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_TAKEN = (errno.EEXIST, errno.ENOTEMPTY)


@contextmanager
def removed_on_error(draft: Path) -> Iterator[None]:
    """Remove a draft if its block fails. Raises OSError: with ENOSPC if the disk is full, which not
    every library says."""
    try:
        yield
    except BaseException as error:
        was_full = draft.is_dir() and shutil.disk_usage(draft).free < FULL_BYTES
        drafts.discard(draft)
        if was_full and isinstance(error, Exception) and not is_disk_full(error):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(draft)) from error
        raise


def is_disk_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in _DISK_FULL:
        return True
    return os.strerror(errno.ENOSPC).lower() in text_of(error, MOST_OF_A_TRACEBACK).lower()


def seal(draft: Path, manifest: Mapping[str, Any]) -> None:
    """Write the manifest, after all other files."""
    (draft / MANIFEST).write_text(json.dumps(manifest, indent=1))


def manifest_of(content: bytes) -> dict[str, Any]:
    """The manifest that `seal` wrote, or somebody else. Raises ValueError if it cannot be read, or
    what it names is not below its folder."""
    try:
        manifest: dict[str, Any] = {"state": {}, "links": {}, **json.loads(content)}
        for group in ("files", "state", "links"):
            for name, value in manifest[group].items():
                relative(name)
                os.fsencode(value)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not a manifest: {error}") from None
    return manifest


def put(draft: Path, target: Path, *, durable: bool = True) -> Path:
    """Rename a draft to its final name, which is returned, and unlock it. Raises FileExistsError if
    there is a folder of that name with files in it, OSError if the draft cannot be flushed or
    renamed; the draft stays."""
    if durable:
        flush(draft)
    try:
        draft.rename(target)
    except OSError as error:
        if error.errno not in _TAKEN:
            raise
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from error
    drafts.release(draft)
    if durable:
        flush_one(target.parent)
    return target


def digests(folder: Path, *, durable: bool = False) -> dict[str, str]:
    """The SHA-256 of every file in a folder, by its path inside the folder, in order. If they are
    to be durable, they are written to the disk meanwhile, where `put` finds them."""
    files = dict(sorted(trees.files_in(folder).items()))
    with ThreadPoolExecutor(AT_ONCE) as threads:
        flushed = threads.map(flush_one, files.values() if durable else ())
        found = dict(zip(files, threads.map(digest_of_file, files.values()), strict=True))
        list(flushed)  # raises what has gone wrong
    return found


def digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def damage(folder: Path, expected: Mapping[str, str]) -> str | None:
    """Compare the files of a folder with the digests in its manifest. Returns the first difference;
    None if all files are as expected."""
    for file, digest in expected.items():
        try:
            path = below(folder, file)
        except UnsafeName as error:
            return str(error)
        if path.is_symlink() or not path.is_file():
            return f"{file} is missing"
        if digest_of_file(path) != digest:
            return f"{file} was changed or cut short"
    return None


def make_folder(folder: Path) -> None:
    """Make a folder and its parents so that they are still there after a loss of power."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        flush_one(path.parent)


def flush(folder: Path) -> None:
    """Write a folder with everything in it to the disk."""
    for path in trees.entries(folder):
        if path.is_symlink():
            continue
        if path.is_file() or path.is_dir():
            flush_one(path)
    flush_one(folder)


def flush_one(path: Path) -> None:
    """Write the content of a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """A path beside a file to write to, which becomes the file when the block ends well.

    The new file has the permissions of the one that it replaces. A pipe or a device cannot be
    replaced, and is written to directly. Raises OSError if the file cannot be written. An earlier
    one is unchanged."""
    target = Path(os.path.realpath(to))
    if target.exists() and not target.is_file():
        yield target
        return
    unfinished = target.with_name(f".{os.getpid()}.{target.name[:100]}.unfinished")
    try:
        yield unfinished
        if target.exists():
            shutil.copymode(target, unfinished)
        flush_one(unfinished)
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
