"""The log of a program's output, without its reports."""

from __future__ import annotations

import collections
import sys
from contextlib import suppress
from pathlib import Path

from trials.checkpoints.disk.log_file import OURS, LogFile
from trials.descriptions.report_pattern import visible
from trials.tasks.command.last_words import LETTERS, LastWords

LAST_LINES = 20
"""Lines of a log that a failure repeats."""


class Output:
    """The log of one attempt: a file, or standard error for None. A full disk ends no run.

    Attributes:
        words: What the lines say of the program's end.
    """

    def __init__(self, log: Path | None) -> None:
        self._last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self.words = LastWords()
        self._file = None if log is None else LogFile(log)

    @property
    def last_lines(self) -> str:
        return "\n".join(self._last)

    def write(self, line: bytes) -> None:
        """Add a line, with its end."""
        text = visible(line)
        self.words.take(text)
        if text.strip():
            self._last.append(text[:LETTERS])
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
