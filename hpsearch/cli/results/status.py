"""`hpsearch status`: the progress of one study."""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict
from typing import Any

from rich.console import RenderableType
from sqlalchemy import Connection

from hpsearch.cli.opening import chosen_study, viewing
from hpsearch.cli.output import Format, emit_csv, emit_json, emit_yaml, show, terminal_width
from hpsearch.cli.results.ls import as_plain
from hpsearch.cli.results.watching import Watched, watch
from hpsearch.store.reading.queries import StudyHead
from hpsearch.store.reading.standing import StudyStatus, recent_decisions, study_status
from hpsearch.store.reading.trust import StudyTrust, study_trust
from hpsearch.terminal import status as view
from hpsearch.terminal.panel import MOST_DECISIONS, TELLING, panel
from hpsearch.words.requests import as_plain as request_as_plain
from trials.checkpoints import folders


def print_status(name: str | None, storage: str, format_: Format) -> None:
    """Print a study's trials by state, its best trial, its budget, running work and failures."""
    with viewing(storage) as connection:
        study = chosen_study(connection, name)
        found = study_status(connection, study)
        rungs = study_trust(connection, study)
    disk = found.checkpoint_bytes
    if disk is None:  # no driver has recorded it
        disk = used(found.summary.head.checkpoints)
    if format_ is Format.TABLE:
        show(*view.status(found, time.time(), terminal_width(), disk, rungs))
    elif format_ is Format.CSV:
        emit_csv([_without_lists(status_as_plain(found, disk, rungs))])
    elif format_ is Format.YAML:
        emit_yaml(status_as_plain(found, disk, rungs))
    else:
        emit_json(status_as_plain(found, disk, rungs))


def watch_status(name: str | None, storage: str, format_: Format) -> None:
    """Draw where a study stands until no driver works on it.

    Raises:
        UserError: It cannot be watched in this format.
    """

    def rows(connection: Connection, study: StudyHead) -> list[dict[str, Any]]:
        found = study_status(connection, study)
        return [status_as_plain(found, found.checkpoint_bytes, study_trust(connection, study))]

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


def status_as_plain(of: StudyStatus, disk: int | None, rungs: StudyTrust) -> dict[str, Any]:
    return {
        **as_plain(of.summary),
        "stop_requested": of.summary.head.stop_requested,
        "budget": {limit.name: {"used": limit.used, "limit": limit.most} for limit in of.budget},
        "reserved_gpu_seconds": of.reserved_gpu_seconds,
        "checkpoints": of.summary.head.checkpoints,
        "checkpoint_bytes": disk,
        "checkpoint_limit_bytes": of.summary.head.checkpoint_limit_bytes,
        "trials_per_hour": of.trials_per_hour,
        "seconds_left": of.seconds_left(time.time()),
        "running": [asdict(each) for each in of.running],
        "failures": [asdict(each) for each in of.failures],
        "rungs": [rung.as_plain() for rung in rungs.rungs],
        "requests": [request_as_plain(each) for each in of.requests],
    }
