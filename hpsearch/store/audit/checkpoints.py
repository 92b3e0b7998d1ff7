"""True if every checkpoint that a database names is there, and whole where a trial is to continue
from it; and whether a study's folder is its own.

The one check of `hpsearch db check` that reads files: each file of each checkpoint, to compare it
with its manifest.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import case, exists, func, or_, select

from hpsearch.checkpoint_folders import mark_of
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ASKED
from hpsearch.errors import Damaged, UserError
from hpsearch.store.damage import Violation
from hpsearch.store.schema import attempts, studies, trials
from hpsearch.store.store import Store
from trials.checkpoints.manifests import check

_LATEST = (
    select(func.max(attempts.c.number))
    .where(attempts.c.study_id == trials.c.study_id, attempts.c.trial == trials.c.number)
    .correlate(trials)
    .scalar_subquery()
)
_IS_USERS = exists().where(
    attempts.c.study_id == trials.c.study_id,
    attempts.c.trial == trials.c.number,
    attempts.c.number == _LATEST,
    attempts.c.device == ASKED,
)
"""True if the latest attempt of a trial was asked for: nothing is known of what its user saved."""

_OVER = frozenset(state.value for state in State if state.terminal)

_MAY_RUN = or_(trials.c.state.not_in(_OVER), trials.c.left_as.is_not(None))
_SOURCE = func.coalesce(
    trials.c.checkpoint, case((_MAY_RUN, trials.c.continues_with), else_=None)
).label("checkpoint")
"""The checkpoint that a trial continues from: that of another trial as long as it has none of its
own."""

_NAMED = (
    select(
        *(studies.c.name, studies.c.id, trials.c.number, trials.c.state),
        *(_SOURCE, trials.c.best_checkpoint),
        trials.c.left_as,
    )
    .join_from(studies, trials, trials.c.study_id == studies.c.id)
    .where(_SOURCE.is_not(None), ~_IS_USERS)
    .order_by(studies.c.id, trials.c.number)
)

_STUDIES = select(studies.c.id).order_by(studies.c.id)
_FOLDER = select(studies.c.name, studies.c.uid, studies.c.checkpoints)

_Saved = tuple[str | None, str | None, bool]
"""The checkpoint of a trial, its best one, and whether it is to continue from the former."""


def unusable(store: Store, study_id: int | None = None) -> list[Violation]:
    """The trials of one study, or of all, with a checkpoint that is missing, damaged or out of
    reach; and the studies whose folder is another's. Nothing is locked meanwhile: if a trial
    names newer checkpoints by then, those are looked at."""
    named = _NAMED
    which = _STUDIES
    if study_id is not None:
        named = named.where(studies.c.id == study_id)
        which = which.where(studies.c.id == study_id)
    with store.viewing() as connection:
        rows = connection.execute(named).all()
        ids = connection.scalars(which).all()
    found = []
    for each in ids:
        violation = _owned_by_another(store, each)
        if violation is not None:
            found.append(violation)
    for row in rows:
        problem = _standing_problem(store, row)
        if problem is not None:
            what = f"its checkpoint cannot be used: {problem}"
            found.append(Violation(row.name, row.number, what))
    return found


def _standing_problem(store: Store, row: Any) -> str | None:
    """The fault of the newest checkpoints that a trial names; None if nothing is."""
    saved = _saved(row)
    problem = _problem(saved)
    while problem is not None:
        newer = _saved_now(store, row.id, row.number)
        if newer == saved:
            return problem
        saved = newer
        problem = _problem(saved)
    return None


def _saved(row: Any) -> _Saved:
    over = row.state in _OVER and row.left_as is None
    return row.checkpoint, row.best_checkpoint, not over


def _problem(saved: _Saved) -> str | None:
    checkpoint, best, goes_on = saved
    try:
        if checkpoint is not None:
            check(checkpoint, whole=goes_on)
        if best is not None and best != checkpoint:
            check(best)
    except Exception as error:  # noqa: BLE001 - each store has errors of its own
        return str(error) or type(error).__name__
    return None


def _owned_by_another(store: Store, study_id: int) -> Violation | None:
    try:
        with store.viewing() as connection:
            row = connection.execute(_FOLDER.where(studies.c.id == study_id)).one_or_none()
        folder = None if row is None else row.checkpoints
        owner = None if folder is None else mark_of(folder)
    except (Damaged, UserError):  # what is damaged is found by other checks
        return None
    if row is None or owner is None:
        return None
    if row.uid is None or row.uid == owner.uid:
        return None
    what = f"its folder of checkpoints {folder} is marked as another study's, {owner.study}"
    return Violation(row.name, None, what)


def _saved_now(store: Store, study_id: int, number: int) -> _Saved:
    which = (studies.c.id == study_id) & (trials.c.number == number)
    with store.viewing() as connection:
        row = connection.execute(_NAMED.where(which)).first()
    return (None, None, False) if row is None else _saved(row)
