"""The names that can stand in a --where or --sort over the trials of a study: columns, parameters
and metrics."""

from __future__ import annotations

from dataclasses import fields

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    and_,
    case,
    func,
    literal_column,
    select,
    type_coerce,
)

from hpsearch.domain.records import Trial
from hpsearch.store.cells import Json, Member
from hpsearch.store.reading import conditions
from hpsearch.store.schema import column_name, reports, trials

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


def metrics_in(report: FromClause) -> ColumnElement[object]:
    """The metrics of a report that an outer join looks for; NULL if there is no such report.

    Metrics that are NULL although the report is there become a text that is damage to its reader.
    """
    column = report.c.metrics
    written = func.coalesce(column, literal_column("'null'"))
    found = case((report.c.trial.is_not(None), written))
    return type_coerce(found, column.type).label(column.name)


_FIELDS = [field for field in fields(Trial) if "shown" in field.metadata]

SHOWN = tuple(field.name for field in _FIELDS)  # fields of trials that readings show

_SCALARS = [field for field in _FIELDS if not isinstance(trials.c[column_name(field)].type, Json)]


FILTERED = tuple(field.name for field in _SCALARS)
"""Fields of trials that a --where or --sort can name; those of one value."""


def _choices() -> dict[str, tuple[str, ...]]:
    choices = {}
    for field in _SCALARS:
        type_ = trials.c[column_name(field)].type
        if isinstance(type_, Member):
            choices[field.name] = tuple(member.value for member in type_.kind)
    return choices


def names_of(connection: Connection, study_id: int) -> conditions.Names:
    """The names that can stand in a --where or --sort over the trials of a study."""
    dialect = connection.dialect.name
    columns: dict[str, ColumnElement[object]] = {
        field.name: trials.c[column_name(field)] for field in _SCALARS
    }
    columns["violation"] = conditions.violation(trials.c.system_attrs, dialect)
    return conditions.Names(
        columns=columns,
        choices=_choices(),
        times=frozenset(field.name for field in _SCALARS if "moment" in field.metadata),
        params=trials.c.params,
        metrics=latest.c.metrics,
        parameters=_parameter_names(connection, study_id),
        metric_names=_metric_names(connection, study_id),
        dialect=dialect,
    )


def _parameter_names(connection: Connection, study_id: int) -> frozenset[str]:
    keys = _keys(trials.c.params, connection.dialect.name)
    statement = select(keys).distinct().where(trials.c.study_id == study_id)
    return frozenset(connection.scalars(statement))


def _metric_names(connection: Connection, study_id: int) -> frozenset[str]:
    keys = _keys(latest.c.metrics, connection.dialect.name)
    statement = (
        select(keys)
        .select_from(WITH_LATEST)
        .distinct()
        .where(trials.c.study_id == study_id, latest.c.trial.is_not(None))
    )
    return frozenset(connection.scalars(statement))


def _keys(column: ColumnElement[object], dialect: str) -> ColumnElement[str]:
    is_postgresql = dialect == "postgresql"
    kind = func.json_typeof(column) if is_postgresql else func.json_type(column)
    # What is not an object has no names: reading its row reports the damage.
    objects = case((kind == "object", column))
    if is_postgresql:
        return func.json_object_keys(objects)
    members = func.json_each(objects).table_valued("key", joins_implicitly=True)
    return members.c.key
