"""A study as pandas frames: trials, reports and attempts, with a column for each parameter and metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import pandas as pd
from sqlalchemy import Connection, select

from hpsearch.store.conditions import METRIC_PREFIX, PARAMETER_PREFIX
from hpsearch.store.queries import StudyHead, TrialRow, trial_rows
from hpsearch.store.schema import attempts, reports

_TRIAL_COLUMNS = [f.name for f in fields(TrialRow) if f.name not in ("params", "metrics")]


def trials_frame(
    connection: Connection,
    study: StudyHead,
    *,
    where: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Trials that `where` selects, in the order of `sort`, at most `limit`: a row each, as `frame_of`."""
    return frame_of(trial_rows(connection, study, where=where, sort=sort, limit=limit))


def frame_of(rows: Sequence[TrialRow], more: Mapping[str, list[Any]] | None = None) -> pd.DataFrame:
    """A row for each trial: its columns, those of `more`, its parameters, and the metrics of its latest report.

    A parameter or metric that has the name of a column before it goes by ``params.NAME`` or ``metrics.NAME``.
    """
    taken = {*_TRIAL_COLUMNS, *(more or {})}
    parameters = _columns((row.params for row in rows), taken, PARAMETER_PREFIX)
    metrics = _columns((row.metrics for row in rows), taken, METRIC_PREFIX)
    columns: dict[str, list[Any]] = {name: [getattr(row, name) for row in rows] for name in _TRIAL_COLUMNS}
    columns |= {"state": [row.state.value for row in rows], **(more or {})}
    columns |= {column: [row.params.get(name) for row in rows] for name, column in parameters.items()}
    columns |= {column: [row.metrics.get(name) for row in rows] for name, column in metrics.items()}
    return pd.DataFrame(columns)


def reports_frame(connection: Connection, study: StudyHead) -> pd.DataFrame:
    """A row for each report, by trial and resource, with a column for each parameter and metric: recorded curves."""
    plain = [c for c in reports.c if c.name not in ("study_id", "metrics")]
    statement = select(*plain, reports.c.metrics).where(reports.c.study_id == study.id)
    rows = connection.execute(statement.order_by(reports.c.trial, reports.c.resource)).all()
    columns: dict[str, list[Any]] = {c.name: [row[i] for row in rows] for i, c in enumerate(plain)}
    params = {row.number: row.params for row in trial_rows(connection, study)}
    taken = set(columns)
    metrics = _columns((row.metrics for row in rows), taken, METRIC_PREFIX)
    parameters = _columns(params.values(), taken, PARAMETER_PREFIX)
    columns |= {column: [params[row.trial].get(name) for row in rows] for name, column in parameters.items()}
    columns |= {column: [row.metrics.get(name) for row in rows] for name, column in metrics.items()}
    return pd.DataFrame(columns)


def attempts_frame(connection: Connection, study: StudyHead) -> pd.DataFrame:
    """A row for each attempt, by trial and number."""
    plain = [c for c in attempts.c if c.name != "study_id"]
    statement = select(*plain).where(attempts.c.study_id == study.id).order_by(attempts.c.trial, attempts.c.number)
    return pd.DataFrame(connection.execute(statement).all(), columns=[c.name for c in plain])


def _columns(rows: Iterable[Mapping[str, Any]], taken: set[str], prefix: str) -> dict[str, str]:
    """The column that each name of some rows gets; adds them to `taken`."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: prefix + name if name in taken else name for name in names}
    taken.update(columns.values())
    return columns
