"""`hpsearch trials`: the trials of a study, filtered and sorted."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from sqlalchemy import Connection

from hpsearch.cli.opening import chosen_study, viewing
from hpsearch.cli.options import Selection
from hpsearch.cli.output import Format, emit, note, show, terminal_width
from hpsearch.cli.results.watching import Watched, watch
from hpsearch.store.reading.queries import StudyHead, trial_rows
from hpsearch.terminal import tables


def print_trials(name: str | None, selection: Selection, format_: Format, storage: str) -> None:
    """Print the selected trials of a study."""
    with viewing(storage) as connection:
        study = chosen_study(connection, name)
        rows = trial_rows(connection, study, **asdict(selection))
    if format_ is not Format.TABLE:
        emit([row.as_plain() for row in rows], format_)
    elif rows:
        show(tables.trials(rows, terminal_width()))
    elif selection.where:
        note(f"--where selects no trials of {study.name}")
    else:
        note(f"no trials of {study.name} yet")


def watch_trials(name: str | None, selection: Selection, format_: Format, storage: str) -> None:
    """Print the selected trials again whenever they change. Raises UserError if they cannot be
    watched in this format."""

    def rows(connection: Connection, study: StudyHead) -> list[dict[str, Any]]:
        return [row.as_plain() for row in trial_rows(connection, study, **asdict(selection))]

    def parts(connection: Connection, study: StudyHead) -> list[RenderableType]:
        found = trial_rows(connection, study, **asdict(selection))
        return [tables.trials(found, terminal_width())]

    watch(Watched(rows, parts), name, format_, storage)
