"""`hpsearch status`: the progress of one study."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, nullcontext
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import TreeFormat, emit_line, emit_tree, show, suggested, terminal_width
from hpsearch.errors import UserError
from hpsearch.store.reading.queries import find_study
from hpsearch.store.reading.standing import study_status
from hpsearch.store.reading.trust import study_trust
from hpsearch.store.store import Store
from hpsearch.views.documents import status_document
from hpsearch.views.live import EVERY_S, panel_of
from hpsearch.views.terminal import status as view
from trials.checkpoints import folders


def print_status(name: str | None, storage: str, format_: TreeFormat) -> None:
    """Print a study's trials by state, its best trial, its budget, running work and failures."""
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        found = study_status(connection, study)
        trust = study_trust(connection, study)
    disk = found.checkpoint_bytes
    if disk is None:  # no driver has recorded it
        disk = used(found.summary.head.checkpoints)
    if format_ is TreeFormat.TABLE:
        show(*view.status(found, time.time(), terminal_width(), disk, trust, suggested))
    else:
        emit_tree(status_document(found, trust, disk), format_)


def watch_status(name: str | None, storage: str, format_: TreeFormat) -> None:
    """Show where a study stands until no driver works on it any more.

    As a table it is drawn in place on a terminal, and elsewhere printed again when it has changed.
    As JSON, it is a line for each change.

    Raises:
        UserError: The format is neither.
    """
    if format_ is TreeFormat.YAML:
        hint = "use --format json, which prints a line for each change"
        raise UserError("--watch does not print yaml", hint)
    console = Console(highlight=False)
    is_drawn = format_ is TreeFormat.TABLE and console.is_terminal
    live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
    before: dict[str, Any] | None = None
    with closing(Store.open(storage, create=False)) as store:
        with store.reading() as connection:
            study = chosen_study(connection, name)
        with live if is_drawn else nullcontext():
            for document, parts in _looks(store, study.name):
                if is_drawn:
                    live.update(Group(*parts), refresh=True)
                elif document != before and format_ is TreeFormat.JSON:
                    emit_line(document)
                elif document != before:
                    show(*parts)
                before = document


def _looks(store: Store, name: str) -> Iterator[tuple[dict[str, Any], list[RenderableType]]]:
    """The study every few seconds, and once more when its driver has left: as a document, and as
    parts to draw. The transaction has ended when a look is given out: who waits at a pager must not
    hold the database open."""
    while True:
        with store.reading() as connection:
            study = find_study(connection, name)
            found = study_status(connection, study)
            document = status_document(
                found, study_trust(connection, study), found.checkpoint_bytes
            )
            if found.summary.driver is None:
                disk = found.checkpoint_bytes
                parts = view.status(found, time.time(), terminal_width(), disk, suggested=suggested)
            else:
                parts = [panel_of(connection, study, found)]
        yield document, parts
        if study.driver is None:
            return
        time.sleep(EVERY_S)


def used(folder: str | None) -> int | None:
    """The bytes that a folder of checkpoints takes; None if it cannot be read from here."""
    if folder is None:
        return None
    try:
        return folders.used_bytes(folder)
    except Exception:  # noqa: BLE001 - each store has errors of its own
        return None
