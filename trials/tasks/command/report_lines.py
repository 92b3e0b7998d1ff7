"""Reports in what a program prints or writes: lines of JSON."""

from __future__ import annotations

import json
import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trials.contract import ProgramFailed
from trials.tasks.function.reported import MOST_RESOURCE

LONGEST_LINE = 1 << 20
"""Bytes of a line. One that is longer is not a report, and is passed on in pieces."""
LETTERS = 200
"""Of a line, in messages."""


@dataclass(frozen=True, slots=True)
class ReportLine:
    """A report as a program prints it."""

    resource: float
    metrics: dict[str, float]


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

    What is in it at the beginning is passed over. A file that becomes shorter is read from its
    beginning again.

    Attributes:
        is_reread: Whether that has happened, so that lines may have been read before.
    """

    def __init__(self, path: Path) -> None:
        self.is_reread = False
        self._path = path
        self._at = path.stat().st_size if path.is_file() else 0
        self._lines = Lines()

    def new_lines(self) -> Iterator[list[bytes]]:
        """The complete lines since the last call, in portions.

        Raises:
            ProgramFailed: The file cannot be read.
        """
        try:
            with open(self._path, "rb", opener=_open_file) as file:
                if file.seek(0, 2) < self._at:
                    self.is_reread = True
                    self._at = 0
                    self._lines = Lines()
                file.seek(self._at)
                while piece := file.read(LONGEST_LINE):
                    self._at += len(piece)
                    yield self._lines.taken(piece)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise ProgramFailed(f"reports cannot be read: {error}") from error

    def rest(self) -> list[bytes]:
        """The last line, whose end never came."""
        return self._lines.rest()


def _open_file(path: str, flags: int) -> int:
    """Open a file, or what a link names.

    Raises:
        OSError: It cannot be opened, or it is not a file: a pipe would block.
    """
    handle = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(f"{path} is not a file")
    return handle


def report_in(line: bytes, key: str) -> ReportLine | None:
    """The report that a line is; None for any other line.

    Values that are not numbers are left out of its metrics.

    Args:
        line: As the program wrote it.
        key: The key that says how far the trial has trained. An object without it is no report.

    Raises:
        ProgramFailed: It is a report that cannot be right.
    """
    text = line.strip()
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or key not in found:
        return None
    shown = text[:LETTERS].decode(errors="replace")
    resource = _resource(found.pop(key), key, shown)
    metrics = {}
    for name, value in found.items():
        if isinstance(value, int | float):
            metrics[_name(name, shown)] = _number(name, value, shown)
    return ReportLine(resource, metrics)


def _resource(value: Any, key: str, shown: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number:
        raise ProgramFailed(f"the report {shown} has a {key} that is not a number")
    resource = _number(key, value, shown)
    if not math.isfinite(resource) or not 0 < resource <= MOST_RESOURCE:
        what = f"the report {shown} has a {key} of {value}"
        raise ProgramFailed(f"{what}: it must say how far the trial has trained, above 0")
    return resource


def _number(name: str, value: float, shown: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ProgramFailed(f"the report {shown} has a {name} too large for a float") from None


def _name(name: str, shown: str) -> str:
    if not name.isprintable() or not name or name.startswith("$"):
        what = f"the report {shown} has a metric that cannot be named {name!r}"
        raise ProgramFailed(f"{what}: use letters, digits and marks such as _ or /")
    return name
