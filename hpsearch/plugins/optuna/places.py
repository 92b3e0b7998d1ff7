"""Sources that are Optuna's, by how they are written."""

import shlex
from pathlib import Path


def is_storage(source: str) -> bool:
    """True for the URL of a database."""
    return "://" in source


def words_of(source: str) -> list[str] | None:
    """The path of a script and its arguments; None if the source is not a script."""
    try:
        words = [source] if Path(source).is_file() else shlex.split(source)
    except ValueError:  # an open quotation mark
        return None
    return words if words and Path(words[0]).suffix == ".py" else None


def is_script(source: str) -> bool:
    """True for a Python script with its arguments."""
    return words_of(source) is not None
