"""`hpsearch status`: the progress of one study."""

from __future__ import annotations

import shutil
import time
from typing import Any

from rich.console import RenderableType
from sqlalchemy import Connection

from hpsearch.cli.opening import chosen_study, viewing
from hpsearch.cli.output import Format, emit_csv, emit_json, emit_yaml, show, terminal_width
from hpsearch.cli.results.watching import Watched, watch
from hpsearch.documents.studies import status_document
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.reading.standing import recent_decisions, study_status
from hpsearch.store.reading.trust import study_trust
from hpsearch.terminal import status as view
from hpsearch.terminal.panel import MOST_DECISIONS, TELLING, panel
from trials.checkpoints import folders


def print_status(name: str | None, storage: str, format_: Format) -> None:
    """Print a study's trials by state, its best trial, its budget, running work and failures."""
    with viewing(storage) as connection:
        study = chosen_study(connection, name)
        found = study_status(connection, study)
        trust = study_trust(connection, study)
    disk = found.checkpoint_bytes
    if disk is None:  # no driver has recorded it
        disk = used(found.summary.head.checkpoints)
    if format_ is Format.TABLE:
        show(*view.status(found, time.time(), terminal_width(), disk, trust))
        return
    document = status_document(found, trust, disk)
    if format_ is Format.CSV:
        emit_csv([_without_lists(document)])
    elif format_ is Format.YAML:
        emit_yaml(document)
    else:
        emit_json(document)


def watch_status(name: str | None, storage: str, format_: Format) -> None:
    """Draw where a study stands until no driver works on it.

    Raises:
        UserError: It cannot be watched in this format.
    """

    def rows(connection: Connection, study: StudyHead) -> list[dict[str, Any]]:
        found = study_status(connection, study)
        trust = study_trust(connection, study)
        return [status_document(found, trust, found.checkpoint_bytes)]

    def parts(connection: Connection, study: StudyHead) -> list[RenderableType]:
        found = study_status(connection, study)
        decisions = recent_decisions(connection, study, TELLING, MOST_DECISIONS)
        if found.summary.driver is None or study.budget is None:
            return view.status(found, time.time(), terminal_width(), found.checkpoint_bytes)
        height = shutil.get_terminal_size().lines
        return [panel(view.picture(found, study.budget, decisions, time.time()), height)]

    watch(Watched(rows, parts), name, format_, storage)


def _without_lists(plain: dict[str, Any]) -> dict[str, Any]:
    """What fits into one row of a CSV file."""
    lists = ("running", "failures", "rungs", "requests")
    return {name: value for name, value in plain.items() if name not in lists}


def used(folder: str | None) -> int | None:
    """What a folder of checkpoints takes, in bytes; None if it cannot be read from here."""
    if folder is None:
        return None
    try:
        return folders.used_bytes(folder)
    except Exception:  # noqa: BLE001 - each store has errors of its own
        return None
