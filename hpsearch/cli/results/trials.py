"""`hpsearch trials`: the trials of a study, filtered and sorted."""

from __future__ import annotations

from dataclasses import asdict

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.options import Selection
from hpsearch.cli.output import Format, emit, note, show, terminal_width
from hpsearch.store.reading.queries import trial_rows
from hpsearch.terminal import tables


def print_trials(name: str | None, selection: Selection, format_: Format, storage: str) -> None:
    """Print the selected trials of a study."""
    with reading(storage) as connection:
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
