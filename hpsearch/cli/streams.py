"""Standard output and standard error as the commands need them.

* Messages that cannot be written are lost, and nothing else happens: a study continues if the
  reader of its messages has gone, or the disk of its log is full.
* Results that cannot be written end the command: silently if their reader has gone, as `head` does
  once it has read enough; with an error otherwise.
* Characters that a stream's encoding does not have are escaped.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
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
    """A text stream whose failures are handled in `failed`."""

    def __init__(self, stream: TextIO | None) -> None:
        if stream is None:  # it is closed, as by >&-
            stream = Path(os.devnull).open("w")  # noqa: SIM115 - open until the end
        self.stream = stream
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)

    def write(self, text: str) -> int:
        try:
            self.stream.write(text)
        except OSError as error:
            self.failed(error)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        try:
            self.stream.flush()
        except OSError as error:
            self.failed(error)

    def failed(self, error: OSError) -> None:
        """Handle a text that could not be written."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Discard what could not be written: the interpreter would try it again when it exits."""
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.stream.fileno())
            os.close(nowhere)


class _Messages(_Stream):
    """Standard error: what cannot be written is lost."""

    def failed(self, error: OSError) -> None:
        """Go on."""


class _Results(_Stream):
    """Standard output.

    Raises:
        ReaderGone: Nobody reads it any more.
        UserError: It cannot be written, such as to a full disk.
    """

    def failed(self, error: OSError) -> None:
        """End the command."""
        self.abandon()
        if isinstance(error, BrokenPipeError):
            raise ReaderGone from None
        what = f"the results cannot be written: {error.strerror or error}"
        raise UserError(what, "free some disk space, or write them somewhere else") from None


@contextmanager
def guarded() -> Iterator[None]:
    """Within it, a failure of standard output ends the command, and one of standard error does
    not."""
    before = (sys.stdout, sys.stderr)
    messages = _Messages(sys.stderr)
    sys.stdout = cast(TextIO, _Results(sys.stdout))
    sys.stderr = cast(TextIO, messages)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
        try:
            messages.stream.flush()
        except OSError:
            messages.abandon()
