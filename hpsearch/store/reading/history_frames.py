"""The history of a study as frames: its trials, their reports, and the attempts on its workers.
Reads all of a study, unlike `queries`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from optuna.distributions import BaseDistribution
from sqlalchemy import Connection, Select, select

from hpsearch.domain.records import Environment
from hpsearch.ranking.selection import standing
from hpsearch.store.reading.best import GoalColumns, goals_of
from hpsearch.store.reading.frames import attempts_table
from hpsearch.store.reading.provenance import environments_of
from hpsearch.store.reading.queries import StudyHead, TrialRow, trial_rows
from hpsearch.store.schema import reports, trials
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.space import distributions
from trials.contract import Finding

FIRST_TRIALS = 200  # from so many trials the space of a study without a study file is read
_TRIAL_COLUMNS = (
    *("state", "role", "repeats", "resource", "gpu_seconds", "violation"),
    *("error_kind", "error_text", "created", "started", "ended"),
)


@dataclass(frozen=True, slots=True)
class HistoryFrames:
    """The history of a study. Values that are not finite are NaN, times are seconds since the
    epoch, and absent times are NaN."""

    goals: Sequence[GoalColumns]
    trials: pd.DataFrame
    """By number: the columns `_TRIAL_COLUMNS`, and for each goal its two columns."""
    params: pd.DataFrame
    """By the trial's number, a column for each parameter; NaN or None where it is not active."""
    reports: pd.DataFrame
    """In order of time: trial, resource, created, and for each goal its column of values."""
    attempts: pd.DataFrame
    """In order of their start, as `attempts_table`."""
    space: Mapping[str, BaseDistribution]  # what parameters are drawn from, as far as that is known
    environments: Sequence[Environment]  # those of its drivers, the oldest first
    findings: Sequence[tuple[int, Finding]]  # what trials showed of their health, by number


def history_frames(
    connection: Connection, study: StudyHead, spec: StudySpec | None = None
) -> HistoryFrames:
    """Read the history of a study. Without a study file (`spec`), the space is read from its
    trials."""
    goals = goals_of(study)
    rows = trial_rows(connection, study)
    numbers = pd.Index([row.number for row in rows], name="number")
    space = _stored_space(connection, study) if spec is None else distributions(spec.space)
    return HistoryFrames(
        goals=goals,
        trials=_trials(rows, goals, numbers),
        params=pd.DataFrame([row.params for row in rows], index=numbers, dtype=object),
        reports=_reports(connection, study, goals),
        attempts=_attempts_in_order(connection, study),
        space=space,
        environments=environments_of(connection, study),
        findings=_findings(connection, study),
    )


def each_row(frame: pd.DataFrame) -> Iterable[Any]:
    """The rows of a frame, each with its cells as attributes."""
    return frame.itertuples(index=False)


def _trials(
    rows: Sequence[TrialRow], goals: Sequence[GoalColumns], numbers: pd.Index
) -> pd.DataFrame:
    columns: dict[str, Any] = {}
    for name in _TRIAL_COLUMNS:
        columns[name] = [getattr(row, name) for row in rows]
    for goal in goals:
        columns[goal.column] = [_finite(_value(row, goal)) for row in rows]
        columns[goal.standing] = [_finite(_standing(row, goal)) for row in rows]
    frame = pd.DataFrame(columns, index=numbers)
    return frame.astype(dict.fromkeys(("created", "started", "ended"), float))


def _value(row: TrialRow, goal: GoalColumns) -> float | None:
    if row.values is None:
        return row.value if goal.index == 0 else None
    return row.values[goal.index]


def _standing(row: TrialRow, goal: GoalColumns) -> float | None:
    value = _value(row, goal)
    if value is None or row.values is not None:
        return value
    return standing(row)


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else math.nan


def _reports(
    connection: Connection, study: StudyHead, goals: Sequence[GoalColumns]
) -> pd.DataFrame:
    measured: list[Any] = [reports.c.value] if len(goals) == 1 else [reports.c.metrics]
    wanted = select(reports.c.trial, reports.c.resource, reports.c.created, *measured)
    statement = _of_study(wanted, reports, study)
    in_order = statement.order_by(reports.c.created, reports.c.trial, reports.c.resource)
    rows = connection.execute(in_order).all()
    columns: dict[str, list[Any]] = {
        "trial": [row.trial for row in rows],
        "resource": [row.resource for row in rows],
        "created": [row.created for row in rows],
    }
    for goal in goals:
        if len(goals) == 1:
            values = [row.value for row in rows]
        else:
            values = [row.metrics.get(goal.metric) for row in rows]
        columns[goal.column] = [_finite(value) for value in values]
    kinds = {"trial": int} | {name: float for name in columns if name != "trial"}
    return pd.DataFrame(columns).astype(kinds)


def _attempts_in_order(connection: Connection, study: StudyHead) -> pd.DataFrame:
    frame = attempts_table(connection, study).frame()
    times = ("started", "ended", "gpu_seconds", "start_up_seconds")
    frame = frame.astype(dict.fromkeys(times, float))
    return frame.sort_values(["started", "trial", "number"], ignore_index=True)


def _findings(connection: Connection, study: StudyHead) -> list[tuple[int, Finding]]:
    statement = _of_study(select(trials.c.number, trials.c.findings), trials, study)
    found = []
    for number, findings in connection.execute(statement.order_by(trials.c.number)):
        found += [(number, finding) for finding in findings or ()]
    return found


def _stored_space(connection: Connection, study: StudyHead) -> dict[str, BaseDistribution]:
    statement = _of_study(select(trials.c.distributions), trials, study)
    space: dict[str, BaseDistribution] = {}
    for (stated,) in connection.execute(statement.order_by(trials.c.number).limit(FIRST_TRIALS)):
        space |= stated or {}
    return space


def _of_study(statement: Select[Any], table: Any, study: StudyHead) -> Select[Any]:
    return statement.where(table.c.study_id == study.id)
