"""Standard output and standard error as the commands need them.

* Messages that cannot be written are lost, and nothing else happens: a study continues if the
  reader of its messages has gone, or the disk of its log is full.
* Results that cannot be written end the command: silently if their reader has gone, as `head` does
  once it has read enough; with an error otherwise.
* Characters that a stream's encoding does not have are escaped.
* Libraries' warnings, which name lines of their code, are shown only if Python was asked to
  (`PYTHONWARNINGS`).
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO, cast

from hpsearch.errors import UserError

READER_GONE = 141
"""Exit code of a command whose results nobody reads any more.

A shell reports the same code for a program that is ended by SIGPIPE.
"""


class ReaderGone(Exception):
    """Nobody reads the results any more."""


class _Stream:
    """A text stream whose failures end the command, or lose what could not be written.

    Args:
        stream: The stream; None if it is closed, as by ``>&-``.
        has_results: True if a failure ends the command.
    """

    def __init__(self, stream: TextIO | None, *, has_results: bool) -> None:
        if stream is None:
            stream = Path(os.devnull).open("w")  # noqa: SIM115 - open until the end
        self.stream = stream
        self._has_results = has_results
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        with self._guarded():
            self.stream.write(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        with self._guarded():
            self.stream.flush()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Raises ReaderGone if nobody reads any more, and UserError as for a full disk."""
        try:
            yield
        except OSError as error:
            if not self._has_results:
                return
            self.abandon()
            if isinstance(error, BrokenPipeError):
                raise ReaderGone from None
            what = f"the results cannot be written: {error.strerror or error}"
            raise UserError(what, "free some disk space, or write them somewhere else") from None

    def abandon(self) -> None:
        """Discard what could not be written: the interpreter would try it again when it exits."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


class _HeldBack(io.StringIO):
    """Text for a stream, by whose width and colours it is drawn."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(newline="")
        self.isatty, self.fileno = stream.isatty, stream.fileno  # type: ignore[method-assign]


@contextmanager
def held_back() -> Iterator[None]:
    """Print the results of the block once it has ended without an error: somebody who waits at a
    pager must not hold the database open."""
    stream = sys.stdout
    with redirect_stdout(_HeldBack(stream)) as kept:
        yield
    stream.write(kept.getvalue())


@contextmanager
def guarded() -> Iterator[None]:
    """Within it, a failure of stdout ends the command, and one of stderr does not."""
    before = (sys.stdout, sys.stderr)
    messages = _Stream(sys.stderr, has_results=False)
    sys.stdout = cast(TextIO, _Stream(sys.stdout, has_results=True))
    sys.stderr = cast(TextIO, messages)
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.showwarning = lambda *_, **__: None
            yield
    finally:
        sys.stdout, sys.stderr = before
        try:
            messages.stream.flush()
        except OSError:
            messages.abandon()
