"""Prepared data on the disk: flat arrays under a fingerprint of everything they were made from.

    ~/.cache/hpsearch/          or the folder that HPSEARCH_CACHE names
      text-3f9c.../             an entry; whole or not there
        manifest.json           facts, and the SHA-256 of every file; written last
        train.tokens.npy        mapped into memory, not read
        tokenizer.json          files kept as they are

An entry is written under a temporary name and renamed, so that a process killed at any moment leaves nothing half made
and two processes may prepare the same data at once: the second one finds the first one's entry and uses it. An entry
that is damaged is made anew. Nothing here is worth keeping: any of it may be deleted at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

log = logging.getLogger(__name__)

VARIABLE = "HPSEARCH_CACHE"
FORMAT = 1
MANIFEST = "manifest.json"
_ARRAY = ".npy"
_TEMPORARY = ".writing-"


@dataclass(frozen=True)
class Entry:
    """What is kept.

    Args:
        arrays: Arrays by name; those of an entry that was read are read-only and mapped into memory.
        files: Small files by name.
        facts: Anything else, as JSON.
    """

    arrays: Mapping[str, npt.NDArray[Any]]
    files: Mapping[str, bytes]
    facts: Mapping[str, Any]


class DamagedError(Exception):
    """An entry is not what was written."""


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where entries are kept."""
    named = environment.get(VARIABLE)
    return Path(named).expanduser() if named else Path.home() / ".cache" / "hpsearch"


def kept(name: str, build: Callable[[], Entry], root: Path | None = None) -> Entry:
    """The entry of that name: read where it is there and whole, else built and written.

    Where the folder cannot be written to, the entry is built every time, with a warning.

    Args:
        name: Tells apart whatever was made from different things.
        build: Makes the entry. What it raises comes through.
        root: The folder of all entries; None for the one of this machine.
    """
    place = (folder() if root is None else root) / name
    try:
        return read(place)
    except FileNotFoundError:
        pass
    except (DamagedError, OSError) as error:
        log.warning("prepared data is made anew: %s", error)
    entry = build()
    try:
        _write(entry, place)
        return read(place)
    except (DamagedError, OSError) as error:
        log.warning("prepared data cannot be kept in %s: %s; name another folder in %s", place.parent, error, VARIABLE)
        return entry


def read(place: Path) -> Entry:
    """The entry at `place`, after a look at every byte of it.

    Raises:
        FileNotFoundError: There is none.
        DamagedError: It is not what was written.
    """
    text = (place / MANIFEST).read_bytes()
    try:
        manifest = json.loads(text)
        digests, facts = dict(manifest["files"]), manifest["facts"]
    except (ValueError, KeyError, TypeError):
        raise DamagedError(f"{place / MANIFEST} cannot be read") from None
    for name, digest in digests.items():
        path = place / name
        if not path.is_file() or digest_of_file(path) != digest:
            raise DamagedError(f"{path} was changed or cut short")
    arrays = {n.removesuffix(_ARRAY): _mapped(place / n) for n in digests if n.endswith(_ARRAY)}
    files = {n: (place / n).read_bytes() for n in digests if not n.endswith(_ARRAY)}
    return Entry(arrays, files, facts)


def _mapped(path: Path) -> npt.NDArray[Any]:
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))  # as a plain array it pickles as one


def _write(entry: Entry, place: Path) -> None:
    """Write an entry beside its place, and rename it; one that another process has put there meanwhile stays."""
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.parent / f"{_TEMPORARY}{uuid.uuid4().hex}"
    temporary.mkdir()
    try:
        for name, array in entry.arrays.items():
            np.save(temporary / f"{name}{_ARRAY}", array, allow_pickle=False)
        for name, content in entry.files.items():
            (temporary / name).write_bytes(content)
        digests = {path.name: digest_of_file(path) for path in sorted(temporary.iterdir())}
        (temporary / MANIFEST).write_text(json.dumps({"files": digests, "facts": dict(entry.facts)}, indent=1))
        _put(temporary, place)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put(temporary: Path, place: Path) -> None:
    if place.exists():
        try:
            read(place)
            return
        except (DamagedError, OSError):
            _remove(place, temporary.with_name(f"{temporary.name}-damaged"))
    try:
        temporary.rename(place)
    except OSError:
        if not place.is_dir():  # another process was faster, and its entry is as good
            raise


def _remove(place: Path, aside: Path) -> None:
    """Take a damaged entry away, at once; another process may have been faster."""
    with contextlib.suppress(FileNotFoundError):
        place.rename(aside)
        shutil.rmtree(aside, ignore_errors=True)


def digest_of(*parts: object) -> str:
    """A short name for what things say of themselves: 32 hex digits of a SHA-256."""
    return hashlib.sha256("\0".join(map(repr, (FORMAT, *parts))).encode()).hexdigest()[:32]


def digest_of_file(path: Path) -> str:
    """The SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
