"""Prepared data as an entry of the cache, and back: arrays, files, and how they belong together."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from trials.data import cache

_TYPE, _FIELDS = "type", "fields"
_ARRAY, _FILE, _TUPLE, _MAPPING = "array", "file", "tuple", "mapping"
"""Keys of the objects that stand for what JSON does not have."""


def entry_of(data: object) -> cache.CacheEntry:
    """Prepared data as flat arrays, files, and the facts that say how they belong together."""
    parts = _Parts()
    facts = parts.plain(data, "")
    return cache.CacheEntry(parts.arrays, parts.files, facts)


def digest_of(data: object) -> str:
    """The SHA-256 of the arrays of prepared data."""
    digest = hashlib.sha256()
    for name, array in entry_of(data).arrays.items():
        digest.update(f"{name} {array.dtype} {array.shape}\0".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


class _Parts:
    """The arrays and files of data, as they are taken out of it."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}

    def plain(self, value: Any, name: str) -> Any:
        """A value as JSON, with its arrays and files taken out."""
        if isinstance(value, np.ndarray):
            self.arrays[name] = value
            return {_ARRAY: name}
        if isinstance(value, bytes):
            _, _, file = name.rpartition("/")
            return {_FILE: self._file(value, file)}
        if isinstance(value, tuple):
            parts = []
            for number, part in enumerate(value):
                parts.append(self.plain(part, f"{name}.{number}"))
            return {_TUPLE: parts}
        if isinstance(value, Mapping):
            named = {}
            for key, part in value.items():
                named[key] = self.plain(part, f"{name}/{key}")
            return {_MAPPING: named}
        if dataclasses.is_dataclass(value):
            return {_TYPE: type(value).__name__, _FIELDS: self._fields(value, name)}
        return value

    def _fields(self, value: Any, name: str) -> dict[str, Any]:
        found = {}
        for field in dataclasses.fields(value):
            full = f"{name}.{field.name}" if name else field.name
            found[field.name] = self.plain(getattr(value, field.name), full)
        return found

    def _file(self, content: bytes, name: str) -> str:
        assert name not in self.files, f"two files of one name: {name}"
        self.files[name] = content
        return name


def data_in(entry: cache.CacheEntry, types: tuple[type, ...]) -> Any:
    """The reverse of `entry_of`.

    Args:
        types: The dataclasses that occur in the data.
    """
    named = {kind.__name__: kind for kind in types}

    def whole(fact: Any) -> Any:
        if not isinstance(fact, Mapping):
            return fact
        if _ARRAY in fact:
            return entry.arrays[fact[_ARRAY]]
        if _FILE in fact:
            return entry.files[fact[_FILE]]
        if _TUPLE in fact:
            return tuple(map(whole, fact[_TUPLE]))
        if _MAPPING in fact:
            return all_whole(fact[_MAPPING])
        kind = named[fact[_TYPE]]
        return kind(**all_whole(fact[_FIELDS]))

    def all_whole(facts: Mapping[str, Any]) -> dict[str, Any]:
        return {name: whole(part) for name, part in facts.items()}

    return whole(entry.facts)
