"""Checks before a file is read."""

from __future__ import annotations

import io
from pathlib import Path

MOST_BYTES = 1 << 20
"""The size of the largest file of text that a person writes."""


def refuse_odd(path: Path) -> None:
    """Make sure that a path leads to a plain file.

    Raises:
        FileNotFoundError: There is nothing.
        ValueError: It leads to something else; the text says what to do.
    """
    path.stat()
    if path.is_dir():
        raise ValueError("is a folder; name a file")
    if not path.is_file():
        raise ValueError("is not a plain file; name a file")


def text_of(path: Path) -> str:
    """The text of a file that a person writes, such as a study file.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not a plain file, UnicodeDecodeError if it is not UTF-8 text, or it is
            too large.
    """
    refuse_odd(path)
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES >> 20} MB")
    return io.StringIO(content.decode("utf-8-sig"), newline=None).read()
