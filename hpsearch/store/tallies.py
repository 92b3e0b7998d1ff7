"""The tallies of a study: its trials by state and role, with what they took, kept by each commit.

With them `ls` and `status` read a few rows of a study, however many trials it has.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Table, func

from hpsearch.domain.records import Trial
from hpsearch.store.prepared import run
from hpsearch.store.schema import tallies

MOST = 10_000  # the most trials that one query names, below the limits of both databases

PARTS = 2**16
"""Times and costs are counted in so many parts of a second or of a unit of money: floats add these
without an error, in any order, up to 4,000 years."""
_SUMS = ("gpu_seconds", "cost", "checkpoint_bytes")
_KEYS = ("study_id", "state", "role")


def upsert(insert_into: Callable[[Table], Any]) -> Any:
    """The statement that adds to tallies, made with the INSERT of a dialect."""
    statement = insert_into(tallies)
    given = statement.excluded
    added: dict[str, Any] = {"trials": tallies.c.trials + given.trials}
    for name in _SUMS:
        total, more = tallies.c[name], given[name]
        added[name] = func.coalesce(total + more, more, total)
    return statement.on_conflict_do_update(index_elements=_KEYS, set_=added)


def tally(connection: Connection, upsert: Any, study_id: int, changed: Sequence[Trial]) -> None:
    """Move trials that are about to be written from the tallies that they are in to the new
    ones."""
    if not changed:
        return
    moved: defaultdict[tuple[Any, Any], list[Any]] = defaultdict(lambda: [0, None, None, None])
    for start in range(0, len(changed), MOST):
        numbers = ", ".join(str(trial.number) for trial in changed[start : start + MOST])
        # As text: SQLAlchemy takes long to prepare a list of parameters.
        which = f"FROM trials WHERE study_id = {study_id:d} AND number IN ({numbers})"
        counted = f"SELECT state, role, {', '.join(_SUMS)} {which}"
        for state, role, *sums in connection.exec_driver_sql(counted):
            _add(moved[state, role], sums, -1)
    for trial in changed:
        sums = [getattr(trial, name) for name in _SUMS]
        _add(moved[trial.state.value, trial.role.value], sums, 1)
    names = (*_KEYS, "trials", *_SUMS)
    rows: list[Mapping[str, Any]] = []
    for (state, role), values in moved.items():
        if any(values):
            rows.append(dict(zip(names, (study_id, state, role, *values), strict=True)))
    if rows:
        run(connection, upsert, *rows)


def _add(total: list[Any], sums: Iterable[Any], sign: int) -> None:
    total[0] += sign
    for place, value in enumerate(sums, start=1):
        if value is not None:
            total[place] = (total[place] or 0) + sign * whole_parts(value)


def whole_parts(value: float) -> float:
    """A time or a cost in whole parts; a number of bytes as it is."""
    return value if isinstance(value, int) else round(value * PARTS) / PARTS
