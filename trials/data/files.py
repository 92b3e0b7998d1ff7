"""Checks before a data file is read: it is a plain file, not compressed, and text if needed."""

from __future__ import annotations

from pathlib import Path

CHUNK_BYTES = 1 << 20

_FORMATS = {
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
    b"\x1f\x8b": "is compressed (gzip); unpack it and name the file that comes out",
    b"PK\x03\x04": "is compressed (zip); unpack it and name the file that comes out",
    b"BZh": "is compressed (bzip2); unpack it and name the file that comes out",
    b"\xfd7zXZ\x00": "is compressed (xz); unpack it and name the file that comes out",
    b"\x28\xb5\x2f\xfd": "is compressed (zstd); unpack it and name the file that comes out",
}
"""Problems of files, by their first bytes."""


def refuse_odd(path: Path) -> None:
    """Make sure that a path leads to a plain file.

    Raises:
        FileNotFoundError: There is nothing.
        ValueError: It leads to something else; the text says what to do.
    """
    try:
        path.stat()
    except ValueError as error:  # a NUL, or half a surrogate pair
        what = f"is not a path that can be opened ({error}); write it with plain letters"
        raise ValueError(what) from None
    if path.is_dir():
        raise ValueError("is a folder; name a file")
    if not path.is_file():
        raise ValueError("is not a plain file; name a file")


def refuse_binary(path: Path) -> None:
    """Make sure that a plain file is not compressed, and looks like UTF-8 text.

    Only its first bytes and NUL bytes are looked at.

    Raises:
        ValueError: It is something else; the text says where, and what to do.
    """
    line = 1
    with path.open("rb") as file:
        start = file.read(8)
        for sign, problem in _FORMATS.items():
            if start.startswith(sign):
                raise ValueError(problem)
        chunk = start
        while chunk:
            at = chunk.find(b"\0")
            if at >= 0:
                line += chunk.count(b"\n", 0, at)
                raise ValueError(f"has a NUL byte in line {line}; save it as UTF-8 text")
            line += chunk.count(b"\n")
            chunk = file.read(CHUNK_BYTES)
