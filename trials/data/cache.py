"""Prepared data on the disk: flat arrays, named by a fingerprint of all that they were made from.

    ~/.cache/hpsearch/          or the folder that HPSEARCH_CACHE names
      text-3f9c.../             an entry, whole or not there
        manifest.json           facts, and the SHA-256 of every file; written last
        train.tokens.npy        mapped into memory, not read
        tokenizer.json          files as they were

An entry is written as a draft and renamed (`trials.checkpoints.disk`). Two processes may therefore
prepare the same data at once: the second one uses the entry of the first. A damaged entry is made
again. Entries may be deleted at any time: a process keeps what it has mapped into memory.

A process that adds an entry removes those that were not read for the longest time, until all
together take at most `MOST_BYTES`. The modification time of the manifest is the time of the last
reading. An entry that was read within the last day stays.
"""

import contextlib
import hashlib
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trials.checkpoints.disk import drafts, trees, whole_folders
from trials.checkpoints.disk.whole_folders import MANIFEST, removed_on_error

log = logging.getLogger(__name__)

VARIABLE = "HPSEARCH_CACHE"
MOST_BYTES = 20_000_000_000  # the most bytes of all entries together
IN_USE_S = 86_400.0  # the time after its last reading in which an entry is not removed
FORMAT = 1
_ARRAY = ".npy"
_TEMPORARY = ".writing-"
_header = threading.Lock()
"""One thread at a time reads an array's header: Python 3.11 may fail where two parse at once."""


@dataclass(frozen=True)
class CacheEntry:
    """Prepared data."""

    arrays: Mapping[str, npt.NDArray[Any]]
    """Arrays by name; those that were read from the disk are read-only and memory-mapped."""
    files: Mapping[str, bytes]
    facts: Mapping[str, Any]  # the rest, as JSON


def folder(environment: Mapping[str, str] = os.environ) -> Path:
    configured = environment.get(VARIABLE)
    if configured:
        return Path(configured).expanduser()
    return Path.home() / ".cache" / "hpsearch"


def cached(name: str, build: Callable[[], CacheEntry], root: Path | None = None) -> CacheEntry:
    """The entry of a name: read if it is there and whole, else built and written. If the folder
    cannot be written to, the entry is built every time, with a warning. `name`: different for data
    that were made from different sources."""
    place = (folder() if root is None else root) / name
    try:
        return read(place)
    except FileNotFoundError:
        pass
    except OSError as error:
        log.warning("prepared data is made again: %s", error)
        trees.remove(place)
    entry = build()
    try:
        _write(entry, place)
        shrink(place.parent)
        return read(place)
    except OSError as error:
        what = "prepared data cannot be kept in %s: %s; name another folder in %s"
        log.warning(what, place.parent, error, VARIABLE)
        return entry


def read(place: Path) -> CacheEntry:
    """The entry at `place`, once every byte of it is verified. Raises FileNotFoundError if there is
    no such entry, OSError if it is damaged."""
    text = (place / MANIFEST).read_bytes()
    try:
        manifest = whole_folders.manifest_of(text)
        digests, facts = manifest["files"], manifest["facts"]
    except (ValueError, KeyError):
        raise OSError(f"{place / MANIFEST} cannot be read") from None
    damage = whole_folders.damage(place, digests)
    if damage is not None:
        raise OSError(f"{place} is damaged: {damage}")
    arrays, files = {}, {}
    for name in digests:
        file = place / name
        if name.endswith(_ARRAY):
            array = name.removesuffix(_ARRAY)
            arrays[array] = _mapped(file)
        else:
            files[name] = file.read_bytes()
    with contextlib.suppress(OSError):  # another user's entry may be read-only
        os.utime(place / MANIFEST)
    return CacheEntry(arrays, files, facts)


def _mapped(path: Path) -> npt.NDArray[Any]:
    with _header:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.asarray(array)  # as a plain array it pickles as one


def _write(entry: CacheEntry, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    draft = drafts.new(place.parent, _TEMPORARY)
    with removed_on_error(draft):
        for name, array in entry.arrays.items():
            file = draft / f"{name}{_ARRAY}"
            np.save(file, array, allow_pickle=False)
        for name, content in entry.files.items():
            file = draft / name
            file.write_bytes(content)
        digests = whole_folders.digests(draft)
        whole_folders.seal(draft, {"files": digests, "facts": dict(entry.facts)})
        # A faster process has written the same. What is lost with the power is made again.
        with contextlib.suppress(FileExistsError):
            whole_folders.put(draft, place, durable=False)
    drafts.discard(draft)


def shrink(root: Path, most_bytes: int | None = None) -> None:
    """Remove drafts of killed processes, and entries until the rest takes at most `most_bytes`."""
    drafts.remove_abandoned(root, _TEMPORARY)
    entries = sorted(_sizes(root))
    used_bytes = sum(size for _, _, size in entries)
    excess = used_bytes - (MOST_BYTES if most_bytes is None else most_bytes)
    unused_since = time.time() - IN_USE_S
    for last_read, place, size in entries:
        if excess <= 0 or last_read > unused_since:
            return
        trees.remove(place)
        excess -= size


def _sizes(root: Path) -> Iterator[tuple[float, Path, int]]:
    for manifest in root.glob(f"*/{MANIFEST}"):
        place = manifest.parent
        if place.name.startswith(_TEMPORARY):
            continue
        with contextlib.suppress(OSError):  # another process removes it too
            size = sum(file.stat().st_size for file in place.iterdir())
            yield manifest.stat().st_mtime, place, size


def digest_of(*parts: object) -> str:
    """A name for values: 32 hex digits of the SHA-256 of their `repr`."""
    text = "\0".join(map(repr, (FORMAT, *parts)))
    return hashlib.sha256(text.encode()).hexdigest()[:32]
