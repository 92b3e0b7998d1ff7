"""`hpsearch trials`: the trials of a study, chosen and ordered at will."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import Format, emit, note, room, show
from hpsearch.errors import UserError
from hpsearch.store.queries import TrialRow, trial_rows
from hpsearch.views import tables


def trials(
    name: str | None,
    where: str | None,
    sort: str | None,
    limit: int | None,
    top: int | None,
    format_: Format,
    storage: str,
) -> None:
    """Print trials; `top` stands for the `limit` of them with the best values.

    Raises:
        UserError: `top` together with `sort` or `limit`, or of a study without a single direction.
    """
    if top is not None and (sort is not None or limit is not None):
        raise UserError("--top already says how to sort and how many to show", "drop --top, or --sort and --limit")
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        if top is not None:
            sort, limit = "value" + (" desc" if study.direction == "maximize" else ""), top
        rows = trial_rows(connection, study, where=where, sort=sort, limit=limit)
    if format_ is not Format.TABLE:
        emit([as_plain(row) for row in rows], format_)
    elif rows:
        show(tables.trials(rows, room()))
    else:
        note(f"no trials of {study.name}" + (" are selected by --where" if where else " yet"))


def as_plain(row: TrialRow) -> dict[str, Any]:
    """A trial as plain values."""
    return {**asdict(row), "state": row.state.value}
