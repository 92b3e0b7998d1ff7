"""The history of a study as frames: its trials, their reports, and the attempts on its workers.

Of many trials some are chosen. What is counted of all of them is read a few rows at a time.
"""

import math
import sys
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from optuna.distributions import BaseDistribution
from sqlalchemy import Connection, Select, func, select, true

from hpsearch.domain.facts import OF_SEARCH
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment
from hpsearch.search.ranking.selection import standing
from hpsearch.store.reading.attempts import environments_of
from hpsearch.store.reading.best import GoalColumns, best_trials, goals_of
from hpsearch.store.reading.names import numbered
from hpsearch.store.reading.queries import StudyHead, TrialRow, each_row, rows_of, trials_of
from hpsearch.store.schema import ATTEMPT, REPORT, TRIAL, attempts, reports, trials
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.space import distributions

MOST_TRIALS = 1_000
"""Of a study with more trials, about so many are chosen: the best third, and others with evenly
spaced numbers."""
FIRST_TRIALS = 200  # from so many trials the space of a study without a study file is read
_TRIAL_COLUMNS = ("state", "role", "resource", "violation", "ended")


class Shown(NamedTuple):
    """A value that was better than all before it."""

    trial: int
    value: float
    moment: float


@dataclass(slots=True)
class Found:
    """A finding about the health of trials: how many have it, and its latest."""

    trials: int = 0
    latest: int = 0
    evidence: str = ""


@dataclass(frozen=True, slots=True)
class HistoryFrames:
    """The history of a study. Values that are not finite are NaN, times are seconds since the
    epoch, and absent times are NaN."""

    goals: Sequence[GoalColumns]
    count: int  # the number of all trials
    trials: pd.DataFrame
    """The chosen trials, by number: `_TRIAL_COLUMNS`, and for each goal its two columns."""
    params: pd.DataFrame
    """Of these, by number, a column for each parameter; NaN or None where it is not active."""
    reports: pd.DataFrame
    """Of these, in order of time: trial, resource, and for each goal its column of values."""
    bests: Mapping[str, Sequence[Shown]]
    """By a goal's column, in order of time: without repeats, failures and broken limits."""
    attempts: pd.DataFrame
    """All of them, in order of their start, with the state and role of their trials."""
    space: Mapping[str, BaseDistribution]  # what parameters are drawn from, as far as that is known
    environments: Sequence[Environment]  # those of its drivers, the oldest first
    findings: Mapping[tuple[str, str], Found]  # by severity and name
    last: float  # the time of its last record


def history_frames(
    connection: Connection, study: StudyHead, spec: StudySpec | None = None
) -> HistoryFrames:
    """Read the history of a study; without a study file, the space is read from its trials."""
    goals = goals_of(study)
    of_study = select(func.count(), func.max(TRIAL.ended)).where(TRIAL.study_id == study.id)
    count, last_ended = connection.execute(of_study).one()
    chosen = _chosen(connection, study, count)
    rows = rows_of(connection, trials_of(study).where(chosen).order_by(TRIAL.number))
    numbers = pd.Index([row.number for row in rows], name="number")
    space = _stored_space(connection, study) if spec is None else distributions(spec.space)
    own = _attempts(connection, study)
    last_reported = connection.scalar(_of_study(select(func.max(REPORT.created)), reports, study))
    moments = [last_ended, last_reported, own["started"].max(), own["ended"].max()]
    return HistoryFrames(
        goals=goals,
        count=count,
        trials=_trials(rows, goals, numbers),
        params=pd.DataFrame([row.params for row in rows], index=numbers, dtype=object),
        reports=_reports(connection, study, goals, chosen),
        bests=_bests(connection, study, goals, has_reports=last_reported is not None),
        attempts=own,
        space=space,
        environments=environments_of(connection, study),
        findings=_findings(connection, study),
        last=max((float(at) for at in moments if pd.notna(at)), default=0.0),
    )


def _chosen(connection: Connection, study: StudyHead, count: int) -> Any:
    if count <= MOST_TRIALS:
        return true()
    numbers = set(range(0, count, math.ceil(count / (MOST_TRIALS * 2 / 3))))
    if study.directions:
        best = best_trials(connection, study, MOST_TRIALS // 3)
        numbers |= {each.trial.number for each in best}
    return TRIAL.number.in_(numbered(numbers))


def rows_in(frame: pd.DataFrame) -> Iterable[Any]:
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
    return pd.DataFrame(columns, index=numbers).astype({"ended": float})


def _value(row: Any, goal: GoalColumns) -> float | None:
    first: float | None = row.value
    if row.values is None:
        return first if goal.index == 0 else None
    return float(row.values[goal.index])


def _standing(row: TrialRow, goal: GoalColumns) -> float | None:
    value = _value(row, goal)
    if value is None or row.values is not None:
        return value
    return standing(row)


def _finite(value: float | None) -> float:
    return value if value is not None and math.isfinite(value) else math.nan


def _reports(
    connection: Connection, study: StudyHead, goals: Sequence[GoalColumns], chosen: Any
) -> pd.DataFrame:
    wanted = select(REPORT.trial, REPORT.resource, *_measured(goals))
    statement = _of_study(wanted, reports, study).join_from(reports, trials)
    in_order = statement.where(chosen).order_by(REPORT.created, REPORT.trial, REPORT.resource)
    columns: dict[str, Any] = {"trial": array("q"), "resource": array("d")}
    columns |= {goal.column: array("d") for goal in goals}
    for row in each_row(connection, in_order):
        columns["trial"].append(row.trial)
        columns["resource"].append(row.resource)
        for goal, value in zip(goals, _values(row, goals), strict=True):
            columns[goal.column].append(value)
    return pd.DataFrame({name: np.asarray(cells) for name, cells in columns.items()})


def _measured(goals: Sequence[GoalColumns]) -> list[Any]:
    return [REPORT.value] if len(goals) == 1 else [REPORT.metrics]


def _values(row: Any, goals: Sequence[GoalColumns]) -> list[float]:
    if len(goals) == 1:
        return [_finite(row.value)]
    return [_finite(row.metrics.get(goal.metric)) for goal in goals]


def _bests(
    connection: Connection, study: StudyHead, goals: Sequence[GoalColumns], *, has_reports: bool
) -> dict[str, list[Shown]]:
    if has_reports:
        wanted = select(REPORT.trial, REPORT.created, *_measured(goals))
        shown = wanted.join_from(reports, trials)
        shown = shown.order_by(REPORT.created, REPORT.trial, REPORT.resource)
    else:
        measured = (TRIAL.value, TRIAL.objective_values.label("values"))
        shown = select(TRIAL.number.label("trial"), TRIAL.ended.label("created"), *measured)
        shown = shown.where(TRIAL.ended.is_not(None)).order_by(TRIAL.ended, TRIAL.number)
    counts = TRIAL.role.in_(OF_SEARCH) & (TRIAL.state != State.FAILED.value)
    counts &= TRIAL.violation == 0
    bests: dict[str, list[Shown]] = {goal.column: [] for goal in goals}
    row: Any
    for row in each_row(connection, _of_study(shown.where(counts), trials, study)):
        values = _values(row, goals) if has_reports else [_finite(_value(row, g)) for g in goals]
        for goal, value in zip(goals, values, strict=True):
            so_far = bests[goal.column]
            sign = -1 if goal.maximize else 1
            if sign * value < (sign * so_far[-1].value if so_far else math.inf):
                so_far.append(Shown(row.trial, value, row.created))
    return bests


_NUMBERS = ("started", "ended", "gpu_seconds", "start_up_seconds")
_WORDS = ("worker", "outcome", "state", "role")


def _attempts(connection: Connection, study: StudyHead) -> pd.DataFrame:
    """A few numbers for each attempt, and words that they share."""
    own = [ATTEMPT[name] for name in ("trial", *_NUMBERS, "worker", "outcome")]
    wanted = select(*own, TRIAL.state, TRIAL.role).join_from(attempts, trials)
    in_order = wanted.order_by(ATTEMPT.started, ATTEMPT.trial, ATTEMPT.number)
    columns: dict[str, Any] = {name: array("d") for name in ("trial", *_NUMBERS)}
    columns |= {name: [] for name in _WORDS}
    for row in each_row(connection, _of_study(in_order, attempts, study)):
        for name, cell in row._mapping.items():
            if name in _WORDS:
                columns[name].append(None if cell is None else sys.intern(str(cell)))
            else:
                columns[name].append(math.nan if cell is None else cell)
    frame = pd.DataFrame({name: np.asarray(cells) for name, cells in columns.items()})
    return frame.astype({"trial": int, **dict.fromkeys(_WORDS, object)})


def _findings(connection: Connection, study: StudyHead) -> dict[tuple[str, str], Found]:
    statement = _of_study(select(TRIAL.number, TRIAL.findings), trials, study)
    found: defaultdict[tuple[str, str], Found] = defaultdict(Found)
    for row in each_row(connection, statement.order_by(TRIAL.number)):
        for finding in row.findings or ():
            of_kind = found[finding.severity.value, finding.name]
            of_kind.trials += 1
            of_kind.latest, of_kind.evidence = row.number, finding.evidence
    return found


def _stored_space(connection: Connection, study: StudyHead) -> dict[str, BaseDistribution]:
    statement = _of_study(select(TRIAL.distributions), trials, study)
    space: dict[str, BaseDistribution] = {}
    for (stated,) in connection.execute(statement.order_by(TRIAL.number).limit(FIRST_TRIALS)):
        space |= stated or {}
    return space


def _of_study(statement: Select[Any], table: Any, study: StudyHead) -> Select[Any]:
    return statement.where(table.c.study_id == study.id)
