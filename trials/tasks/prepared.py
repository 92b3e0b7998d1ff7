"""Prepared data, kept on the disk: the second study on the same files neither tokenises nor decodes.

A task states a `Recipe`: what it prepares, from which files, and what else decides on the result. `prepare` follows it,
or finds in `trials.cache` what was made by it before. The fingerprint covers whatever the data depends on: the content
of the files, the recipe's facts, the model's tokenizer and processor, the versions of the libraries, and the code that
reads and encodes.
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from trials import batching, cache
from trials.tasks.pretrained import Pretrained, references
from trials.tasks.text_classification import Scratch

Data = TypeVar("Data")

_HERE = Path(__file__).parent
CODE = (
    Path(batching.__file__),
    *(_HERE / name for name in ("labels.py", "splitting.py", "tables.py", "text_tokenizer.py")),
    *sorted(_HERE.glob("*_data.py")),
)
"""The modules whose code decides on prepared data."""
LIBRARIES = ("numpy", "pandas", "pillow", "tokenizers", "transformers")
_HUB_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "config.json", "preprocessor_config.json")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".h5", ".onnx", ".msgpack")


@dataclass(frozen=True)
class Recipe(Generic[Data]):
    """How data is prepared, and what it depends on.

    Args:
        kind: The first word of the entry's name.
        sources: The files and folders that are read; the share that is split off for validation, where one is.
        facts: Whatever else decides on the result; told apart by their `repr`.
        model: The model whose tokenizer or processor encodes the data; None where none does.
        types: The dataclasses that the data is made of.
        build: Prepares the data: a dataclass of arrays, byte strings by file name, plain values, and such dataclasses.
    """

    kind: str
    sources: tuple[Path | float, ...]
    facts: tuple[object, ...]
    model: Pretrained | Scratch | None
    types: tuple[type, ...]
    build: Callable[[], Data]


def prepare(recipe: Recipe[Data]) -> Data:
    """What the recipe prepares, from the cache where that holds it.

    Raises:
        TaskError: With every problem of the data or the model.
    """
    name = fingerprint(recipe)
    if name is None:
        return recipe.build()
    data: Data = unpacked(cache.kept(name, lambda: packed(recipe.build())), recipe.types)
    return data


# ----------------------------------------------------------------------------------------------- fingerprint


def fingerprint(recipe: Recipe[Any]) -> str | None:
    """The name of prepared data; None where it cannot be told, because a file or the tokenizer is not there (yet)."""
    model = None if recipe.model is None else _encoder(recipe.model)
    paths = [source for source in recipe.sources if isinstance(source, Path)]
    if (recipe.model is not None and model is None) or not all(path.exists() for path in paths):
        return None
    code = [cache.digest_of_file(path) for path in CODE]
    versions = [importlib.metadata.version(name) for name in LIBRARIES]
    contents = [_content(source) if isinstance(source, Path) else source for source in recipe.sources]
    return f"{recipe.kind}-{cache.digest_of(contents, recipe.facts, model, versions, code)}"


def _content(path: Path) -> object:
    """What tells the content of a file, or of all files in a folder."""
    if path.is_file():
        return path.suffix, cache.digest_of_file(path)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    return [(str(file.relative_to(path)), cache.digest_of_file(file)) for file in files]


def _encoder(model: Pretrained | Scratch) -> object:
    """What tells one tokenizer from another: a scratch model's vocabulary, or the content of its files, code included.
    None where there is code that is not among them."""
    if isinstance(model, Scratch):
        return model.vocabulary
    folder = model.folder
    if model.trusted and (folder is None or any("--" in reference for reference in references(folder))):
        return None  # the code of the hub is its own affair
    if folder is not None:
        paths = [path for path in folder.iterdir() if path.is_file() and path.suffix not in _WEIGHTS]
    else:
        paths = _of_the_hub(model.name)
    files = sorted((path.name, cache.digest_of_file(path)) for path in paths)
    return (model.trusted, files) if files else None


def _of_the_hub(model: str) -> list[Path]:
    """The encoder's files in the hub's own cache; none before its first download."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        found = [try_to_load_from_cache(model, name) for name in _HUB_FILES]
    except HFValidationError:  # no such id can be: whoever loads it will say so
        return []
    return [Path(path) for path in found if isinstance(path, str)]


# --------------------------------------------------------------------------------------------------- packing

_TYPE, _FIELDS, _ARRAY, _FILE, _TUPLE, _MAPPING = "type", "fields", "array", "file", "tuple", "mapping"
"""Keys of the objects that stand for what JSON has not."""


def packed(data: object) -> cache.Entry:
    """Prepared data as flat arrays, files, and the facts that tell how they belong together."""
    arrays: dict[str, Any] = {}
    files: dict[str, bytes] = {}

    def plain(value: Any, name: str) -> Any:
        if isinstance(value, np.ndarray):
            arrays[name] = value
            return {_ARRAY: name}
        if isinstance(value, bytes):
            file = name.rpartition("/")[2]
            assert file not in files, f"two files of one name: {file}"
            files[file] = value
            return {_FILE: file}
        if isinstance(value, tuple):
            return {_TUPLE: [plain(part, f"{name}.{number}") for number, part in enumerate(value)]}
        if isinstance(value, Mapping):
            return {_MAPPING: {key: plain(part, f"{name}/{key}") for key, part in value.items()}}
        if dataclasses.is_dataclass(value):
            parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            prefix = f"{name}." if name else ""
            fields = {key: plain(part, prefix + key) for key, part in parts.items()}
            return {_TYPE: type(value).__name__, _FIELDS: fields}
        return value

    facts = plain(data, "")
    return cache.Entry(arrays, files, facts)


def unpacked(entry: cache.Entry, types: tuple[type, ...]) -> Any:
    """The reverse of `packed`.

    Args:
        entry: What it returned.
        types: The dataclasses that stand in the data.
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
            return tuple(whole(part) for part in fact[_TUPLE])
        if _MAPPING in fact:
            return {key: whole(part) for key, part in fact[_MAPPING].items()}
        return named[fact[_TYPE]](**{name: whole(part) for name, part in fact[_FIELDS].items()})

    return whole(entry.facts)
