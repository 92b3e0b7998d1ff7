"""What a study consists of: reading it into a history, and writing what a history has touched.

All functions here work in a transaction of the caller's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.dialects import postgresql, sqlite

from hpsearch.records import Changes, History
from hpsearch.store import codec, leases, rows, shapes
from hpsearch.store.schema import attempts, decisions, environments, reports, studies, trials

_OF_STUDY = studies.c.id == bindparam("of_study")
_STUDY = select(studies.c.revision, *rows.STUDY_COLUMNS).where(_OF_STUDY)
_CHANGED = (trials.c.study_id == bindparam("of_study")) & (trials.c.revision > bindparam("since"))
_TRIALS = select(*rows.TRIAL_COLUMNS).where(_CHANGED).order_by(trials.c.number)
_ATTEMPTS = (
    select(*rows.ATTEMPT_COLUMNS)
    .join_from(trials, attempts)
    .where(_CHANGED)
    .order_by(attempts.c.trial, attempts.c.number)
)
_REPORTS = (
    select(*rows.REPORT_COLUMNS)
    .join_from(trials, reports)
    .where(_CHANGED)
    .order_by(reports.c.trial, reports.c.resource)
)
_SET_STUDY = update(studies).where(_OF_STUDY)
_TOUCH = (
    update(trials)
    .where(trials.c.study_id == bindparam("of_study"), trials.c.number == bindparam("of_trial"))
    .values(revision=bindparam("at"))
)
_DECIDE = insert(decisions)
_SETTLE = insert(environments)

Upserts = Mapping[str, Any]
"""By table, an INSERT that takes the place of the row of the same key."""


def upserts(dialect: str) -> Upserts:
    """The upserts in the words of a database: sqlite or postgresql."""
    statements = {}
    for table in (trials, attempts, reports):
        statement = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
        keys = [column.name for column in table.primary_key]
        others = {column.name: statement.excluded[column.name] for column in table.c if column.name not in keys}
        statements[table.name] = statement.on_conflict_do_update(index_elements=keys, set_=others)
    return statements


def read(connection: Connection, history: History, since_revision: int) -> int:
    """Replace in a history its study and every trial that was touched after a revision. Returns the revision read.

    Raises:
        StudyNotFound: The study was deleted.
        Damaged: A column holds what is never written there.
    """
    which = {"of_study": history.study.id, "since": since_revision}
    found = connection.execute(_STUDY, which).one_or_none()
    if found is None:
        raise leases.gone(history.study.id)
    changed = {trial.number: trial for trial in map(rows.trial_record, connection.execute(_TRIALS, which))}
    for attempt in map(rows.attempt_record, connection.execute(_ATTEMPTS, which)):
        changed[attempt.trial].attempts.append(attempt)
    for report in map(rows.report_record, connection.execute(_REPORTS, which)):
        changed[report.trial].reports[report.resource] = report
    history.study = rows.study_record(found[1:])
    for trial in changed.values():
        if (odd := shapes.miscounted(trial.values, history.study.directions)) is not None:
            raise codec.Damaged(str(odd))
        history.replace(trial)
    return int(found.revision)


def write(connection: Connection, upsert: Upserts, study_id: int, changes: Changes, revision: int) -> None:
    """Write the rows of a commit, each table's in one batch, parents before children."""
    if changes.study is not None:
        connection.execute(_SET_STUDY, {**rows.study_values(changes.study), "of_study": study_id})
    if changes.trials:
        connection.execute(upsert["trials"], [rows.trial_values(study_id, each, revision) for each in changes.trials])
    if changes.attempts:
        connection.execute(upsert["attempts"], [rows.attempt_values(study_id, each) for each in changes.attempts])
    if changes.reports:
        connection.execute(upsert["reports"], [rows.report_values(study_id, each) for each in changes.reports])
    if changes.decisions:
        connection.execute(_DECIDE, [rows.decision_values(study_id, each) for each in changes.decisions])
    if changes.environments:
        connection.execute(_SETTLE, [rows.environment_values(study_id, each) for each in changes.environments])
    _touch_parents(connection, study_id, changes, revision)


def _touch_parents(connection: Connection, study_id: int, changes: Changes, revision: int) -> None:
    """Let readers find the trials of which only an attempt or a report is new."""
    parents = {each.trial for each in changes.attempts} | {each.trial for each in changes.reports}
    parents -= {each.number for each in changes.trials}
    if parents:
        values = [{"of_study": study_id, "of_trial": number, "at": revision} for number in sorted(parents)]
        connection.execute(_TOUCH, values)
