"""Whether every checkpoint that a database names is there and whole.

The one check of `hpsearch db check` that reads files: each file of each checkpoint, to compare it with its manifest.
"""

from __future__ import annotations

from sqlalchemy import select

from hpsearch.store.damage import Violation
from hpsearch.store.schema import studies, trials
from hpsearch.store.store import Store
from trials.checkpoint import CheckpointError, check
from trials.places import PlaceError

_NAMED = (
    select(studies.c.name, studies.c.id, trials.c.number, trials.c.checkpoint)
    .join_from(studies, trials, trials.c.study_id == studies.c.id)
    .where(trials.c.checkpoint.is_not(None))
    .order_by(studies.c.id, trials.c.number)
)


def unusable(store: Store, study_id: int | None = None) -> list[Violation]:
    """The trials of one study, or of all, whose checkpoint is missing, damaged or out of reach.

    Nothing is locked while files are read. A trial that goes on meanwhile names a newer checkpoint, and then the one
    that was read about may be gone: the newer one is looked at instead.
    """
    named = _NAMED if study_id is None else _NAMED.where(studies.c.id == study_id)
    with store.reading() as connection:
        rows = connection.execute(named).all()
    found = []
    for name, of_study, number, checkpoint in rows:
        problem = _problem(checkpoint)
        while problem is not None and (newer := _named_now(store, of_study, number)) != checkpoint:
            checkpoint = newer
            problem = _problem(checkpoint) if checkpoint is not None else None
        if problem is not None:
            found.append(Violation(name, number, f"its checkpoint cannot be used: {problem}"))
    return found


def _problem(checkpoint: str) -> str | None:
    try:
        check(checkpoint)
    except (CheckpointError, PlaceError, OSError) as error:
        return str(error)
    return None


def _named_now(store: Store, study_id: int, number: int) -> str | None:
    """The checkpoint that a trial names at this moment; None where trial or checkpoint are gone."""
    which = (trials.c.study_id == study_id) & (trials.c.number == number)
    with store.reading() as connection:
        return connection.scalar(select(trials.c.checkpoint).where(which))
