"""The command line of a benchmark, and how it prints: a table, and the same rows as JSON."""

import json
import math
import statistics
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any


def arguments(
    doc: str | None, quick: Mapping[str, Any], words: str | None = None, **options: Any
) -> Namespace:
    """The parsed command line: `--json FILE`, `--quick`, and an option for each name.

    Args:
        doc: The description: how the command is called, and what its options mean.
        quick: The values that `--quick` puts in the place of others.
        words: The name of a list of words without an option, if there is one.
        options: The default of each option. A list is given as words with commas; a tuple has the
            choices, the usual one first; a type has no default.
    """
    parser = ArgumentParser(description=doc, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="also write the rows to this file"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a short round: it shows that it works"
    )
    if words is not None:
        parser.add_argument(words, nargs="*")
    for name, default in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **_kind(default))
    given = parser.parse_args()
    if given.quick:
        vars(given).update(quick)
    return given


def _kind(default: Any) -> dict[str, Any]:
    """How an option is read that has this default."""
    if default is False:
        return {"action": "store_true"}
    if isinstance(default, type):
        return {"type": default}
    if isinstance(default, tuple):
        return {"choices": default, "default": default[0]}
    if isinstance(default, list):
        return {"type": partial(_listed, type(default[0])), "default": default}
    return {"type": type(default), "default": default}


def _listed(kind: Callable[[str], Any], text: str) -> list[Any]:
    return [kind(word.strip()) for word in text.split(",") if word.strip()]


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
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))
    write(rows, json_file)


def write(rows: Sequence[Mapping[str, Any]], json_file: Path | None) -> None:
    """Write rows to a JSON file if given."""
    if json_file is not None:
        json_file.write_text(json.dumps({"rows": list(rows)}, indent=2) + "\n")


def standard_error(values: Sequence[float]) -> float:
    """The standard error of a mean; not a number for a single value."""
    return math.nan if len(values) < 2 else statistics.stdev(values) / math.sqrt(len(values))


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
