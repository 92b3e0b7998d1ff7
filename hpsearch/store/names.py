"""What can be named in a --where or --sort over the trials of a study: columns, parameters and metrics."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, FromClause, and_, case, func, select

from hpsearch.lifecycle import State
from hpsearch.store import conditions
from hpsearch.store.schema import reports, trials

latest = reports.alias("latest")

WITH_LATEST: FromClause = trials.outerjoin(
    latest,
    and_(
        latest.c.study_id == trials.c.study_id,
        latest.c.trial == trials.c.number,
        latest.c.resource
        == select(func.max(reports.c.resource))
        .where(reports.c.study_id == trials.c.study_id, reports.c.trial == trials.c.number)
        .scalar_subquery(),
    ),
)
"""Trials with their latest report, which is NULL where they have none."""

COLUMNS = (
    *("number", "state", "value", "resource", "rung", "seed", "gpu_seconds", "cost", "speed"),
    *("error_kind", "error_text", "checkpoint", "created", "started", "ended", "role", "repeats"),
)
"""Columns of `trials` that go by their own names."""

_ROLES = ("search", "default", "enqueued", "confirm")


def names_of(connection: Connection, study_id: int) -> conditions.Names:
    """What can be named in a --where or --sort over the trials of a study."""
    dialect = connection.dialect.name
    columns: dict[str, ColumnElement[object]] = {name: trials.c[name] for name in COLUMNS}
    columns["violation"] = conditions.violation(trials.c.system_attrs, dialect)
    return conditions.Names(
        columns=columns,
        choices={"state": tuple(s.value for s in State), "role": _ROLES},
        times=frozenset({"created", "started", "ended"}),
        params=trials.c.params,
        metrics=latest.c.metrics,
        parameters=_parameter_names(connection, study_id),
        metric_names=_metric_names(connection, study_id),
        dialect=dialect,
    )


def _parameter_names(connection: Connection, study_id: int) -> frozenset[str]:
    """Names of all parameters that any trial of the study has."""
    keys = _keys(trials.c.params, connection.dialect.name)
    return frozenset(connection.scalars(select(keys).distinct().where(trials.c.study_id == study_id)))


def _metric_names(connection: Connection, study_id: int) -> frozenset[str]:
    """Names of all metrics in the latest reports of the study's trials."""
    keys = _keys(latest.c.metrics, connection.dialect.name)
    statement = select(keys).select_from(WITH_LATEST).distinct()
    return frozenset(connection.scalars(statement.where(trials.c.study_id == study_id, latest.c.trial.is_not(None))))


def _keys(column: ColumnElement[object], dialect: str) -> ColumnElement[str]:
    is_postgresql = dialect == "postgresql"
    kind = func.json_typeof(column) if is_postgresql else func.json_type(column)
    objects = case((kind == "object", column))  # what is none has no names: reading its row tells of the damage
    if is_postgresql:
        return func.json_object_keys(objects)
    return func.json_each(objects).table_valued("key", joins_implicitly=True).c.key
