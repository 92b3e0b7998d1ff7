"""Readings of the database for people: studies, their standing, trials in a chosen order, one trial's whole story.

Every function takes a connection and reads what it needs with indexed queries; none loads a whole study to answer a
question about a part of it. The rows it returns are plain frozen objects that views and exports print.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    func,
    select,
)

from hpsearch.errors import StudyNotFound, UserError
from hpsearch.health import FINDINGS
from hpsearch.lifecycle import State
from hpsearch.pareto import pareto_front
from hpsearch.records import StudyState, violation_of
from hpsearch.selection import Ranked, rank
from hpsearch.spec import StudyBudget
from hpsearch.store import codec, conditions, shapes
from hpsearch.store.names import COLUMNS, WITH_LATEST, latest, names_of
from hpsearch.store.schema import attempts, decisions, reports, studies, trials


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
    active_seconds: float
    """Seconds that drivers have worked on it, as of a few seconds ago."""
    lease_owner: str | None
    lease_since: float | None
    lease_expires: float | None
    stop_requested: bool
    base: str | None
    """The folder of the study file, where relative paths in it start."""
    checkpoints: str | None = None
    """The folder of its checkpoints, a path or a URL."""

    def driver(self, now: float) -> str | None:
        """Who drives the study at `now`; None if nobody does."""
        return self.lease_owner if self.lease_expires is not None and self.lease_expires > now else None

    @property
    def written(self) -> dict[str, Any]:
        """The study file as it is written; empty for a study that was not made from one.

        Raises:
            Damaged: It is no YAML any more.
        """
        return shapes.written_in(self.spec)

    @property
    def budget(self) -> StudyBudget | None:
        """What the study file lets the study spend; None for a study that was not made from one.

        Raises:
            Damaged: It cannot be read any more.
        """
        return shapes.budget_in(self.spec)

    @property
    def has_best(self) -> bool:
        """Whether one direction says which trial is best."""
        return self.directions in (("minimize",), ("maximize",))

    @property
    def limited(self) -> bool:
        """Whether trials may have to keep limits; True where a look at the study file cannot rule it out."""
        return not self.spec or "constraints" in self.spec

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
            f"study {self.name} has {what}, so no trial is the best of it",
            f"see those that nothing beats: hpsearch best {self.name}",
        )


@dataclass(frozen=True, slots=True)
class TrialRow:
    """A row of `trials`, with the metrics of its latest report."""

    number: int
    state: State
    params: Mapping[str, Any]
    value: float | None
    resource: float
    rung: int | None
    seed: int
    gpu_seconds: float
    cost: float | None
    speed: float | None
    error_kind: str | None
    error_text: str | None
    checkpoint: str | None
    created: float
    started: float | None
    ended: float | None
    role: str
    repeats: int | None
    values: Sequence[float] | None
    """All objectives, where there are several."""
    violation: float = 0.0
    """How far it oversteps the study's limits; 0 where it keeps them all."""
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TrialDetail:
    """Everything known of one trial, each part in order of time."""

    trial: TrialRow
    reports: list[Mapping[str, Any]]
    attempts: list[Mapping[str, Any]]
    decisions: list[Mapping[str, Any]]
    findings: list[Mapping[str, str]]
    """What its latest attempt showed of its health, the most severe first."""


# ------------------------------------------------------------------------------------------------------ studies

_HEAD = [
    *(studies.c[name] for name in ("id", "name", "spec", "directions", "state", "reason", "created", "ended")),
    *(studies.c[name] for name in ("active_seconds", "lease_owner", "lease_since", "lease_expires")),
    *(studies.c[name] for name in ("stop_requested", "user_attrs")),
]


def study_heads(connection: Connection) -> list[StudyHead]:
    """All studies, the newest first."""
    rows = connection.execute(select(*_HEAD).order_by(studies.c.created.desc(), studies.c.id.desc()))
    return [_head(row) for row in rows]


def find_study(connection: Connection, name: str) -> StudyHead:
    """The study of that name.

    Raises:
        StudyNotFound: There is none; names the nearest.
    """
    named = studies.c.name == name
    row = connection.execute(select(*_HEAD).where(named)).one_or_none() if codec.storable(name) else None
    if row is None:
        raise _not_found(connection, name)
    return _head(row)


def id_of_study(connection: Connection, name: str) -> int:
    """The id of the study of that name, whatever its other columns hold.

    Raises:
        StudyNotFound: There is none; names the nearest.
    """
    named = select(studies.c.id).where(studies.c.name == name)
    found = connection.scalar(named) if codec.storable(name) else None
    if found is None:
        raise _not_found(connection, name)
    return int(found)


def _not_found(connection: Connection, name: str) -> StudyNotFound:
    names = list(connection.scalars(select(studies.c.name).order_by(studies.c.name)))
    near = conditions.nearest(name, names)
    if near:
        hint = f"did you mean {near}?"
    elif names:
        hint = f"there {'are' if len(names) > 1 else 'is'}: {', '.join(names[:10])}{', …' if len(names) > 10 else ''}"
    else:
        hint = "it has none yet; `hpsearch run STUDY.yaml` makes one"
    return StudyNotFound(f"no study is named {name} in this database", hint)


def only_study(connection: Connection) -> StudyHead:
    """The study of a database that has one.

    Raises:
        StudyNotFound: It has none.
        UserError: It has several.
    """
    rows = connection.execute(select(*_HEAD).order_by(studies.c.created.desc(), studies.c.id.desc()).limit(6)).all()
    if len(rows) == 1:
        return _head(rows[0])
    if not rows:
        raise StudyNotFound("the database has no studies yet", "`hpsearch run STUDY.yaml` makes one")
    names = ", ".join(r.name for r in rows[:5]) + (", …" if len(rows) > 5 else "")
    raise UserError("the database has several studies; name one", f"the latest: {names}")


def _head(row: Row[Any]) -> StudyHead:
    return StudyHead(
        id=row.id,
        name=row.name,
        spec=row.spec,
        directions=tuple(row.directions),
        state=codec.member(StudyState, row.state),
        reason=row.reason,
        created=row.created,
        ended=row.ended,
        active_seconds=row.active_seconds,
        lease_owner=row.lease_owner,
        lease_since=row.lease_since,
        lease_expires=row.lease_expires,
        stop_requested=row.stop_requested,
        base=row.user_attrs.get("hpsearch:base"),
        checkpoints=row.user_attrs.get("hpsearch:checkpoints"),
    )


# ------------------------------------------------------------------------------------------------------- trials


def trial_rows(
    connection: Connection,
    study: StudyHead,
    *,
    where: str | None = None,
    sort: str | None = None,
    limit: int | None = None,
) -> list[TrialRow]:
    """Trials that `where` selects, in the order of `sort` (and then of their numbers), at most `limit`.

    Raises:
        FilterError: An expression does not parse or names something unknown.
    """
    statement = _trials_of(study)
    names = names_of(connection, study.id) if where or sort else None
    if where and names:
        statement = statement.where(conditions.where(where, names))
    if sort and names:
        statement = statement.order_by(*conditions.order_by(sort, names))
    return _trial_rows(connection, study, statement.order_by(trials.c.number).limit(limit))


def best_trials(
    connection: Connection, study: StudyHead, top: int | None = None, *, where: str | None = None
) -> list[Ranked[TrialRow]]:
    """The best trials of a study, best first, of those that `where` selects.

    Reads the `top` nearest to the top by value, and all that were repeated: only a repeat can change the order. With
    limits or several objectives, the value says too little, and all trials are read.

    Args:
        connection: To the database.
        study: The study.
        top: At most so many; without it one, or with several objectives all that no other one beats.
        where: A --where expression.

    Raises:
        FilterError: `where` does not parse or names something unknown.
        UserError: The study has no direction.
    """
    if len(study.directions) > 1:
        return pareto_front(trial_rows(connection, study, where=where), study.directions)[:top]
    maximize, top = study.direction == "maximize", top or 1
    chosen = conditions.where(where, names_of(connection, study.id)) if where else None
    repeats = _trial_rows(connection, study, _trials_of(study).where(trials.c.role == "confirm"))
    repeated = sorted({t.repeats for t in repeats if t.repeats is not None})
    in_place = [
        trials.c.role != "confirm",
        trials.c.state != State.FAILED.value,
        # Rules out NULL, and on PostgreSQL also NaN, which stands above infinity there.
        trials.c.value.between(-1.7976931348623157e308, 1.7976931348623157e308),
        *([] if chosen is None else [chosen]),
    ]
    statement = _trials_of(study).where(*in_place)
    by_value = trials.c.value.desc() if maximize else trials.c.value.asc()
    most = None if study.limited else top + len(repeated) + 1  # one more than asked for, to see whether it is tied
    nearest_top = statement.order_by(by_value, trials.c.resource.desc(), trials.c.number).limit(most)
    asked_again = statement.where(trials.c.number.in_(repeated))
    rows = [*_trial_rows(connection, study, nearest_top), *_trial_rows(connection, study, asked_again)]
    places = {row.number: row for row in rows}
    return rank([*places.values(), *repeats], study.direction)[:top]


def trial_detail(connection: Connection, study: StudyHead, number: int) -> TrialDetail:
    """Everything known of one trial.

    Raises:
        UserError: The study has no trial of that number.
    """
    found = _trial_rows(connection, study, _trials_of(study).where(trials.c.number == number))
    if not found:
        count = connection.scalar(select(func.count()).where(trials.c.study_id == study.id)) or 0
        hint = f"it has trials 0 to {count - 1}" if count else "it has none yet"
        raise UserError(f"study {study.name} has no trial {number}", hint)

    def parts(table: Any, *order: ColumnElement[Any]) -> list[Mapping[str, Any]]:
        of_trial = and_(table.c.study_id == study.id, table.c.trial == number)
        return [plain(r) for r in connection.execute(select(table).where(of_trial).order_by(*order))]

    return TrialDetail(
        found[0],
        reports=parts(reports, reports.c.resource),
        attempts=parts(attempts, attempts.c.number),
        decisions=parts(decisions, decisions.c.id),
        findings=_findings(connection, study, number),
    )


def _findings(connection: Connection, study: StudyHead, number: int) -> list[Mapping[str, str]]:
    kept = select(trials.c.user_attrs).where(trials.c.study_id == study.id, trials.c.number == number)
    found: list[Mapping[str, str]] = (connection.scalar(kept) or {}).get(FINDINGS, [])
    return found


def plain(row: Row[Any]) -> dict[str, Any]:
    """A row of reports, attempts or decisions, without what names its study and trial."""
    return {k: v for k, v in row._mapping.items() if k not in ("study_id", "trial", "id")}


def _trials_of(study: StudyHead) -> Select[Any]:
    columns = [trials.c[name] for name in (*COLUMNS, "params", "objective_values", "system_attrs")]
    return select(*columns, latest.c.metrics).select_from(WITH_LATEST).where(trials.c.study_id == study.id)


def _trial_rows(connection: Connection, study: StudyHead, statement: Select[Any]) -> list[TrialRow]:
    """The trials of a study that a statement like `_trials_of` selects.

    Raises:
        Damaged: A column holds what is never written there.
    """
    rows = [_trial_row(row) for row in connection.execute(statement)]
    for row in rows:
        if (odd := shapes.miscounted(row.values, study.directions)) is not None:
            raise codec.Damaged(str(odd))
    return rows


def _trial_row(row: Row[Any]) -> TrialRow:
    cells = dict(row._mapping)
    return TrialRow(
        state=codec.member(State, cells.pop("state")),
        values=cells.pop("objective_values"),
        violation=violation_of(cells.pop("system_attrs")),
        metrics=cells.pop("metrics") or {},
        **cells,
    )
