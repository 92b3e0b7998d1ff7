"""`hpsearch trials`: the trials of a study, filtered and sorted."""

from __future__ import annotations

from dataclasses import asdict

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.options import Selection
from hpsearch.cli.output import Format, emit, note, show, terminal_width
from hpsearch.cli.streams import held_back
from hpsearch.store.reading.queries import Rows, each_trial
from hpsearch.terminal import tables


def print_trials(name: str | None, selection: Selection, format_: Format, storage: str) -> None:
    """Print the selected trials of a study, a table for each thousand of them."""
    with held_back(), reading(storage) as connection:
        study = chosen_study(connection, name)
        rows = each_trial(connection, study, **asdict(selection))
        if format_ is not Format.TABLE:
            emit(Rows(lambda: (row.as_plain() for row in rows)), format_)
            return
        is_empty = True
        for some in rows.parts():
            show(tables.trials(some, terminal_width()))
            is_empty = False
    if is_empty and selection.where:
        note(f"--where selects no trials of {study.name}")
    elif is_empty:
        note(f"no trials of {study.name} yet")
