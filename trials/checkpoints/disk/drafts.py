"""Folders in the making, each locked by the process that writes in it.

A process that is killed leaves its drafts behind, and its locks end with it. A process that makes a
draft therefore first removes the drafts of the same kind that no process holds. The number of a
process would not show whether it still runs: a later process may have the same number, and a
process in another container has numbers of its own.
"""

import fcntl
import os
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from trials.checkpoints.disk import trees

_locks: dict[Path, int] = {}  # the handles that lock the drafts of this process


def new(parent: Path, prefix: str, mode: int = 0o777) -> Path:
    """Make an empty folder, which this process holds until it discards or releases it."""
    remove_abandoned(parent, prefix)
    while True:
        draft = parent / f"{prefix}{uuid.uuid4().hex}"
        draft.mkdir(mode)
        try:
            _locks[draft] = _locked(draft)
        except (FileNotFoundError, BlockingIOError):
            continue  # another process found it before it was locked, and removes it
        except OSError:
            pass  # the file system has no locks, so nobody can find it abandoned either
        return draft


def private(prefix: str) -> Path:
    """A draft in this machine's folder for temporary files that only this user can read."""
    return new(Path(tempfile.gettempdir()), prefix, 0o700)


def discard(draft: Path) -> None:
    trees.remove(draft)
    release(draft)


def release(draft: Path) -> None:
    """Unlock a draft that was renamed or removed."""
    handle = _locks.pop(draft, None)
    if handle is not None:
        os.close(handle)


@contextmanager
def temporary(prefix: str) -> Iterator[Path]:
    """A folder among this machine's temporary files, which is removed with the context."""
    draft = private(prefix)
    try:
        yield draft
    finally:
        discard(draft)


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the drafts that no running process holds, as far as possible."""
    for draft in parent.glob(f"{prefix}*"):
        with suppress(OSError):
            handle = _locked(draft)
            try:
                trees.remove(draft)
            finally:
                os.close(handle)


def _locked(folder: Path) -> int:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.stat()  # the process that held the lock before may have removed the folder
    except BaseException:
        os.close(handle)
        raise
    return handle
