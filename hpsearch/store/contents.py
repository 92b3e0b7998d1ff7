"""The contents of a study: reads them into a history, and writes the changes of a history. Every
field of a record is the column of its name.

All functions work in a transaction of the caller's.
"""

import gc
import importlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from itertools import groupby
from operator import attrgetter
from textwrap import shorten
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.types import NullType

from hpsearch.domain.history import Changes, History
from hpsearch.domain.packed import packed
from hpsearch.domain.records import (
    Attempt,
    Decision,
    Environment,
    ReportRecord,
    Request,
    Revision,
    StudyRecord,
    Trial,
    Version,
)
from hpsearch.errors import Damaged, StudyNotFound
from hpsearch.search.ranking.selection import counts, standing
from hpsearch.store import leases, schema
from hpsearch.store.schema import (
    REPORT,
    REQUEST,
    REVISED,
    STUDY,
    TRIAL,
    VERSIONED,
    Condition,
    Sql,
    attempts,
    decisions,
    environments,
    reports,
    requests,
    revisions,
    studies,
    trials,
    versions,
)
from trials.settings import nearest

LONGEST_HINT = 200  # characters of a list of studies
FETCHED = 1_000  # rows at a time

Of = TypeVar("Of")


TABLES: dict[Any, sa.Table] = {
    StudyRecord: studies,
    Trial: trials,
    Attempt: attempts,
    ReportRecord: reports,
    Decision: decisions,
    Environment: environments,
    Request: requests,
    Version: versions,
    Revision: revisions,
}
"""The table of each record."""


@cache
def column_names(record: type) -> Mapping[str, str]:
    stored = [field for field in fields(record) if "elsewhere" not in field.metadata]
    return {field.name: schema.column_name(field) for field in stored}


@cache
def columns_of(record: Any) -> tuple[sa.Column[Any], ...]:
    table = TABLES[record]
    return tuple(table.c[name] for name in column_names(record).values())


def records(connection: sa.Connection, record: Callable[..., Of], *which: Condition) -> list[Of]:
    statement = sa.select(*columns_of(record)).where(*which)
    rows = connection.execute(statement.order_by(*TABLES[record].primary_key))
    return [record(*row) for row in rows]


_SET_STUDY = sa.update(studies).where(STUDY.id == sa.bindparam("of_study"))
_SET_TRIAL = sa.update(trials).where(
    TRIAL.study_id == sa.bindparam("of_study"), TRIAL.number == sa.bindparam("of_trial")
)
_TOUCH = _SET_TRIAL.values(revision=sa.bindparam("at"))
_FORGET_REPORTS = sa.delete(reports).where(
    REPORT.study_id == sa.bindparam("of_study"), REPORT.trial == sa.bindparam("of_trial")
)
_ANSWER = sa.update(requests).where(REQUEST.id == sa.bindparam("of_request"))

_WRITTEN = (Trial, Attempt, ReportRecord, Decision, Environment, Version, Revision)
"""What a commit adds, parents before children."""


def inserts(dialect: sa.Dialect) -> Mapping[sa.Table, sa.Insert]:
    """By table, the statement that writes its records in the dialect of a database; those of
    trials, attempts, reports and revisions replace a row with the same key."""
    # Named, because importing the dialect of another database takes long.
    insert_into = importlib.import_module(f"sqlalchemy.dialects.{dialect.name}").insert
    found: dict[sa.Table, sa.Insert] = {}
    for record in _WRITTEN:
        table = TABLES[record]
        if table not in (trials, attempts, reports, revisions):
            found[table] = sa.insert(table)
            continue
        upsert = insert_into(table)
        given = upsert.excluded
        keys = [column.name for column in table.primary_key]
        others = {column.name: given[column.name] for column in table.c if column.name not in keys}
        found[table] = upsert.on_conflict_do_update(index_elements=keys, set_=others)
    return found


def values_of(record: Any, **more: Any) -> dict[str, Any]:
    values = {}
    for field, column in column_names(record.__class__).items():
        values[column] = getattr(record, field)
    return values | more


def new_values(record: StudyRecord | Request, **more: Any) -> dict[str, Any]:
    """`values_of` without the id, which the database assigns."""
    values = values_of(record, **more)
    del values["id"]
    return values


def study_values(record: StudyRecord) -> dict[str, Any]:
    """`new_values` of a study, with the direction of its only objective."""
    direction = record.directions[0] if len(record.directions) == 1 else None
    return new_values(record, direction=direction)


def read(connection: sa.Connection, history: History, since_revision: int) -> int:
    """Replace in a history what was touched after a revision. Returns the revision read."""
    study_id = history.study.id
    statement = sa.select(STUDY.revision, *columns_of(StudyRecord))
    found = connection.execute(statement.where(STUDY.id == study_id)).one_or_none()
    if found is None:
        raise leases.gone(study_id)
    history.study = StudyRecord(*found[1:])
    history.versions = records(connection, Version, VERSIONED.study_id == study_id)
    history.revisions = revisions_of(connection, study_id)
    for trial in trials_since(connection, study_id, since_revision).values():
        if trial.number > len(history.trials):
            raise Damaged(f"trial {len(history.trials)} of {history.study.name} is missing")
        history.replace(trial)
    return int(found.revision)


def revisions_of(connection: sa.Connection, study_id: int) -> list[Revision]:
    """The changes of a study's code, in order."""
    return records(connection, Revision, REVISED.study_id == study_id)


def trials_since(connection: sa.Connection, study_id: int, revision: int) -> dict[int, Trial]:
    """The trials that were touched after a revision, by number, with attempts and reports."""
    return _read_trials(connection, (TRIAL.study_id == study_id) & (TRIAL.revision > revision))


def numbers_since(connection: sa.Connection, study_id: int, revision: int) -> Sequence[int]:
    """The numbers of the trials of a study that were touched after a revision, ascending."""
    numbers = sa.select(TRIAL.number).where(TRIAL.study_id == study_id, TRIAL.revision > revision)
    return connection.scalars(numbers.order_by(TRIAL.number)).all()


def trials_numbered(
    connection: sa.Connection, study_id: int, numbers: Sequence[int]
) -> dict[int, Trial]:
    return _read_trials(connection, (TRIAL.study_id == study_id) & TRIAL.number.in_(numbers))


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Let the garbage collector rest: all that is read stays, and it would go through all of it
    again and again, for a quarter of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_trials(connection: sa.Connection, which: Condition) -> dict[int, Trial]:
    found: dict[int, Trial] = {}
    with _no_garbage():
        for trial in _streamed(connection, Trial, which):
            found[trial.number] = trial
        for attempt in _streamed(connection, Attempt, which):
            found[attempt.trial].attempts.append(attempt)
        reports = _streamed(connection, ReportRecord, which)
        for number, own in groupby(reports, attrgetter("trial")):
            trial = found[number]
            trial.reports = {report.resource: report for report in own}
            if trial.state.terminal:
                trial.reports = packed(trial.reports)
    return found


@cache
def _bare_rows(record: Any) -> sa.Select[Any]:
    table = TABLES[record]
    bare: list[Sql] = [
        sa.type_coerce(each, NullType()).label(each.name) for each in columns_of(record)
    ]
    rows = sa.select(*bare).select_from(trials if table is trials else trials.join(table))
    return rows.order_by(*table.primary_key)


def _streamed(
    connection: sa.Connection, record: Callable[..., Of], which: Condition
) -> Iterator[Of]:
    types = [schema.cell_of(column) for column in columns_of(record)]
    statement = _bare_rows(record).where(which)
    with connection.execute(statement, execution_options={"stream_results": True}) as result:
        for rows in result.partitions(FETCHED):
            cells = zip(*rows, strict=True)
            read = (of.read_all(some) for of, some in zip(types, cells, strict=True))
            yield from map(record, *read)


def write(
    connection: sa.Connection,
    statements: Mapping[sa.Table, sa.Insert],
    study_id: int,
    changes: Changes,
    revision: int,
) -> None:
    if changes.study is not None:
        connection.execute(_SET_STUDY, {**study_values(changes.study), "of_study": study_id})
    if changes.begun_again:
        again = [{"of_study": study_id, "of_trial": each} for each in changes.begun_again]
        connection.execute(_FORGET_REPORTS, again)
    for table, statement in statements.items():
        written = getattr(changes, table.name)
        rows = [_row(table, each, study_id, revision) for each in written]
        if rows:
            connection.execute(statement, rows)
    if changes.requests:
        connection.execute(_ANSWER, [_answer(each) for each in changes.requests])
    _touch_parents(connection, study_id, changes, revision)


def _row(table: sa.Table, record: Any, study_id: int, revision: int) -> dict[str, Any]:
    if table is not trials:
        return values_of(record, study_id=study_id)
    violation, place = ranked_by(record)
    ranks = {"violation": violation, "standing": place}
    return values_of(record, study_id=study_id, revision=revision, **ranks)


def waiting(connection: sa.Connection, study_id: int) -> list[Request]:
    return records(connection, Request, REQUEST.study_id == study_id, REQUEST.handled.is_(None))


def _answer(request: Request) -> dict[str, Any]:
    values = {"handled": request.handled, "refused": request.refused, "trial": request.trial}
    return {"of_request": request.id, **values}


def ranked_by(trial: Trial) -> tuple[float, float | None]:
    """The violation and the standing of a trial, as they are kept beside it."""
    place = standing(trial) if counts(trial) else None
    return trial.violation, None if place is None or math.isnan(place) else place


def _touch_parents(
    connection: sa.Connection, study_id: int, changes: Changes, revision: int
) -> None:
    parts: list[Attempt | ReportRecord] = [*changes.attempts, *changes.reports]
    parents = {part.trial for part in parts}
    written = {trial.number for trial in changes.trials}
    values = []
    for number in sorted(parents - written):
        values.append({"of_study": study_id, "of_trial": number, "at": revision})
    if values:
        connection.execute(_TOUCH, values)


def not_found(connection: sa.Connection, name: str) -> StudyNotFound:
    """The error that no study has a name, which names the nearest or some that there are."""
    names = list(connection.scalars(sa.select(STUDY.name).order_by(STUDY.name)))
    if names:
        hint = f"{shorten(nearest(name, names), LONGEST_HINT)} (all: hpsearch ls)"
    else:
        hint = "it has none yet; `hpsearch run STUDY.yaml` makes one"
    return StudyNotFound(f"no study is named {name} in this database", hint)
