"""Where output goes: results to stdout alone, in the format asked for; everything else to stderr."""

from __future__ import annotations

import csv
import enum
import json
import logging
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType

from hpsearch.views.terminal import escaped, plain

PLAIN_WIDTH = 100_000
"""Columns of a table that is not for a terminal: wide enough that nothing wraps."""


_STEERING = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""What may steer a terminal and JSON would let stand as it is, with its escapes."""


class Format(enum.StrEnum):
    """How rows are printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class TreeFormat(enum.StrEnum):
    """How something that is more than rows is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class What(enum.StrEnum):
    """What is exported: a row for each."""

    TRIALS = "trials"
    REPORTS = "reports"
    ATTEMPTS = "attempts"


class TrainOn(enum.StrEnum):
    """The data that a final model learns from."""

    TRAIN = "train"
    ALL = "train+validation"


class ExportTo(enum.StrEnum):
    """A format to write a final model in, too."""

    TORCHSCRIPT = "torchscript"
    TORCH_EXPORT = "torch.export"


def note(text: str) -> None:
    """Tell the reader something that is not the result; what would steer a terminal is written as an escape."""
    print(escaped(text), file=sys.stderr)  # noqa: T201  # this is the command line


class _Formatter(logging.Formatter):
    """Log records as notes are: what workers and servers say steers no terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(super().format(record))


def log_as_notes() -> None:
    """Have warnings of the program printed beside its notes."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("hpsearch: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def show(*parts: RenderableType) -> None:
    """Print tables and lines: with rules and colours on a terminal, as plain columns anywhere else."""
    shown = [plain(part) if isinstance(part, str) else part for part in parts]
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(*shown, sep="\n")
        return
    wide = Console(file=sys.stdout, highlight=False, width=PLAIN_WIDTH, no_color=True)
    with wide.capture() as capture:
        wide.print(*shown, sep="\n")
    sys.stdout.writelines(line.rstrip() + "\n" for line in capture.get().splitlines())


def room() -> int | None:
    """The width of the terminal; None where stdout is none."""
    console = Console(file=sys.stdout)
    return console.width if console.is_terminal else None


def emit_json(value: Any) -> None:
    """Print a value as JSON that any reader takes: numbers that are not finite become null."""
    text = json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    sys.stdout.write(text.translate(_STEERING) + "\n")


def emit_yaml(*documents: Any) -> None:
    """Print one YAML document, or a stream of several."""
    import yaml

    text = yaml.safe_dump_all(
        [_finite(d) for d in documents], sort_keys=False, allow_unicode=True, width=120, default_flow_style=False
    )
    sys.stdout.write(text)


def emit_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows with a header; what is nested becomes columns such as ``params.learning_rate``."""
    flat = [dict(_flat(row)) for row in rows]
    writer = csv.DictWriter(sys.stdout, list(dict.fromkeys(name for row in flat for name in row)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)


def emit(rows: Sequence[Mapping[str, Any]], format_: Format) -> None:
    """Print rows as JSON, YAML or CSV."""
    if format_ is Format.CSV:
        emit_csv(rows)
    elif format_ is Format.YAML:
        emit_yaml(list(rows))
    else:
        emit_json(list(rows))


def _flat(row: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", json.dumps(value) if isinstance(value, bool | list) else value


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    return value
