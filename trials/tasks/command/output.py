"""The log of a program's output, without its reports."""

from __future__ import annotations

import collections
import sys
from contextlib import suppress
from pathlib import Path

from trials.disk.log_file import OURS, LogFile

LAST_LINES = 20
"""Lines of a log that a failure repeats."""
LETTERS = 500
"""Letters of each of these lines."""


class Output:
    """The log of one attempt: a file, or standard error for None. A full disk ends no run."""

    def __init__(self, log: Path | None) -> None:
        self._last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._file = None if log is None else LogFile(log)

    @property
    def last_lines(self) -> str:
        return "\n".join(self._last)

    def write(self, line: bytes) -> None:
        """Add a line, with its end."""
        text = line.rstrip().decode(errors="replace")
        _, _, visible = text.rpartition("\r")  # the last state of a progress bar
        if visible.strip():
            self._last.append(visible[:LETTERS])
        with suppress(OSError):
            if self._file is None:
                sys.stderr.buffer.write(line)
                sys.stderr.buffer.flush()
            else:
                self._file.write(line)
                self._file.keep_small()

    def note(self, text: str) -> None:
        """Add a remark of our own."""
        if self._file is not None:
            self._file.note(text)
        else:
            with suppress(OSError):
                sys.stderr.write(f"{OURS}{text}\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
