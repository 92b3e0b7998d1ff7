"""The tables: one for each record of `hpsearch.domain.records`, whose fields are its columns.

Meant to be queried by hand too:
`SELECT number, value, params FROM trials WHERE study_id = 1 ORDER BY value`. Times are seconds
since the epoch (UTC), resources are in the unit of the study's trial budget, enums are their values
as text.

A change here needs a new `VERSION` and a migration (`hpsearch.store.version.MIGRATIONS`); a test
holds the two together.
"""

from collections.abc import Collection
from dataclasses import Field, fields
from types import NoneType
from typing import Any, TypeAlias, get_args, get_type_hints

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex

from hpsearch.domain.facts import Role
from hpsearch.domain.records import (
    Attempt,
    Decision,
    Environment,
    ReportRecord,
    Request,
    Revision,
    StudyRecord,
    Trial,
    Version,
)
from hpsearch.store.cells import Cell, StoredDistribution

Sql: TypeAlias = sa.ColumnElement[Any]
Condition: TypeAlias = sa.ColumnElement[bool]

VERSION = 5  # the schema version that this program reads and writes

metadata = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def columns_of(table: str, record: type, *, key: Collection[str] = ()) -> list[sa.Column[Any]]:
    """The columns of a record's fields, in their order; those in `key` are the primary key's."""
    named = {"BaseDistribution": StoredDistribution}
    types = get_type_hints(record, localns=named, include_extras=True)
    return [
        _column(table, field, types[field.name], is_key=field.name in key)
        for field in fields(record)
        if "elsewhere" not in field.metadata
    ]


def _column(table: str, field: Field[Any], type_: Any, *, is_key: bool) -> sa.Column[Any]:
    stated = _without_none(type_)
    return _cell(
        table,
        column_name(field),
        stated,
        big="big" in field.metadata,
        is_name="is_name" in field.metadata,
        primary_key=is_key,
        autoincrement=False if is_key else "auto",
        nullable=stated is not type_,
    )


def _cell(
    table: str,
    name: str,
    of: Any,
    *more: Any,
    big: bool = False,
    is_name: bool = False,
    **options: Any,
) -> sa.Column[Any]:
    cell = Cell(f"{table}.{name}", of, big=big, is_name=is_name)
    return sa.Column(name, cell, *more, **options)


def column_name(field: Field[Any]) -> str:
    """The name of a field's column: the field's own, unless its metadata state another."""
    stated: str = field.metadata.get("column", field.name)
    return stated


def cell_of(column: sa.ColumnElement[Any]) -> Cell:
    assert isinstance(column.type, Cell)
    return column.type


def _without_none(type_: Any) -> Any:
    named = get_args(type_)
    members = [member for member in named if member is not NoneType]
    is_optional = NoneType in named and len(members) == 1
    return members[0] if is_optional else type_


def _of_a_study(table: str, *, is_key: bool) -> sa.Column[Any]:
    return _cell(
        table,
        "study_id",
        int,
        sa.ForeignKey("studies.id", ondelete="CASCADE"),
        primary_key=is_key,
        autoincrement=False if is_key else "auto",
        nullable=False,
    )


def _of_a_trial(table: str, columns: list[sa.Column[Any]], *, is_key: bool) -> list[Any]:
    trial = sa.ForeignKeyConstraint(
        ["study_id", "trial"], ["trials.study_id", "trials.number"], ondelete="CASCADE"
    )
    study_id = _cell(
        table, "study_id", int, primary_key=is_key, autoincrement=False, nullable=False
    )
    return [study_id, *columns, trial]


def _partial_index(where: Condition, *columns: sa.Column[Any]) -> None:
    """An index of the rows that a condition is true of. SQLAlchemy's own words for that name a
    dialect, and import it: PostgreSQL's takes long."""
    sa.Index(None, *columns, info={"where": where})


@compiles(CreateIndex)
def _create_index(create: CreateIndex, compiler: Any, **options: Any) -> str:
    written: str = compiler.visit_create_index(create, **options)
    where = create.element.info.get("where")
    if where is None:
        return written
    return f"{written} WHERE {compiler.sql_compiler.process(where, include_table=False)}"


studies = sa.Table(
    "studies",
    metadata,
    _cell("studies", "id", int, primary_key=True),
    *(column for column in columns_of("studies", StudyRecord) if column.name != "id"),
    # Not part of the record: what is asked by it, who may write it, and what is watched.
    _cell("studies", "direction", str),
    _cell("studies", "lease_owner", str),
    _cell("studies", "lease_epoch", int, nullable=False, server_default="0"),
    _cell("studies", "lease_since", float),
    _cell("studies", "lease_expires", float),
    _cell("studies", "stop_requested", bool, nullable=False, server_default="0"),
    _cell("studies", "revision", int, big=True, nullable=False, server_default="0"),
    _cell("studies", "alive_at", float),
    sa.UniqueConstraint("name"),
    sqlite_autoincrement=True,  # an id is never used twice, as PostgreSQL's sequences see to
)
"""`direction` is that of the only objective; NULL of a study with several, or none.

`revision` goes up by one with every commit to the study.

`alive_at` is when a driver of it last wrote or renewed its lease, by the clock that it gives its
attempts their times with."""

trials = sa.Table(
    "trials",
    metadata,
    _of_a_study("trials", is_key=True),
    *columns_of("trials", Trial, key=("number",)),
    _cell("trials", "revision", int, big=True, nullable=False),
    _cell("trials", "violation", float, nullable=False, server_default="0"),
    _cell("trials", "standing", float),
    sa.Index(None, "study_id", "revision"),
    sa.Index(None, "study_id", "state"),
)
"""`revision` is the study's at the last commit that touched the trial, its attempts or its reports.
`violation` and `standing` are what trials are ranked by (`hpsearch.search.ranking.selection`),
written with each trial; `standing` is NULL of one that cannot be ranked."""

RANKED = trials.c.standing.is_not(None)
"""True of the trials that can be ranked, which alone are in the index of their order."""
_partial_index(RANKED, trials.c.study_id, trials.c.violation, trials.c.standing)


def special(of: sa.FromClause = trials) -> Condition:
    """True of repeats, tests of changed code, the default settings and configurations that were
    asked for: these are few and have an index of their own."""
    return of.c.role != sa.literal_column(f"'{Role.SEARCH}'")


_partial_index(special(), trials.c.study_id, trials.c.role)

attempts = sa.Table(
    "attempts",
    metadata,
    *_of_a_trial("attempts", columns_of("attempts", Attempt, key=("trial", "number")), is_key=True),
)

LIVE_ATTEMPT = attempts.c.outcome.is_(None)
"""True of the attempts that run, which are few and have an index of their own."""
_partial_index(LIVE_ATTEMPT, attempts.c.study_id, attempts.c.trial)

reports = sa.Table(
    "reports",
    metadata,
    *_of_a_trial(
        "reports", columns_of("reports", ReportRecord, key=("trial", "resource")), is_key=True
    ),
)

decisions = sa.Table(
    "decisions",
    metadata,
    _cell("decisions", "id", int, primary_key=True),
    *_of_a_trial("decisions", columns_of("decisions", Decision), is_key=False),
    sa.Index(None, "study_id", "trial"),
)

environments = sa.Table(
    "environments",
    metadata,
    _cell("environments", "id", int, primary_key=True),
    _of_a_study("environments", is_key=False),
    *columns_of("environments", Environment),
    sa.Index(None, "study_id"),
)

versions = sa.Table(
    "versions",
    metadata,
    _of_a_study("versions", is_key=True),
    *columns_of("versions", Version, key=("number",)),
)

revisions = sa.Table(
    "revisions",
    metadata,
    _of_a_study("revisions", is_key=True),
    *columns_of("revisions", Revision, key=("number",)),
)

requests = sa.Table(
    "requests",
    metadata,
    _cell("requests", "id", int, primary_key=True),
    _of_a_study("requests", is_key=False),
    *(column for column in columns_of("requests", Request) if column.name != "id"),
    sa.Index(None, "study_id"),
)
"""The requests of people and programs to a study's driver."""

heartbeats = sa.Table(
    "heartbeats",
    metadata,
    *_of_a_trial(
        "heartbeats",
        [
            _cell("heartbeats", "trial", int, primary_key=True, autoincrement=False),
            _cell("heartbeats", "attempt", int, primary_key=True, autoincrement=False),
            _cell("heartbeats", "owner", str, nullable=False),
            _cell("heartbeats", "renewed", float, nullable=False),
            _cell("heartbeats", "expires", float, nullable=False),
        ],
        is_key=True,
    ),
)
"""A row for each running attempt that was asked for (`hpsearch.store.heartbeats`); no
record has it.

`renewed` is when that process last gave a sign of life, and it counts as dead from `expires` on:
both by the database's clock."""

STUDY, TRIAL, ATTEMPT, REPORT = studies.c, trials.c, attempts.c, reports.c
DECISION, ENVIRONMENT, REQUEST = decisions.c, environments.c, requests.c
VERSIONED, REVISED = versions.c, revisions.c
"""The columns of the tables."""
