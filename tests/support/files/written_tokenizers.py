"""Tokenizers as prepared data holds them."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer


def tokenizer_in(files: Mapping[str, bytes]) -> Any:
    """The tokenizer of some files by name."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        return AutoTokenizer.from_pretrained(folder)
