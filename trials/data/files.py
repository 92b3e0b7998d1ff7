"""Checks before a file is read."""

from __future__ import annotations

from pathlib import Path


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
