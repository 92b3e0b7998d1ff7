"""Readings of the database for people: studies, trials in a chosen order, the best of them, and
everything about one trial. Rows are plain frozen objects that views and exports print."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, Row, Select, Table, and_, func, select

from hpsearch.domain.facts import Role
from hpsearch.domain.records import ReportRecord, Request, StudyState, Trial, Version
from hpsearch.errors import StudyNotFound, UserError
from hpsearch.search.ranking.selection import Ranked
from hpsearch.store import heartbeats
from hpsearch.store.contents import FETCHED, not_found, records
from hpsearch.store.leases import LIVE
from hpsearch.store.owners import is_dead, shown
from hpsearch.store.reading.conditions import Option, compiled
from hpsearch.store.reading.names import SHOWN, WITH_LATEST, Names, latest
from hpsearch.store.schema import (
    ATTEMPT,
    DECISION,
    REPORT,
    REQUEST,
    STUDY,
    TRIAL,
    VERSIONED,
    Sql,
    attempts,
    column_name,
    decisions,
    reports,
    special,
    trials,
)
from hpsearch.store.study_texts import budget_in, content_of, metrics_in
from hpsearch.study_file.models import GB, StudyBudget
from trials.contract import Finding
from trials.descriptions.description import ASK

Of = TypeVar("Of", covariant=True)


@dataclass(frozen=True)
class Rows(Generic[Of]):
    """Rows of which few are held at a time. They are read anew, in the transaction of their
    connection, whenever somebody goes through them."""

    read: Callable[[], Iterator[Of]]

    def __iter__(self) -> Iterator[Of]:
        return self.read()

    def parts(self) -> Iterator[list[Of]]:
        """The rows in their order, at most `FETCHED` at a time."""
        rows = iter(self)
        while part := list(islice(rows, FETCHED)):
            yield part


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
    """Its driver, or the process that asks for its trials, for people; None without one."""
    stop_requested: bool
    base: str | None  # the folder of the study file, where relative paths in it start
    checkpoints: str | None = None  # the folder of its checkpoints, a path or a URL

    @property
    def content(self) -> dict[str, Any]:
        """The study file as data; empty for a study that was not made from one."""
        return content_of(self.spec)

    @property
    def budget(self) -> StudyBudget | None:
        """The budget of the study file; None without a valid one."""
        return budget_in(self.spec)

    @property
    def checkpoint_limit_bytes(self) -> float | None:
        """The bytes that its checkpoints may take; None if the study file sets no valid limit."""
        stated = self.content.get("checkpoints")
        limit = stated.get("max_gb") if isinstance(stated, dict) else None
        return limit * GB if isinstance(limit, int | float) else None

    @property
    def is_asked(self) -> bool:
        """True if its trials are only asked for, so that nothing can drive it."""
        task = self.content.get("task")
        return isinstance(task, dict) and task.get("kind") == ASK.kind

    @property
    def has_best(self) -> bool:
        """True if one direction says which trial is best."""
        return self.directions in (("minimize",), ("maximize",))

    @property
    def metric(self) -> str:
        """The name of its first objective; empty for a study that was not made from a file."""
        return next(iter(metrics_in(self.spec)), "")

    @property
    def direction(self) -> str:
        """Minimize or maximize. Raises UserError if the study has several objectives, or none."""
        if self.has_best:
            return self.directions[0]
        what = "several objectives" if len(self.directions) > 1 else "no direction"
        raise UserError(
            f"study {self.name} has {what}, so it has no single best trial",
            f"see those that no other trial beats: hpsearch best {self.name}",
        )


@dataclass(slots=True)
class TrialRow(Trial):
    """A trial with the fields that readings show, and the metrics of its latest report. Other
    fields are empty, except its system attributes."""

    metrics: Mapping[str, float] = field(default_factory=dict)

    def as_plain(self) -> dict[str, Any]:
        """The fields that are shown, as plain values by name."""
        plain: dict[str, Any] = {}
        for name in SHOWN:
            value = getattr(self, name)
            plain[name] = value.value if isinstance(value, enum.Enum) else value
        return {**plain, "violation": self.violation, "metrics": dict(self.metrics)}


@dataclass(frozen=True, slots=True)
class TrialDetail:
    """Everything known of one trial, each part in order of time."""

    trial: TrialRow
    reports: list[Mapping[str, Any]]
    attempts: list[Mapping[str, Any]]
    decisions: list[Mapping[str, Any]]
    findings: list[Finding]  # what its latest attempt showed of its health, the most severe first
    version: Version | None = None  # of the study, where that has several


_HEAD: Select[Any] = select(
    *(STUDY[each.name] for each in fields(StudyHead) if each.name != "driver"),
    *(STUDY.lease_owner, LIVE),
)
_NEWEST_FIRST = _HEAD.order_by(STUDY.created.desc(), STUDY.id.desc())


def study_heads(connection: Connection) -> list[StudyHead]:
    return _heads(connection, _NEWEST_FIRST)


def find_study(connection: Connection, name: str) -> StudyHead:
    """The study with a name. Raises StudyNotFound, which names the nearest."""
    found = _heads(connection, _HEAD.where(STUDY.name == name))
    if not found:
        raise not_found(connection, name)
    return found[0]


def study_of_id(connection: Connection, study_id: int) -> StudyHead:
    """The study with an id. Raises StudyNotFound if it is not there."""
    found = _heads(connection, _HEAD.where(STUDY.id == study_id))
    if not found:
        raise StudyNotFound("this study is not in the database", "it may have been deleted")
    return found[0]


def only_study(connection: Connection) -> StudyHead:
    """The only study of a database. Raises StudyNotFound if it has none, UserError if several."""
    found = _heads(connection, _NEWEST_FIRST.limit(2))
    if not found:
        hint = "`hpsearch run STUDY.yaml` makes one"
        raise StudyNotFound("the database has no studies yet", hint)
    if len(found) > 1:
        raise UserError("the database has several studies; name one", "see them: hpsearch ls")
    return found[0]


def _heads(connection: Connection, statement: Select[Any]) -> list[StudyHead]:
    rows = connection.execute(statement).all()
    asking = heartbeats.askers(connection, rows[0].id if len(rows) == 1 else None)
    heads = []
    for row in rows:
        cells = dict(row._mapping)
        owner, live = cells.pop("lease_owner"), cells.pop("live")
        driver = None
        if live and not is_dead(owner):
            driver = shown(owner)
        elif row.id in asking:
            driver = heartbeats.named(asking[row.id])
        heads.append(StudyHead(**cells, driver=driver))
    return heads


def names_checkpoints(connection: Connection, study_id: int, folder: str) -> bool:
    """True if a trial of a study names a checkpoint in a folder, a path or a URL."""
    inside = TRIAL.checkpoint.startswith(f"{folder}/", autoescape=True)
    named = select(TRIAL.number).where(TRIAL.study_id == study_id, inside).limit(1)
    return connection.scalar(named) is not None


def study_requests(connection: Connection, study: StudyHead) -> list[Request]:
    return records(connection, Request, REQUEST.study_id == study.id)


def trial_rows(
    connection: Connection,
    study: StudyHead,
    *,
    where: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
    skip: int = 0,
) -> list[TrialRow]:
    """Trials that `where` selects, in the order of `sort` and then of their numbers, at most
    `limit` after the first `skip`. Raises FilterError for an expression."""
    statement = _selected(connection, study, where, sort)
    return rows_of(connection, statement.limit(limit).offset(skip))


def each_trial(
    connection: Connection,
    study: StudyHead,
    *,
    where: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
) -> Rows[TrialRow]:
    """The trials of `trial_rows`, for studies of any size. Raises FilterError as it does."""
    statement = _selected(connection, study, where, sort).limit(limit)
    return Rows(lambda: map(_trial_row, each_row(connection, statement)))


def _selected(
    connection: Connection, study: StudyHead, where: str | None, sort: str | None
) -> Select[Any]:
    statement = trials_of(study)
    if where:
        statement = statement.where(compiled_for(connection, study, where, "--where"))
    if sort:
        statement = statement.order_by(*compiled_for(connection, study, sort, "--sort"))
    return statement.order_by(TRIAL.number)


def each_row(connection: Connection, statement: Select[Any]) -> Iterator[Row[Any]]:
    """The rows of a statement, at most `FETCHED` in memory: PostgreSQL has a cursor for it."""
    with connection.execute(statement, execution_options={"yield_per": FETCHED}) as result:
        yield from result


def compiled_for(connection: Connection, study: StudyHead, text: str, option: Option) -> Any:
    return compiled(text, option, Names(connection, study.id))


def seen_at(
    connection: Connection, study: StudyHead, ranked: Sequence[Ranked[TrialRow]]
) -> dict[int, float]:
    """The resource at which trials first showed their value, by number, as `Trial.seen_at`."""
    numbers = [each.trial.number for each in ranked if each.trial.values is None]
    shows_value = and_(
        REPORT.study_id == TRIAL.study_id, REPORT.trial == TRIAL.number, REPORT.value == TRIAL.value
    )
    first = select(TRIAL.number, func.min(REPORT.resource))
    first = first.join_from(trials, reports, shows_value).group_by(TRIAL.number)
    of_these = first.where(TRIAL.study_id == study.id, TRIAL.number.in_(numbers))
    return {row[0]: row[1] for row in connection.execute(of_these)}


def default_trial(connection: Connection, study: StudyHead) -> TrialRow | None:
    """The trial of the task's default settings; None if there is none."""
    of_role = trials_of(study).where(special(), TRIAL.role == Role.DEFAULT.value)
    return min(rows_of(connection, of_role), key=lambda row: row.number, default=None)


LARGEST_NUMBER = 2**31 - 1  # the largest number of a trial that both databases can hold


def trial_detail(connection: Connection, study: StudyHead, number: int) -> TrialDetail:
    """Everything known of one trial. Raises UserError if no trial has this number."""
    found = []
    if 0 <= number <= LARGEST_NUMBER:
        numbered = trials_of(study).where(TRIAL.number == number)
        found = rows_of(connection, numbered)
    if not found:
        raise _no_trial(connection, study, number)

    def parts(table: Table, order: Sql) -> list[Mapping[str, Any]]:
        shown = [column for column in table.c if column.name not in ("study_id", "trial", "id")]
        of_trial = and_(table.c.study_id == study.id, table.c.trial == number)
        statement = select(*shown).where(of_trial).order_by(order)
        return [dict(row._mapping) for row in connection.execute(statement)]

    has_number = and_(TRIAL.study_id == study.id, TRIAL.number == number)
    findings = connection.scalar(select(TRIAL.findings).where(has_number))
    trial, reported = found[0], parts(reports, REPORT.resource)
    trial.reports = {each["resource"]: ReportRecord(number, **each) for each in reported}
    versions = records(connection, Version, VERSIONED.study_id == study.id)
    return TrialDetail(
        trial,
        reports=reported,
        attempts=parts(attempts, ATTEMPT.number),
        decisions=parts(decisions, DECISION.id),
        findings=findings or [],
        version=versions[trial.version - 1] if len(versions) > 1 else None,
    )


def _no_trial(connection: Connection, study: StudyHead, number: int) -> UserError:
    of_study = select(func.count()).where(TRIAL.study_id == study.id)
    count = connection.scalar(of_study)
    hint = f"it has trials 0 to {count - 1}" if count else "it has none yet"
    return UserError(f"study {study.name} has no trial {number}", hint)


_READ = [
    TRIAL[column_name(each)].label(each.name)
    for each in fields(Trial)
    if each.name in (*SHOWN, "system_attrs")
]


def trials_of(study: StudyHead) -> Select[Any]:
    return (
        select(*_READ, latest.c.metrics).select_from(WITH_LATEST).where(TRIAL.study_id == study.id)
    )


def rows_of(connection: Connection, statement: Select[Any]) -> list[TrialRow]:
    return list(map(_trial_row, connection.execute(statement)))


def _trial_row(row: Row[Any]) -> TrialRow:
    found = TrialRow(**row._mapping)
    found.metrics = found.metrics or {}
    return found
