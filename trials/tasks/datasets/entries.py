"""Prepared data as an entry of the cache, and back: arrays, files, and their order as JSON."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from trials.data import cache

_TYPE, _FIELDS = "type", "fields"
_ARRAY, _FILE, _MAPPING = "array", "file", "mapping"
"""Keys of the objects that stand for Python's objects in JSON. A list stands for a tuple."""


def entry_of(data: object) -> cache.CacheEntry:
    """Prepared data as flat arrays, files, and the facts that join them."""
    arrays: dict[str, Any] = {}
    files: dict[str, bytes] = {}

    def plain(value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            arrays[name] = value
            return {_ARRAY: name}
        if isinstance(value, bytes):
            _, _, file = name.rpartition("/")
            assert file not in files, f"two files of one name: {file}"
            files[file] = value
            return {_FILE: file}
        if isinstance(value, Mapping):
            return {_MAPPING: {key: plain(part, f"{name}/{key}") for key, part in value.items()}}
        if dataclasses.is_dataclass(value):
            fields = {}
            for field in dataclasses.fields(value):
                full = f"{name}.{field.name}" if name else field.name
                fields[field.name] = plain(getattr(value, field.name), full)
            return {_TYPE: type(value).__name__, _FIELDS: fields}
        return value

    facts = plain(data, "")
    return cache.CacheEntry(arrays, files, facts)


def digest_of(data: object) -> str:
    """The SHA-256 of the arrays of prepared data."""
    digest = hashlib.sha256()
    for name, array in entry_of(data).arrays.items():
        digest.update(f"{name} {array.dtype} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def data_in(entry: cache.CacheEntry, types: tuple[type, ...]) -> Any:
    """The reverse of `entry_of`.

    Args:
        types: The dataclasses that occur in the data.
    """
    named = {kind.__name__: kind for kind in types}

    def whole(fact: Any) -> Any:
        if isinstance(fact, list | tuple):
            return tuple(map(whole, fact))
        if not isinstance(fact, Mapping):
            return fact
        if _ARRAY in fact:
            return entry.arrays[fact[_ARRAY]]
        if _FILE in fact:
            return entry.files[fact[_FILE]]
        parts = fact[_MAPPING] if _MAPPING in fact else fact[_FIELDS]
        values = {name: whole(part) for name, part in parts.items()}
        return values if _MAPPING in fact else named[fact[_TYPE]](**values)

    return whole(entry.facts)
