"""What a data file must be before it is read: a plain file, not compressed, and text if needed.

Reading a pipe or a device might wait without end, and a compressed or binary file would be read as
nonsense.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

CHUNK_BYTES = 1 << 20

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
_TEXT_ENCODINGS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_COMPRESSIONS = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
}
"""The first bytes of compressed files."""


def refuse_odd(path: Path) -> None:
    """Make sure that a path leads to a plain file.

    Raises:
        FileNotFoundError: There is nothing.
        ValueError: It leads to something else; says what that is, and what to do.
        OSError: It cannot be followed.
    """
    try:
        mode = path.stat().st_mode
    except ValueError as error:  # a NUL, or half a surrogate pair
        what = f"is not a path that can be opened ({error}); write it with plain letters"
        raise ValueError(what) from None
    if not stat.S_ISREG(mode):
        raise ValueError(f"is {_kind_of(mode)}; name a file")


def _kind_of(mode: int) -> str:
    for is_kind, name in _KINDS:
        if is_kind(mode):
            return name
    return "not a plain file"


def refuse_binary(path: Path) -> None:
    """Make sure that a plain file is not compressed, and looks like UTF-8 text.

    Only its first bytes and NUL bytes are looked at.

    Raises:
        ValueError: It is something else; says what, where, and what to do.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        start = file.read(8)
    for sign, kind in _COMPRESSIONS.items():
        if start.startswith(sign):
            raise ValueError(f"is compressed ({kind}); unpack it and name the file that comes out")
    for sign, encoding in _TEXT_ENCODINGS.items():
        if start.startswith(sign):
            raise ValueError(f"is {encoding} text; save it as UTF-8")
    _refuse_nul(path)


def _refuse_nul(path: Path) -> None:
    line = 1
    for chunk in _chunks(path):
        at = chunk.find(b"\0")
        if at >= 0:
            line += chunk.count(b"\n", 0, at)
            raise ValueError(f"has a NUL byte in line {line}; save it as UTF-8 text")
        line += chunk.count(b"\n")


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk
