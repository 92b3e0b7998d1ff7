"""Files before they are read: that they are plain, their encoding, the separator of a table."""

import codecs
import csv
import io
import itertools
import os
import shlex
from pathlib import Path
from typing import Any

_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",  # before UTF-16, which begins with the same bytes
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Encodings by the byte order mark that a file begins with."""
_SEPARATORS = (",", ";", "\t", "|")
_SNIFFED_ROWS = 20
_STATED = "sep="  # the beginning of a line by which a file for Excel states its separator
MOST_BYTES = 1 << 20  # the size of the largest file of text that a person writes


def refuse_odd(path: Path) -> None:
    """Raise FileNotFoundError if nothing is there, ValueError if it is no plain file."""
    path.stat()
    if path.is_dir():
        raise ValueError("is a folder; name a file")
    if not path.is_file():
        raise ValueError("is not a plain file; name a file")


def below(folder: Path) -> list[Path]:
    """All files in a folder and in the folders inside it, in order; links are followed."""
    found = []
    for parent, folders, names in os.walk(folder, followlinks=True):
        here = Path(parent)
        if here.resolve() in {each.resolve() for each in here.parents}:
            folders.clear()  # a link to a folder around it
            continue
        found += [here / name for name in names]
    return sorted(found)


def encoding_of(path: Path) -> str:
    """The encoding of a text file: what its byte order mark says, else UTF-8. Raises
    UnicodeDecodeError if it begins with a zero byte, as UTF-16 without a mark does."""
    with path.open("rb") as file:
        start = file.read(4)
    if marked := _marked(start):
        return marked
    zero = start.find(0, 0, 2)
    if zero >= 0:
        raise UnicodeDecodeError("utf-8", start, zero, zero + 1, "a zero byte")
    return "utf-8-sig"


def _marked(start: bytes) -> str | None:
    return next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)


def not_utf_8(path: Path, error: UnicodeDecodeError) -> str:
    """The words for a file that is not UTF-8 text, and how to convert it."""
    byte = error.object[error.start]
    return f"{path} is not UTF-8 text (byte {byte:#04x}); {conversion(path, error)}"


def conversion(path: Path, error: UnicodeDecodeError) -> str:
    """The advice for a file that is not UTF-8 text."""
    kind = (_marked(error.object[:4]) or "windows-1252").upper()
    if error.object[error.start] == 0:
        kind = "UTF-16LE" if error.start else "UTF-16BE"
    old, new = shlex.quote(str(path)), shlex.quote(str(path.with_stem(f"{path.stem}-utf8")))
    command = f"iconv -f {kind} -t UTF-8 {old} > {new}"
    return f"save it as UTF-8, such as with: {command} (-f names its encoding)"


def table_format(path: Path, usual: str = ",") -> dict[str, Any]:
    """The encoding and the separator of a table of texts, as options of `pandas.read_csv`.

    The separator is the one under which most of the first rows have as many fields as the header.
    `usual`: the separator in case of doubt. Raises UnicodeDecodeError if it is not text of a known
    encoding."""
    encoding = encoding_of(path)
    with path.open(encoding=encoding) as file:
        stated = file.readline(10).rstrip("\n").strip('"')
    if stated.startswith(_STATED) and len(stated) == len(_STATED) + 1:
        return {"encoding": encoding, "sep": stated[-1], "skiprows": 1}
    separators = dict.fromkeys((usual, *_SEPARATORS))
    best = max(separators, key=lambda separator: _fitting_rows(path, encoding, separator))
    return {"encoding": encoding, "sep": best}


def _fitting_rows(path: Path, encoding: str, separator: str) -> int:
    """The number of the first rows with as many fields as the header; 0 for a header of one."""
    widths = []
    with path.open(encoding=encoding, newline="") as file:
        rows = csv.reader(file, delimiter=separator)
        try:
            for row in itertools.islice(filter(None, rows), _SNIFFED_ROWS):
                widths.append(len(row))
        except csv.Error:  # such as a quote that is never closed
            pass
    if not widths or widths[0] == 1:
        return 0
    return widths.count(widths[0])


def text_of(path: Path) -> str:
    """The text of a file that a person writes, such as a study file. Raises OSError if it cannot be
    read, ValueError if it is not a plain file or too large, UnicodeDecodeError if it is not UTF-8
    text."""
    refuse_odd(path)
    with path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"is larger than {MOST_BYTES >> 20} MB")
    return io.StringIO(content.decode("utf-8-sig"), newline=None).read()
