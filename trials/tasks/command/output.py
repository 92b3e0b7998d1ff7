"""Where a program's output goes that is not a report: a log of bounded size."""

from __future__ import annotations

import collections
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

from trials.checkpoints import places

MOST_BYTES = 4 << 20
"""A log that reaches this size is put aside, as the only earlier part that is kept: a log takes at
most twice as much, and what is lost is the oldest."""
EARLIER = ".earlier"
"""Ends the name of the part that was put aside."""
LAST_LINES = 20
"""Of a log, which a failure tells."""
LETTERS = 500
"""Of each of these lines."""


class Output:
    """The log of one attempt.

    Args:
        log: Its file, a path or a URL; None for standard error. Behind a URL, the log is written
            when it is closed.
    """

    def __init__(self, log: Path | str | None) -> None:
        self._log = log
        self._last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._own: tempfile.TemporaryDirectory[str] | None = None
        self._size = 0
        self._path: Path | None = None
        self._file: IO[bytes]
        if log is None:
            self._file = sys.stderr.buffer
            return
        if places.is_url(log):
            self._own = tempfile.TemporaryDirectory(prefix="hpsearch-log-")
            self._path = Path(self._own.name) / "log"
        else:
            self._path = Path(log)
            self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("ab")

    @property
    def last_lines(self) -> str:
        """The last lines, for people."""
        return "\n".join(self._last)

    def write(self, line: bytes) -> None:
        """Add a line, with its end."""
        text = line.rstrip().decode(errors="replace")
        _, _, visible = text.rpartition("\r")  # of a progress bar, what it showed at last
        if visible.strip():
            self._last.append(visible[:LETTERS])
        # A log that cannot be written must not end a training.
        with suppress(OSError):
            self._file.write(line)
            self._file.flush()
            self._size += len(line)
            if self._size > MOST_BYTES:
                self._put_aside()

    def note(self, text: str) -> None:
        """Add a line of this program's own."""
        with suppress(OSError):
            self._file.write(f"[hpsearch] {text}\n".encode())
            self._file.flush()

    def _put_aside(self) -> None:
        self._size = 0
        if self._path is None:
            return
        self._file.close()
        self._path.replace(f"{self._path}{EARLIER}")
        self._file = self._path.open("ab")

    def close(self) -> None:
        """Close the file; write it where it belongs."""
        if self._path is None or self._file.closed:
            return
        self._file.close()
        if self._own is None:
            return
        folder, name = places.split(str(self._log))
        where = places.place(folder)
        with suppress(Exception):  # each store has errors of its own, and the training is over
            for part in (EARLIER, ""):
                path = Path(f"{self._path}{part}")
                if path.is_file():
                    where.write(f"{name}{part}", path.read_text("utf-8", "replace"))
        self._own.cleanup()
