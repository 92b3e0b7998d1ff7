"""Standard output and standard error as the commands need them.

* Characters that a stream's encoding does not have are replaced: rules and arrows by plain
  characters, letters by escapes.
* Messages that cannot be written are lost, and nothing else happens: a study continues if the
  reader of its messages has gone, or the disk of its log is full.
* Results that cannot be written end the command: silently if their reader has gone, as `head` does
  once it has read enough; with an error otherwise.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast

from hpsearch.errors import UserError

READER_GONE = 141
"""Exit code of a command whose results nobody reads any more.

A shell reports the same code for a program that is ended by SIGPIPE.
"""

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("─━═╌╍┄┅–—−", "-"),
        **dict.fromkeys("│┃║", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╯╰╶╴", "+"),
        **dict.fromkeys("‘’", "'"),
        **dict.fromkeys("“”", '"'),
        "…": "...",
        "→": "->",
        "←": "<-",
        "±": "+-",
        "×": "x",
        "·": "-",
        "•": "*",
        "≤": "<=",
        "≥": ">=",
        "²": "2",
    }
)
_ERRORS = "hpsearch.plain"


class ReaderGone(Exception):
    """Nobody reads the results any more."""


def _replaced(error: UnicodeError) -> tuple[str, int]:
    """A replacement for characters that an encoding lacks (an error handler of `codecs`)."""
    assert isinstance(error, UnicodeEncodeError)
    lacking = error.object[error.start : error.end].translate(_PLAIN)
    return lacking.encode("ascii", "backslashreplace").decode("ascii"), error.end


codecs.register_error(_ERRORS, _replaced)


def showable(text: str, stream: TextIO) -> bool:
    """Whether the encoding of a stream has all characters of a text."""
    try:
        text.encode(getattr(stream, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return False
    return True


class _Stream:
    """A text stream that writes what its encoding can show."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        can_show = showable(text, cast(TextIO, self._stream))
        self._write(text if can_show else self._shown(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def _shown(self, text: str) -> str:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        return text.encode(encoding, _ERRORS).decode(encoding)

    def _write(self, text: str) -> None:
        raise NotImplementedError

    def _abandon(self) -> None:
        """Discard what could not be written: the interpreter would try it again when it exits."""
        with suppress(OSError, ValueError, AttributeError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)


class Messages(_Stream):
    """Standard error: what cannot be written is lost."""

    def _write(self, text: str) -> None:
        if self._stream is not None:
            with suppress(OSError, ValueError):
                self._stream.write(text)

    def flush(self) -> None:
        """Write what is buffered, if that is possible."""
        if self._stream is not None:
            with suppress(OSError, ValueError):
                self._stream.flush()

    def finish(self) -> None:
        """The same, for the last time."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except (OSError, ValueError):
            self._abandon()


class Results(_Stream):
    """Standard output.

    Raises:
        ReaderGone: Nobody reads it any more.
        UserError: It cannot be written: its disk is full, or it is closed.
    """

    def _write(self, text: str) -> None:
        with self._reported():
            cast(TextIO, self._stream).write(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._reported():
            cast(TextIO, self._stream).flush()

    @contextmanager
    def _reported(self) -> Iterator[None]:
        if self._stream is None:
            message = "the results cannot be written: standard output is closed"
            raise UserError(message, "do not close it with >&-")
        try:
            yield
        except BrokenPipeError:
            self._abandon()
            raise ReaderGone from None
        except OSError as error:
            self._abandon()
            what = f"the results cannot be written: {error.strerror or error}"
            raise UserError(what, "free some disk space, or write them somewhere else") from None


@contextmanager
def guarded() -> Iterator[None]:
    """Within it, standard output and standard error are `Results` and `Messages`."""
    before = (sys.stdout, sys.stderr)
    messages = Messages(sys.stderr)
    sys.stdout = cast(TextIO, Results(sys.stdout))
    sys.stderr = cast(TextIO, messages)
    try:
        yield
    finally:
        messages.finish()
        sys.stdout, sys.stderr = before
