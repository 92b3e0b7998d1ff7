"""The files of an SQLite database that is open.

A process writes on into a file that was deleted, moved or replaced, and nobody ever reads that. The
same holds for the two files beside it, which hold the last commits.
"""

from __future__ import annotations

import itertools
import os
import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

_SUFFIXES = ("", "-wal", "-shm")

_copies = itertools.count(1)

_Identity = tuple[int, int]  # the device and inode of a file


class OpenFiles:
    """The files that the connection to one database file has open."""

    def __init__(self, file: Path) -> None:
        self._paths = [Path(f"{file}{suffix}") for suffix in _SUFFIXES]
        self._known: dict[Path, _Identity] = {}

    def displaced(self) -> Path | None:
        """The first path at which the file is not that of the connection any more; None if all
        are. A file that appears later, as those beside the database do, is known from then on."""
        for path in self._paths:
            known = self._known.get(path)
            found = _identity(path)
            if known is None and found is not None:
                self._known[path] = found
            elif found != known:
                return path
        return None

    def remove_orphans(self) -> None:
        """Remove the connection's files beside the database if another file has its path: SQLite
        would take the last commits in them for the other file's. Call this while the connection
        is open, so that no other file can have their inodes."""
        database, *beside = self._paths
        if _identity(database) in (None, self._known.get(database)):
            return
        for path in beside:
            found = _identity(path)
            if found is not None and found == self._known.get(path):
                path.unlink(missing_ok=True)


def _identity(path: Path) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - a Path's takes longer, and this is done every tick
    except OSError:
        return None
    return status.st_dev, status.st_ino


def saved_copy(connection: sqlite3.Connection, file: Path) -> Path:
    """Save what an open database holds in a new file beside it, or among the temporary files if its
    own folder is gone or cannot be written."""
    when = time.strftime("%Y%m%d-%H%M%S")
    name = f"{file.name}.saved-{when}-{os.getpid()}-{next(_copies)}"
    beside = file.parent / name
    try:
        _copy(connection, beside)
    except sqlite3.Error:
        elsewhere = Path(tempfile.gettempdir(), name)
        _copy(connection, elsewhere)
        return elsewhere
    return beside


def _copy(connection: sqlite3.Connection, to: Path) -> None:
    try:
        with closing(sqlite3.connect(to)) as target:
            connection.backup(target)
    except sqlite3.Error:
        to.unlink(missing_ok=True)
        raise
