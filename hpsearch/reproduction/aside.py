"""Keeps what a training prints away from the results of a command: it goes to stderr, also what C
and other programs print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress

from hpsearch.terminal.escapes import escaped

RESULTS, MESSAGES = 1, 2
"""The descriptors of stdout and stderr."""


class ResultLines:
    """Prints lines of results while everything else that is printed goes to stderr."""

    def __init__(self) -> None:
        self._stream = sys.stdout
        self._stream.flush()
        self._kept: int | None = None
        with suppress(OSError):  # one of the two is closed
            kept = os.dup(RESULTS)
            os.dup2(MESSAGES, RESULTS)
            self._kept = kept

    def line(self, text: str) -> None:
        """Print a line of the results; control characters are escaped."""
        if self._kept is not None:
            os.dup2(self._kept, RESULTS)
        try:
            print(escaped(text), file=self._stream, flush=True)
        finally:
            if self._kept is not None:
                os.dup2(MESSAGES, RESULTS)

    def close(self) -> None:
        """Let everything print where it did before."""
        if self._kept is not None:
            os.dup2(self._kept, RESULTS)
            os.close(self._kept)
            self._kept = None


@contextmanager
def results_apart() -> Iterator[ResultLines]:
    """What is printed within goes to stderr, but for results."""
    results = ResultLines()
    try:
        with redirect_stdout(sys.stderr):
            yield results
    finally:
        results.close()
