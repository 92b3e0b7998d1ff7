"""`--watch`: a result shown again whenever it changes, until no driver works on the study."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from sqlalchemy import Connection

from hpsearch.cli.opening import chosen_study
from hpsearch.cli.output import Format, TreeFormat, emit_line, show
from hpsearch.errors import UserError
from hpsearch.store.reading.queries import StudyHead, find_study
from hpsearch.store.store import Store

EVERY_S = 2.0
"""Seconds between two looks at the database."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Watched:
    """A result that can be shown again.

    Args:
        rows: It as plain values, for JSON.
        parts: It as tables and lines.
    """

    rows: Callable[[Connection, StudyHead], Sequence[Row]]
    parts: Callable[[Connection, StudyHead], Sequence[RenderableType]]


def watch(result: Watched, name: str | None, format_: Format | TreeFormat, storage: str) -> None:
    """Show a result until no driver works on its study any more.

    As a table it is drawn in place on a terminal, and elsewhere printed again when it has changed.
    As JSON, each row is one line, printed again when it has changed.

    Raises:
        UserError: The format is neither.
    """
    if format_ not in ("table", "json"):
        message = f"--watch does not print {format_.value}"
        raise UserError(message, "use --format json, which prints a line for each change")
    with closing(Store.open(storage, create=False)) as store:
        with store.reading() as connection:
            study = chosen_study(connection, name)
        looks = _looks(store, study.name)
        if format_ == "json":
            _print_lines(result, looks)
        else:
            _draw(result, looks)


def _looks(store: Store, name: str) -> Iterator[tuple[Connection, StudyHead]]:
    """A connection and the study, every few seconds, and once more when its driver has left."""
    while True:
        with store.reading() as connection:
            study = find_study(connection, name)
            yield connection, study
        if study.driver is None:
            return
        time.sleep(EVERY_S)


def _print_lines(result: Watched, looks: Iterator[tuple[Connection, StudyHead]]) -> None:
    printed: dict[int, str] = {}
    for connection, study in looks:
        for place, row in enumerate(result.rows(connection, study)):
            key = row.get("number", place)
            written = json.dumps(row, default=str, sort_keys=True)
            if printed.get(key) != written:
                printed[key] = written
                emit_line(row)


def _draw(result: Watched, looks: Iterator[tuple[Connection, StudyHead]]) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        _print_again(result, looks)
        return
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for connection, study in looks:
            live.update(Group(*result.parts(connection, study)), refresh=True)


def _print_again(result: Watched, looks: Iterator[tuple[Connection, StudyHead]]) -> None:
    before: Sequence[Row] | None = None
    for connection, study in looks:
        rows = result.rows(connection, study)
        if rows != before:
            show(*result.parts(connection, study))
        before = rows
