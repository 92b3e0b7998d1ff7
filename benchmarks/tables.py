"""How benchmarks print: a table for people, and optionally the same rows as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def show(title: str, rows: Sequence[Mapping[str, Any]], json_file: Path | None) -> None:
    """Print rows as a table, headed by their keys, and write them to a JSON file if given."""
    heads = list(rows[0])
    lines = [
        [head.replace("_", " ") for head in heads],
        *([_cell(row[head]) for head in heads] for row in rows),
    ]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    print(title)
    for first, *others in lines:
        print(
            "  ".join(
                [
                    first.ljust(widths[0]),
                    *(t.rjust(w) for t, w in zip(others, widths[1:], strict=True)),
                ]
            )
        )
    if json_file is not None:
        json_file.write_text(json.dumps({"rows": list(rows)}, indent=2) + "\n")


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
