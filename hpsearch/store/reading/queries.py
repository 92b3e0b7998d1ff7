"""Readings of the database for people: studies, their standing, trials in a chosen order, one
trial's whole story.

Every function takes a connection and reads what it needs with indexed queries; none loads a whole
study to answer a question about a part of it. The rows it returns are plain frozen objects that
views and exports print.
"""

from __future__ import annotations

import enum
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    Table,
    and_,
    case,
    false,
    func,
    or_,
    select,
)

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment, Request, StudyState, Trial
from hpsearch.errors import Damaged, StudyNotFound, UserError
from hpsearch.ranking.pareto import pareto_front
from hpsearch.ranking.selection import Ranked, range_of_ties, rank, tied_with
from hpsearch.store import codec, heartbeats, shapes
from hpsearch.store.contents import not_found
from hpsearch.store.leases import LIVE
from hpsearch.store.owners import is_dead, shown
from hpsearch.store.reading import conditions
from hpsearch.store.reading.names import SHOWN, WITH_LATEST, latest, metrics_in, names_of
from hpsearch.store.rows import REQUEST_COLUMNS
from hpsearch.store.schema import (
    attempts,
    column_name,
    decisions,
    environments,
    reports,
    requests,
    studies,
    trials,
)
from hpsearch.study_file.models import GB, StudyBudget
from trials.contract import Finding
from trials.descriptions.description import ASK
from trials.loop.memory_facts import Facts
from trials.running.arithmetic import Arithmetic


@dataclass(frozen=True, slots=True)
class StudyHead:
    """A row of `studies`, without its attributes."""

    id: int
    name: str
    spec: str
    directions: tuple[str, ...]
    state: StudyState
    reason: str | None
    created: float
    ended: float | None
    active_seconds: float  # seconds that drivers have worked on it, as of a few seconds ago
    driver: str | None
    """Who drives it, or asks for its trials, as people are shown it; None if nobody does."""
    stop_requested: bool
    base: str | None  # the folder of the study file, where relative paths in it start
    checkpoints: str | None = None  # the folder of its checkpoints, a path or a URL

    @property
    def written(self) -> dict[str, Any]:
        """The study file as it is written; empty for a study that was not made from one."""
        return shapes.written_in(self.spec)

    @property
    def budget(self) -> StudyBudget | None:
        """The budget of the study file; None for a study that was not made from one."""
        return shapes.budget_in(self.spec)

    @property
    def checkpoint_limit_bytes(self) -> float | None:
        """The bytes that its checkpoints may take; None if the study file sets no valid limit."""
        stated = self.written.get("checkpoints")
        limit = stated.get("max_gb") if isinstance(stated, dict) else None
        return limit * GB if isinstance(limit, int | float) else None

    @property
    def is_asked(self) -> bool:
        """True if its trials are only asked for, and nothing can drive it."""
        task = self.written.get("task")
        return isinstance(task, dict) and task.get("kind") == ASK.kind

    @property
    def has_best(self) -> bool:
        """True if one direction says which trial is best."""
        return self.directions in (("minimize",), ("maximize",))

    @property
    def metric(self) -> str:
        """The name of its first objective; empty for a study that was not made from a file."""
        stated = self.written.get("objective")
        first = stated[0] if isinstance(stated, list) and stated else stated
        return str(first.get("metric", "")) if isinstance(first, dict) else ""

    @property
    def limited(self) -> bool:
        """True if trials may have to keep limits; True where the study file cannot rule it out."""
        if not self.spec:
            return True
        return bool(self.written.get("constraints"))

    @property
    def direction(self) -> str:
        """Minimize or maximize.

        Raises:
            UserError: The study has several objectives, or none.
        """
        if self.has_best:
            return self.directions[0]
        what = "several objectives" if len(self.directions) > 1 else "no direction"
        raise UserError(
            f"study {self.name} has {what}, so it has no single best trial",
            f"see those that no other trial beats: hpsearch best {self.name}",
        )


@dataclass(slots=True)
class TrialRow(Trial):
    """A trial with what readings show of it, and the metrics of its latest report.

    Fields that are not shown are empty, except its system attributes.
    """

    metrics: Mapping[str, float] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        """The fields that are shown, as plain values by name."""
        shown = {}
        for name in SHOWN:
            shown[name] = _plain_value(getattr(self, name))
        return {**shown, "violation": self.violation, "metrics": dict(self.metrics)}


@dataclass(frozen=True, slots=True)
class TrialDetail:
    """Everything known of one trial, each part in order of time."""

    trial: TrialRow
    reports: list[Mapping[str, Any]]
    attempts: list[Mapping[str, Any]]
    decisions: list[Mapping[str, Any]]
    findings: list[Finding]  # what its latest attempt showed of its health, the most severe first


# ------------------------------------------------------------------------------------------ studies

_HEAD: Select[Any] = select(
    *(studies.c.id, studies.c.name, studies.c.spec, studies.c.directions, studies.c.state),
    *(studies.c.reason, studies.c.created, studies.c.ended, studies.c.active_seconds),
    *(studies.c.lease_owner, studies.c.stop_requested, studies.c.base, studies.c.checkpoints),
    LIVE,
)
_NEWEST_FIRST = _HEAD.order_by(studies.c.created.desc(), studies.c.id.desc())


def trial_of(table: Table) -> ColumnElement[bool]:
    """The condition by which to join a table's rows with their trials. A damaged database may have
    rows without one."""
    return (trials.c.study_id == table.c.study_id) & (trials.c.number == table.c.trial)


def study_heads(connection: Connection) -> list[StudyHead]:
    """All studies, the newest first."""
    asking = heartbeats.askers(connection)
    rows = connection.execute(_NEWEST_FIRST)
    return [_head(row, asking) for row in rows]


def find_study(connection: Connection, name: str) -> StudyHead:
    """The study of that name. Raises StudyNotFound, which names the nearest."""
    row = None
    if codec.storable(name):
        row = connection.execute(_HEAD.where(studies.c.name == name)).one_or_none()
    if row is None:
        raise not_found(connection, name)
    return _head(row, heartbeats.askers(connection, row.id))


def study_of_id(connection: Connection, study_id: int) -> StudyHead:
    """The study of that id. Raises StudyNotFound if it is not there."""
    row = connection.execute(_HEAD.where(studies.c.id == study_id)).one_or_none()
    if row is None:
        raise StudyNotFound("this study is not in the database", "it may have been deleted")
    return _head(row, heartbeats.askers(connection, row.id))


def id_of_study(connection: Connection, name: str) -> int:
    """The id of the study of that name, whatever its other columns hold. Raises StudyNotFound."""
    named = select(studies.c.id).where(studies.c.name == name)
    found = connection.scalar(named) if codec.storable(name) else None
    if found is None:
        raise not_found(connection, name)
    return int(found)


def only_study(connection: Connection) -> StudyHead:
    """The study of a database that has one. Raises StudyNotFound if it has none, UserError if
    several."""
    most = 5
    rows = connection.execute(_NEWEST_FIRST.limit(most + 1)).all()
    if len(rows) == 1:
        return _head(rows[0], heartbeats.askers(connection, rows[0].id))
    if not rows:
        raise StudyNotFound(
            "the database has no studies yet", "`hpsearch run STUDY.yaml` makes one"
        )
    names = ", ".join(row.name for row in rows[:most])
    if len(rows) > most:
        names += ", …"
    raise UserError("the database has several studies; name one", f"the latest: {names}")


def _head(row: Row[Any], asking: Mapping[int, list[str]]) -> StudyHead:
    askers = asking.get(row.id)
    cells = {
        name: cell for name, cell in row._mapping.items() if name not in ("lease_owner", "live")
    }
    cells["directions"] = tuple(row.directions)
    driver = _driver(row) or (heartbeats.named(askers) if askers else None)
    return StudyHead(**cells, driver=driver)


def _driver(row: Row[Any]) -> str | None:
    """The driver of a study; None if nobody drives it.

    A process of this machine that has died drives it no more, although its lease still runs: a
    driver that is ended in the middle of a transaction may not be able to give it back.
    """
    owner = row.lease_owner
    if not row.live or is_dead(owner):
        return None
    return shown(owner)


def names_checkpoints(connection: Connection, study_id: int, folder: str) -> bool:
    """True if a trial of a study names a checkpoint in a folder, a path or a URL."""
    inside = trials.c.checkpoint.startswith(f"{folder}/", autoescape=True)
    named = select(trials.c.number).where(trials.c.study_id == study_id, inside).limit(1)
    return connection.scalar(named) is not None


def study_requests(connection: Connection, study: StudyHead) -> list[Request]:
    """Everything that was asked of a study, the oldest first."""
    of_study = requests.c.study_id == study.id
    found = connection.execute(select(*REQUEST_COLUMNS).where(of_study).order_by(requests.c.id))
    return [Request(*row) for row in found]


def session_at(connection: Connection, study: StudyHead, time: float) -> Environment | None:
    """The environment of the latest session of a driver at a time; the first one if none had
    begun, and None if none is recorded."""
    of_study = select(environments).where(environments.c.study_id == study.id)
    rows = connection.execute(of_study.order_by(environments.c.created, environments.c.id)).all()
    if not rows:
        return None
    begun = [row for row in rows if row.created <= time]
    row = begun[-1] if begun else rows[0]
    return Environment(row.created, row.revision, row.packages, row.device, row.data_fingerprint)


def memory_of(connection: Connection, study: StudyHead) -> Facts:
    """The facts that a study's workers have learnt of the micro-batches that fit in memory."""
    known: Facts | None = connection.scalar(
        select(studies.c.memory).where(studies.c.id == study.id)
    )
    return known or {}


# ------------------------------------------------------------------------------------------- trials


def trial_rows(
    connection: Connection,
    study: StudyHead,
    *,
    where: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
    skip: int = 0,
    top: int | None = None,
) -> list[TrialRow]:
    """Trials that `where` selects, in the order of `sort` (and then of their numbers), at most
    `limit` after the first `skip`; or the best `top` by what is expected of them or else by their
    value.

    Raises:
        FilterError: An expression does not parse or names something unknown.
        UserError: `top` of a study that has no direction.
    """
    statement = _trials_of(study)
    names = names_of(connection, study.id) if where or sort else None
    if names:
        _read_cells(connection, study, conditions.cells(where, sort, names))
    if where and names:
        statement = statement.where(conditions.where(where, names))
    if sort and names:
        statement = statement.order_by(*conditions.order_by(sort, names))
    if top is not None:
        statement = statement.order_by(*_best_first(study))
        limit = top
    in_order = statement.order_by(trials.c.number).limit(limit).offset(skip)
    return _trial_rows(connection, study, in_order)


def _best_first(study: StudyHead) -> list[ColumnElement[Any]]:
    by_standing = _STANDING.desc() if study.direction == "maximize" else _STANDING.asc()
    complete_first = case((trials.c.state == State.COMPLETE.value, 0), else_=1)
    nearest = [by_standing.nulls_last(), complete_first, trials.c.resource.desc()]
    return [_IS_DAMAGED.desc(), *nearest, trials.c.number]


_RANKED_BY = (trials.c.value, trials.c.expected, trials.c.expected_deviation)
_IS_DAMAGED: ColumnElement[bool] = or_(
    *(func.coalesce(column > math.inf, false()) for column in _RANKED_BY)
)
"""True if something that trials are ranked by is no number: both databases put it above infinity.
Such a trial is read, and so reported, instead of being passed over."""
_LARGEST = sys.float_info.max
_IS_EXPECTED = trials.c.expected.between(-_LARGEST, _LARGEST)
"""True if something finite is expected of a trial."""
_STANDING: ColumnElement[Any] = case((_IS_EXPECTED, trials.c.expected), else_=trials.c.value)
"""As `selection.standing`."""


def best_trials(
    connection: Connection, study: StudyHead, top: int | None = None, *, where: str | None = None
) -> list[Ranked[TrialRow]]:
    """The best trials of a study that `where` selects, best first: at most `top`; without it one,
    or with several objectives all that no other one beats.

    Reads the best `top` by what is expected of them, or else by value; all that were repeated,
    since only a repeat can change the order; and one that is tied with the first. With limits or
    several objectives, that says too little, and all are read.

    Raises:
        FilterError: `where` does not parse or names something unknown.
        UserError: The study has no direction.
    """
    if len(study.directions) > 1:
        rows = trial_rows(connection, study, where=where)
        return pareto_front(rows, study.directions)[:top]
    best_first = _best_first(study)
    top = top or 1
    searched = _searched(study)
    if where:
        names = names_of(connection, study.id)
        _read_cells(connection, study, conditions.cells(where, None, names))
        searched = searched.where(conditions.where(where, names))
    is_repeat = trials.c.role == Role.CONFIRM.value
    repeats = _trial_rows(connection, study, _trials_of(study).where(is_repeat))
    numbers = {trial.repeats for trial in repeats}
    repeated = sorted(number for number in numbers if number is not None)
    most = None if study.limited else top + len(repeated)
    nearest_top = searched.order_by(*best_first).limit(most)
    asked_again = searched.where(trials.c.number.in_(repeated))
    found = _trial_rows(connection, study, nearest_top)
    found += _trial_rows(connection, study, asked_again)
    candidates = {row.number: row for row in found}
    ranked = rank([*candidates.values(), *repeats], study.direction, study.metric)
    if ranked and not study.limited:  # is the first one tied with one further down?
        unrepeated = searched.where(trials.c.number.not_in(repeated))
        one_tied = _one_tied(connection, study, unrepeated, ranked[0])
        for row in _trial_rows(connection, study, searched.where(trials.c.number == one_tied)):
            candidates[row.number] = row
        ranked = rank([*candidates.values(), *repeats], study.direction, study.metric)
    return ranked[:top]


def seen_at(
    connection: Connection, study: StudyHead, ranked: Sequence[Ranked[TrialRow]]
) -> dict[int, float]:
    """How far trials had trained when they first showed their value, by their numbers: as
    `Trial.seen_at`, where it is known."""
    numbers = [each.trial.number for each in ranked if each.trial.values is None]
    shows_value = and_(
        reports.c.study_id == trials.c.study_id,
        reports.c.trial == trials.c.number,
        reports.c.value == trials.c.value,
    )
    first = select(trials.c.number, func.min(reports.c.resource))
    first = first.join_from(trials, reports, shows_value).group_by(trials.c.number)
    of_these = first.where(trials.c.study_id == study.id, trials.c.number.in_(numbers))
    return {row[0]: row[1] for row in connection.execute(of_these)}


def _searched(study: StudyHead) -> Select[Any]:
    """The trials of a study that can have a place: neither repeats nor failed, with a number."""
    return _trials_of(study).where(
        trials.c.role.is_distinct_from(Role.CONFIRM.value),
        trials.c.state.is_distinct_from(State.FAILED.value),
        or_(trials.c.value.between(-_LARGEST, _LARGEST), _IS_DAMAGED),
    )


def _one_tied(
    connection: Connection, study: StudyHead, searched: Select[Any], first: Ranked[TrialRow]
) -> int | None:
    """The number of one trial of `searched`, which were not repeated, that cannot be told from the
    first of the ranking; None if there is none."""
    low, high = range_of_ties(first)
    has_range = and_(_IS_EXPECTED, trials.c.expected_deviation > 0)
    is_equal = trials.c.value == first.value
    may_tie = or_(_STANDING.between(low, high), has_range, is_equal)
    near = searched.where(trials.c.number != first.trial.number, may_tie)
    for row in connection.execute(near.with_only_columns(*_OF_STANDING)):
        if tied_with(first, Trial(params={}, **row._mapping), study.direction):
            return int(row.number)
    return None


_OF_STANDING = (
    *(trials.c.number, trials.c.state, trials.c.value, trials.c.expected),
    *(trials.c.expected_deviation, trials.c.expected_low, trials.c.expected_high),
    trials.c.resource,
)


LARGEST_NUMBER = 2**31 - 1  # the largest number of a trial that both databases can hold


def trial_detail(connection: Connection, study: StudyHead, number: int) -> TrialDetail:
    """Everything known of one trial. Raises UserError if there is none of that number."""
    found = []
    if 0 <= number <= LARGEST_NUMBER:
        numbered = _trials_of(study).where(trials.c.number == number)
        found = _trial_rows(connection, study, numbered)
    if not found:
        raise _no_trial(connection, study, number)

    def parts(table: Any, order: ColumnElement[Any]) -> list[Mapping[str, Any]]:
        of_trial = and_(table.c.study_id == study.id, table.c.trial == number)
        statement = select(table).where(of_trial).order_by(order)
        return [plain(row) for row in connection.execute(statement)]

    return TrialDetail(
        found[0],
        reports=parts(reports, reports.c.resource),
        attempts=parts(attempts, attempts.c.number),
        decisions=parts(decisions, decisions.c.id),
        findings=_findings(connection, study, number),
    )


def _no_trial(connection: Connection, study: StudyHead, number: int) -> UserError:
    of_study = select(func.count()).where(trials.c.study_id == study.id)
    count = connection.scalar(of_study)
    hint = f"it has trials 0 to {count - 1}" if count else "it has none yet"
    return UserError(f"study {study.name} has no trial {number}", hint)


def recorded_arithmetic(connection: Connection, study: StudyHead, number: int) -> Arithmetic | None:
    """How a trial computed, as its first attempt did; None if that is not recorded."""
    of_trial = and_(attempts.c.study_id == study.id, attempts.c.trial == number)
    recorded = select(attempts.c.arithmetic).where(of_trial, attempts.c.arithmetic.is_not(None))
    plain = connection.scalar(recorded.order_by(attempts.c.number).limit(1))
    return None if plain is None else Arithmetic.from_plain(plain)


def _findings(connection: Connection, study: StudyHead, number: int) -> list[Finding]:
    of_trial = (trials.c.study_id == study.id) & (trials.c.number == number)
    found: list[Finding] | None = connection.scalar(select(trials.c.findings).where(of_trial))
    return found or []


def plain(row: Row[Any]) -> dict[str, Any]:
    """A row of reports, attempts or decisions, without what names its study and trial."""
    cells = dict(row._mapping)
    for name in ("study_id", "trial", "id"):
        cells.pop(name, None)
    return cells


def _trials_of(study: StudyHead) -> Select[Any]:
    return (
        select(*_READ, metrics_in(latest))
        .select_from(WITH_LATEST)
        .where(trials.c.study_id == study.id)
    )


def _trial_rows(connection: Connection, study: StudyHead, statement: Select[Any]) -> list[TrialRow]:
    rows = [_trial_row(row) for row in connection.execute(statement)]
    for row in rows:
        odd = shapes.miscounted(row.values, study.directions)
        if odd is not None:
            raise Damaged(odd)
    return rows


def _read_cells(
    connection: Connection, study: StudyHead, cells: Sequence[ColumnElement[Any]]
) -> None:
    of_study = select(*cells).select_from(WITH_LATEST).where(trials.c.study_id == study.id)
    connection.execute(of_study).all()


_READ = [
    trials.c[column_name(each)].label(each.name)
    for each in fields(Trial)
    if each.name in (*SHOWN, "system_attrs")
]


def _trial_row(row: Row[Any]) -> TrialRow:
    trial = TrialRow(**row._mapping)
    trial.metrics = trial.metrics or {}
    return trial


def _plain_value(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value
