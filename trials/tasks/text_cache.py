"""The prepared texts of a task, kept on the disk: the second study on the same files does not tokenise.

The fingerprint covers whatever the tokens depend on: the content of the data files, the columns, the split, the
tokenizer, the longest length, the versions of the libraries, and the code that reads and tokenises.
"""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import numpy as np

from trials import batching, cache
from trials.batching import Sequences
from trials.tasks import labels, splitting, tables, text_data, text_tokenizer
from trials.tasks.text_classification import Scratch, TextSpec
from trials.tasks.text_data import TextData

CODE = (batching, labels, splitting, tables, text_data, text_tokenizer)
"""The modules whose code decides on the tokens."""
LIBRARIES = ("numpy", "pandas", "tokenizers", "transformers")
_HUB_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "config.json")
_WEIGHTS = (".safetensors", ".bin", ".pt", ".h5", ".onnx", ".msgpack")


def prepare(spec: TextSpec, model: str | Scratch, max_length: int) -> TextData:
    """As `text_data.prepare`, from the cache where that holds it.

    Raises:
        TaskError: With every problem of the data or the model.
    """
    name = fingerprint(spec, model, max_length)
    if name is None:
        return text_data.prepare(spec, model, max_length)
    return unpacked(cache.kept(name, lambda: packed(text_data.prepare(spec, model, max_length))))


def fingerprint(spec: TextSpec, model: str | Scratch, max_length: int) -> str | None:
    """The name of prepared data; None where it cannot be told, because a file or the tokenizer is not there (yet)."""
    paths = [spec.train, *([spec.validation] if isinstance(spec.validation, Path) else [])]
    tokenizer = _tokenizer(model)
    if tokenizer is None or not all(path.is_file() for path in paths):
        return None
    code = [cache.digest_of_file(Path(str(module.__file__))) for module in CODE]
    versions = [importlib.metadata.version(name) for name in LIBRARIES]
    contents = [(path.suffix, cache.digest_of_file(path)) for path in paths]
    share = None if isinstance(spec.validation, Path) else spec.validation
    columns = (spec.text, spec.label)
    return "text-" + cache.digest_of(contents, share, spec.split_seed, columns, tokenizer, max_length, versions, code)


def _tokenizer(model: str | Scratch) -> object:
    """What tells one tokenizer from another: a scratch model's shape, or the content of its files."""
    if isinstance(model, Scratch):
        return model.vocabulary
    folder = Path(model)
    if folder.is_dir():
        paths = [path for path in folder.iterdir() if path.is_file() and path.suffix not in _WEIGHTS]
    else:
        paths = _of_the_hub(model)
    return sorted((path.name, cache.digest_of_file(path)) for path in paths) or None


def _of_the_hub(model: str) -> list[Path]:
    """The tokenizer's files in the hub's own cache; none before its first download."""
    from huggingface_hub import try_to_load_from_cache

    found = [try_to_load_from_cache(model, name) for name in _HUB_FILES]
    return [Path(path) for path in found if isinstance(path, str)]


def packed(data: TextData) -> cache.Entry:
    """Prepared data as flat arrays, files and facts."""
    arrays: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    for name, value in vars(data).items():
        if isinstance(value, Sequences):
            arrays |= {f"{name}.tokens": value.tokens, f"{name}.offsets": value.offsets}
        elif isinstance(value, np.ndarray):
            arrays[name] = value
        elif name != "tokenizer_files":
            facts[name] = value
    return cache.Entry(arrays, data.tokenizer_files, facts)


def unpacked(entry: cache.Entry) -> TextData:
    """The reverse of `packed`."""
    values: dict[str, Any] = {"tokenizer_files": dict(entry.files), **entry.facts}
    values["labels"] = tuple(values["labels"])
    for name, array in entry.arrays.items():
        whole, _, part = name.partition(".")
        if part == "tokens":
            values[whole] = Sequences(array, entry.arrays[f"{whole}.offsets"])
        elif not part:
            values[name] = array
    return TextData(**values)
