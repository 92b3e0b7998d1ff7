"""A study as pandas frames: trials, reports and attempts, with a column for each parameter and
metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import pandas as pd
from sqlalchemy import Connection, select

from hpsearch.store.reading.names import METRIC_PREFIX, PARAMETER_PREFIX, SHOWN
from hpsearch.store.reading.queries import StudyHead, TrialRow, trial_rows
from hpsearch.store.schema import attempts, reports

_TRIAL_COLUMNS = [*(name for name in SHOWN if name != "params"), "violation"]


def trials_frame(
    connection: Connection,
    study: StudyHead,
    *,
    where: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """The trials that `where` selects, in the order of `sort`, at most `limit`, as `frame_of`."""
    return frame_of(trial_rows(connection, study, where=where, sort=sort, limit=limit))


def frame_of(rows: Sequence[TrialRow], more: Mapping[str, list[Any]] | None = None) -> pd.DataFrame:
    """A row for each trial: its columns, those of `more`, its parameters, and the metrics of its
    latest report. A parameter or metric with the name of a column before it is called
    ``params.NAME`` or ``metrics.NAME``."""
    taken = {*_TRIAL_COLUMNS, *(more or {})}
    params_of = [row.params for row in rows]
    metrics_of = [row.metrics for row in rows]
    parameters = _columns(params_of, taken, PARAMETER_PREFIX)
    metrics = _columns(metrics_of, taken, METRIC_PREFIX)
    plain = [row.as_plain() for row in rows]
    columns: dict[str, list[Any]] = {}
    for name in _TRIAL_COLUMNS:
        columns[name] = [cells[name] for cells in plain]
    columns |= more or {}
    columns |= _filled(parameters, params_of)
    columns |= _filled(metrics, metrics_of)
    return pd.DataFrame(columns)


def reports_frame(connection: Connection, study: StudyHead) -> pd.DataFrame:
    """A row for each report, by trial and resource, with a column for each parameter and metric:
    recorded curves."""
    params = {row.number: row.params for row in trial_rows(connection, study)}
    plain = [column for column in reports.c if column.name not in ("study_id", "metrics")]
    statement = select(*plain, reports.c.metrics)
    statement = statement.where(reports.c.study_id == study.id)
    statement = statement.order_by(reports.c.trial, reports.c.resource)
    rows = connection.execute(statement).all()
    columns: dict[str, list[Any]] = {}
    for place, column in enumerate(plain):
        columns[column.name] = [row[place] for row in rows]
    params_of = [params[row.trial] for row in rows]
    metrics_of = [row.metrics for row in rows]
    taken = set(columns)
    metrics = _columns(metrics_of, taken, METRIC_PREFIX)
    parameters = _columns(params.values(), taken, PARAMETER_PREFIX)
    columns |= _filled(parameters, params_of)
    columns |= _filled(metrics, metrics_of)
    return pd.DataFrame(columns)


def attempts_frame(connection: Connection, study: StudyHead) -> pd.DataFrame:
    """A row for each attempt, by trial and number."""
    plain = [column for column in attempts.c if column.name != "study_id"]
    statement = (
        select(*plain)
        .where(attempts.c.study_id == study.id)
        .order_by(attempts.c.trial, attempts.c.number)
    )
    rows = connection.execute(statement).all()
    names = [column.name for column in plain]
    return pd.DataFrame(rows, columns=names)


def _columns(rows: Iterable[Mapping[str, Any]], taken: set[str], prefix: str) -> dict[str, str]:
    names = dict.fromkeys(chain.from_iterable(rows))
    columns = {}
    for name in names:
        is_taken = name in taken
        columns[name] = prefix + name if is_taken else name
    taken.update(columns.values())
    return columns


def _filled(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The cells of columns that `_columns` named; None if a row lacks the name."""
    return {column: [row.get(name) for row in rows] for name, column in columns.items()}
