"""`hpsearch check --schema`: the JSON Schema of the study file, for editors."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hpsearch.cli.places import whole_file
from hpsearch.study_file.schema import study_file_schema

NAME = "hpsearch.schema.json"
"""The file beside a study file that the study file's first line refers to."""
FIRST_LINE = f"# yaml-language-server: $schema={NAME}"
"""The comment that leads editors to the schema."""


def print_schema() -> None:
    sys.stdout.write(_text())


def write(path: Path) -> None:
    """Write the schema, also in place of an earlier version's. Raises UserError if it cannot be
    written."""
    with whole_file(path) as unfinished:
        unfinished.write_text(_text(), encoding="utf-8")


def _text() -> str:
    return json.dumps(study_file_schema(), indent=1) + "\n"
