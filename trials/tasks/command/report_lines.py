"""Lines of what a program prints, or writes into a file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from trials.contract import ProgramFailed

LONGEST_LINE = 1 << 20
"""Bytes of a line. One that is longer is not a report, and is passed on in pieces."""
REMEMBERED = 64 << 10
"""Bytes of what was read last of a file, by which it is seen whether it was written anew."""


class Lines:
    """Splits what comes in pieces into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def taken(self, piece: bytes) -> list[bytes]:
        """The lines that are complete with this piece, each with its end."""
        *lines, rest = (self._rest + piece).split(b"\n")
        if len(rest) > LONGEST_LINE:
            lines_of_rest = [rest]
            rest = b""
        else:
            lines_of_rest = []
        self._rest = rest
        return [line + b"\n" for line in lines] + lines_of_rest

    def rest(self) -> list[bytes]:
        """The last line, whose end never came."""
        rest, self._rest = self._rest, b""
        return [rest] if rest else []


class ReportFile:
    """The lines that are added to a file, which need not be there yet.

    What is in it at the beginning is passed over. A file that is written anew, whether it becomes
    longer or shorter, is read from its beginning again.

    Attributes:
        is_reread: Whether that has happened, so that lines may have been read before.
        first_line: Of what was in it at the beginning.
    """

    def __init__(self, path: Path) -> None:
        self.is_reread = False
        self.first_line = b""
        self._path = path
        self._at = 0
        self._seen = b""
        """The bytes that were read last, up to `_at`."""
        self._lines = Lines()
        if path.is_file():
            self._pass_over()

    def _pass_over(self) -> None:
        with self._path.open("rb") as file:
            self.first_line = file.readline(LONGEST_LINE)
            self._at = file.seek(0, os.SEEK_END)
            file.seek(max(0, self._at - REMEMBERED))
            self._seen = file.read(REMEMBERED)

    def new_lines(self) -> Iterator[list[bytes]]:
        """The complete lines since the last call, in portions.

        Raises:
            ProgramFailed: The file cannot be read.
        """
        try:
            with open(self._path, "rb", opener=_open_file) as file:
                file.seek(self._at - len(self._seen))
                if file.read(len(self._seen)) != self._seen:
                    self.is_reread = True
                    self._at, self._seen = 0, b""
                    self._lines = Lines()
                    file.seek(0)
                while piece := file.read(LONGEST_LINE):
                    self._at += len(piece)
                    self._seen = (self._seen + piece)[-REMEMBERED:]
                    yield self._lines.taken(piece)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise ProgramFailed(f"reports cannot be read: {error}") from error

    def rest(self) -> list[bytes]:
        """The last line, whose end never came."""
        return self._lines.rest()


def _open_file(path: str, flags: int) -> int:
    handle = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is not a file")
    return handle
