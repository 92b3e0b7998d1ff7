"""`hpsearch check --schema`: the JSON Schema of the study file, for editors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hpsearch.cli.places import write_text
from hpsearch.errors import UserError
from hpsearch.study_file.schema import TITLE, study_file_schema

NAME = "hpsearch.schema.json"
"""The file beside a study file that the study file's first line refers to."""


def print_schema() -> None:
    sys.stdout.write(_text())


def first_line(name: str) -> str:
    """The comment that leads editors to the schema, by its place relative to the study file."""
    return f"# yaml-language-server: $schema={name}"


def write(path: Path) -> None:
    """Write the schema; one that an earlier version wrote is replaced.

    Raises:
        UserError: Another program's file has that name, or it cannot be written.
    """
    refuse_others(path)
    write_text(path, _text(), force=True)


def refuse_others(path: Path) -> None:
    """Refuse to replace a file that is not such a schema; raises a `UserError`."""
    if not path.exists():
        return
    try:
        there = json.loads(path.read_bytes())
    except ValueError:
        there = None
    if not isinstance(there, dict) or there.get("title") != TITLE:
        message = f"{path} already exists, and is not a schema of study files"
        raise UserError(message, "move it, or give another path")


def _text() -> str:
    return json.dumps(study_file_schema(), indent=1) + "\n"
