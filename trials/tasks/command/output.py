"""Where a program's output goes that is not a report."""

from __future__ import annotations

import collections
import sys
from contextlib import suppress
from pathlib import Path

from trials.disk.log_file import OURS, LogFile

LAST_LINES = 20
"""Of a log, which a failure tells."""
LETTERS = 500
"""Of each of these lines."""


class Output:
    """The log of one attempt.

    Args:
        log: Its file; None for standard error.
        most: How many bytes go to standard error before the rest is left out but for its last
            lines; None for no limit. A file has a limit of its own.
    """

    def __init__(self, log: Path | None, most: int | None = None) -> None:
        self._room = most
        self._left_out = 0
        """How many bytes were."""
        self._last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._file = None if log is None else LogFile(log)

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
            if self._file is None:
                self._show(line)
                return
            self._file.write(line)
            self._file.keep_small()

    def note(self, text: str) -> None:
        """Add a line of this program's own."""
        if self._file is not None:
            self._file.note(text)
            return
        with suppress(OSError):
            _to_standard_error(f"{OURS}{text}\n".encode("utf-8", "backslashreplace"))

    def _show(self, line: bytes) -> None:
        """Pass on as much as there is room for."""
        shown = line[: self._room]
        self._left_out += len(line) - len(shown)
        if self._room is not None:
            self._room -= len(shown)
        _to_standard_error(shown)

    def close(self) -> None:
        """Close the file, or say what was left out. May be repeated."""
        if self._file is not None:
            self._file.close()
        if self._left_out:
            what = f"{self._left_out:,} bytes are left out here"
            self._left_out = 0
            self.note(f"{what}; the last lines of all:\n{self.last_lines}")


def _to_standard_error(line: bytes) -> None:
    sys.stderr.buffer.write(line)
    sys.stderr.buffer.flush()
