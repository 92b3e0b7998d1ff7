"""Output: results go to stdout in the chosen format, everything else to stderr; files
are written whole or not at all, and only where nothing is yet.
"""

import csv
import enum
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType

from hpsearch.domain.numbers import finite
from hpsearch.domain.plugins.door import offers_of
from hpsearch.domain.plugins.offers import LauncherPlugin
from hpsearch.errors import UserError
from hpsearch.store.connecting.hints import DEFAULT_STORAGE, for_database
from hpsearch.views.terminal.escapes import escaped, plain
from trials.checkpoints.disk import whole_folders
from trials.settings import as_scalar

PLAIN_WIDTH = 100_000  # columns of a table that is not for a terminal: so many that nothing wraps
_STEERING = {code: f"\\u{code:04x}" for code in range(0x7F, 0xA0)}
"""Characters that can control a terminal and that JSON does not escape, with their escapes."""


class Format(enum.StrEnum):
    """A form of printed rows."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


class TreeFormat(enum.StrEnum):
    """A form of printed results that are nested."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class What(enum.StrEnum):
    """The things that an export has rows for."""

    TRIALS = "trials"
    REPORTS = "reports"
    ATTEMPTS = "attempts"


class TrainOn(enum.StrEnum):
    """The data that a final model is trained on."""

    TRAIN = "train"
    ALL = "train+validation"


_RESUME = re.compile(r"\bhpsearch resume (?:'[^']*'|[\w.-]*\w)(?!\w)( --)?")

_chosen = {"storage": DEFAULT_STORAGE}  # the database of the command that runs


def suggest_for(storage: str = DEFAULT_STORAGE) -> str:
    """Let all commands that are suggested from now on name this database; return its URL."""
    _chosen["storage"] = storage
    return storage


def chosen_storage() -> str:
    return _chosen["storage"]


def submitted_by(command: str | None) -> None:
    """Let suggestions continue the study that the command is about by the command that has launched
    it elsewhere; by None as any other."""
    _chosen["submit"] = command or ""


def was_submitted() -> bool:
    """True if the study that the command is about was launched elsewhere."""
    return bool(_chosen.get("submit"))


def suggested(text: str) -> str:
    """A text whose commands work as they stand: for the database of the command that runs. What was
    launched elsewhere is launched again, and resumed with options in a job."""
    again = os.environ.get("HPSEARCH_SUBMIT") or _chosen.get("submit")
    if again:
        text = _RESUME.sub(lambda found: _launched(again, found), text)
    with suppress(UserError):  # which names no database
        return for_database(_chosen["storage"], text)
    return text


def _launched(again: str, resume: re.Match[str]) -> str:
    """The command that resumes a study, as the launcher that `again` calls would have it."""
    launchers = offers_of(LauncherPlugin).values()
    inside = "".join(each.inside for each in launchers if f"hpsearch {each.name} " in again)
    if inside and resume.string[: resume.start()].endswith(f"{inside} "):
        return resume[0]
    return f"{inside} {resume[0]}".lstrip() if resume[1] else again


def command(words: str) -> str:
    """The command of these words, such as ``best NAME``, for the database of the one that runs."""
    return suggested(f"hpsearch {words}")


def note(text: str) -> None:
    """Print a message to stderr: its commands as `suggested`, and control characters escaped."""
    print(escaped(suggested(text)), file=sys.stderr)  # noqa: T201  # this is the command line


class _Formatter(logging.Formatter):
    """Escapes control characters in log records, as notes do: workers and servers wrote them."""

    def format(self, record: logging.LogRecord) -> str:
        return escaped(suggested(super().format(record)))


def log_as_notes() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Formatter("hpsearch: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


def show(*parts: RenderableType) -> None:
    """Print tables and lines: with rules and colours on a terminal, else as plain columns."""
    shown = [plain(part) if isinstance(part, str) else part for part in parts]
    console = Console(file=sys.stdout, highlight=False)
    if console.is_terminal:
        console.print(*shown, sep="\n")
        return
    wide = Console(file=sys.stdout, highlight=False, width=PLAIN_WIDTH, no_color=True)
    with wide.capture() as capture:
        wide.print(*shown, sep="\n")
    lines = capture.get().splitlines()
    sys.stdout.writelines(line.rstrip() + "\n" for line in lines)


def terminal_width() -> int | None:
    """Columns of the terminal; None if stdout is not a terminal."""
    console = Console(file=sys.stdout)
    return console.width if console.is_terminal else None


def emit_line(value: Any) -> None:
    """Print a value as strict JSON on one line, at once."""
    sys.stdout.write(f"{_json(value)}\n")
    sys.stdout.flush()


def _json(value: Any, indent: int | None = None) -> str:
    """Strict JSON: numbers that are not finite become null."""
    text = json.dumps(finite(value), indent=indent, ensure_ascii=False, allow_nan=False)
    return text.translate(_STEERING)


def emit_yaml(*documents: Any) -> None:
    """Print one YAML document, or a stream of several."""
    import yaml

    plain = map(finite, documents)
    style: dict[str, Any] = {"sort_keys": False, "width": 120, "default_flow_style": False}
    sys.stdout.write(yaml.safe_dump_all(plain, allow_unicode=True, **style))


def emit_tree(value: Mapping[str, Any], format_: TreeFormat) -> None:
    """Print a nested result as JSON or YAML."""
    if format_ is TreeFormat.YAML:
        emit_yaml(value)
    else:
        sys.stdout.write(f"{_json(value, indent=2)}\n")


def emit(rows: Iterable[Mapping[str, Any]], format_: Format) -> None:
    """Print rows as JSON, YAML or CSV, each as it is read. CSV goes through the rows twice."""
    if format_ is Format.CSV:
        _emit_csv(rows)
        return
    before = "[\n  "
    for row in rows:
        if format_ is Format.YAML:
            emit_yaml([row])
        else:
            text = _json(row, indent=2).replace("\n", "\n  ")
            sys.stdout.write(f"{before}{text}")
        before = ",\n  "
    if before.startswith("["):
        sys.stdout.write("[]\n")
    elif format_ is Format.JSON:
        sys.stdout.write("\n]\n")


def _emit_csv(rows: Iterable[Mapping[str, Any]]) -> None:
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(_flat(row))
    writer = csv.DictWriter(sys.stdout, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(map(_flat, rows))


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row with their names, mappings taken apart, but not those inside others."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        inner = value if isinstance(value, Mapping) else {}
        flat |= {f"{name}.{key}": _csv_cell(each) for key, each in inner.items()}
        if not isinstance(value, Mapping):
            flat[name] = _csv_cell(value)
    return flat


def _csv_cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, bool) else as_scalar(value)


def refuse_taken(to: Path, *, force: bool) -> None:
    """Raise UserError for a file that exists, unless it is replaced by `force`, or cannot be."""
    try:
        exists = to.exists()
    except OSError as error:
        message = f"{to} cannot be written: {error.strerror}"
        raise UserError(message, "choose another name") from None
    if exists and not force:
        raise UserError(f"{to} already exists", "choose another name, or replace it with --force")


@contextmanager
def whole_file(to: Path) -> Iterator[Path]:
    """A place to write to, which becomes the file when the block ends well. Raises UserError."""
    try:
        with whole_folders.whole_file(to) as unfinished:
            yield unfinished
    except OSError as error:
        message = f"{to} cannot be written: {error.strerror or error}"
        hint = "check the folder, its permissions and the free space on its disk"
        raise UserError(message, hint) from error
