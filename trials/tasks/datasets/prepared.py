"""Prepared data, kept on the disk: the second study on the same files neither tokenises nor
decodes.

`prepare` builds data, or finds them in `trials.data.cache` by a fingerprint. That covers everything
that decides on them: the content of the files, other facts, the model's tokenizer and processor,
the versions of the libraries, and the code of this package.
"""

import dataclasses
import functools
import hashlib
import importlib.metadata
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import trials
from trials.checkpoints.disk.whole_folders import digest_of_file
from trials.contract import Fold
from trials.data import cache, files
from trials.descriptions.models import Pretrained, Scratch

LIBRARIES = ("numpy", "pandas", "pillow", "tokenizers", "transformers")
_HUB_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "config.json",
    "preprocessor_config.json",
)
_WEIGHTS = (".safetensors", ".bin", ".pt", ".h5", ".onnx", ".msgpack")
_TYPE, _FIELDS = "type", "fields"
_ARRAY, _FILE, _MAPPING = "array", "file", "mapping"
"""Keys of the objects that stand for Python's objects in JSON. A list stands for a tuple."""


def prepare(name: str | None, build: Callable[[], Any], types: tuple[type, ...]) -> Any:
    """The data of a fingerprint, from the cache if they are there.

    Args:
        name: None for data that are not kept.
        build: Prepares the data: a dataclass of arrays, byte strings by file name, plain values,
            and such dataclasses.
        types: The dataclasses that the data are made of.
    """
    if name is None:
        return build()
    entry = cache.cached(name, lambda: entry_of(build()))
    return data_in(entry, types)


def fingerprint(
    kind: str,
    sources: tuple[Path | float | Fold, ...],
    facts: tuple[object, ...],
    model: Pretrained | Scratch | None,
) -> str | None:
    """The name of prepared data; None if a file or the tokenizer is missing.

    Args:
        sources: The files and folders, or the share or fold of the training data for validation.
        facts: Compared by their `repr`.
        model: The model whose tokenizer or processor encodes the data; None if none does.
    """
    encoder = None if model is None else _encoder(model)
    if model is not None and encoder is None:
        return None
    contents: list[object] = []
    for source in sources:
        if isinstance(source, Path) and not source.exists():
            return None
        contents.append(_content(source))
    versions = [importlib.metadata.version(name) for name in LIBRARIES]
    return f"{kind}-{cache.digest_of(contents, facts, encoder, versions, code_digests())}"


@functools.cache
def code_digests() -> list[str]:
    """The digests of this package's files: any of them may change how data is prepared."""
    root = Path(trials.__file__).parent
    return [digest_of_file(path) for path in sorted(root.rglob("*.py"))]


def _content(source: Path | float | Fold) -> object:
    if not isinstance(source, Path):
        return source
    if source.is_file():
        return source.suffix, digest_of_file(source)
    found = []
    for file in files.below(source):
        if file.is_file():
            name = str(file.relative_to(source))
            found.append((name, digest_of_file(file)))
    return found


def _encoder(model: Pretrained | Scratch) -> object:
    """The identity of a tokenizer; None if its files are not here, or it may run its own code."""
    if isinstance(model, Scratch):
        return model.vocabulary
    if model.trusted:
        return None
    if model.folder is None:
        paths = _of_the_hub(model.name)
    else:
        paths = [path for path in model.folder.iterdir() if path.is_file()]
        paths = [path for path in paths if path.suffix not in _WEIGHTS]
    return sorted((path.name, digest_of_file(path)) for path in paths) or None


def _of_the_hub(model: str) -> list[Path]:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = [try_to_load_from_cache(model, name) for name in _HUB_FILES]
    except HFValidationError:  # the name is not a hub id: loading the model reports that
        return []
    return [Path(path) for path in found if isinstance(path, str)]


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
    """The reverse of `entry_of`. `types` are the dataclasses that occur in the data."""
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
