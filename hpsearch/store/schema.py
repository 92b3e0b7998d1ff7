"""The tables: one for each record of `hpsearch.domain.records`, whose fields are its columns.

Meant to be queried by hand too:
`SELECT number, value, params FROM trials WHERE study_id = 1 ORDER BY value`. Times are seconds
since the epoch (UTC), resources are in the unit of the study's trial budget, enums are their values
as text.

A change here needs a new `VERSION` and a migration (`hpsearch.store.version.MIGRATIONS`); a test
holds the two together.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Collection
from dataclasses import Field, fields
from types import NoneType
from typing import Any, get_args, get_type_hints

from sqlalchemy import (
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    MetaData,
    Table,
    UniqueConstraint,
)

from hpsearch.domain.records import (
    Attempt,
    Decision,
    Environment,
    ReportRecord,
    Request,
    StudyRecord,
    Trial,
)
from hpsearch.store import shapes
from hpsearch.store.cells import (
    LATEST,
    Big,
    Cell,
    Flag,
    Json,
    Member,
    Number,
    StudyFile,
    Whole,
    Words,
)

VERSION = "hpsearch_0009"
"""The schema version that this program reads and writes. All of ours begin so."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


MOMENT = Number(-LATEST, LATEST)
"""The type of a time, in seconds since the epoch, by a clock that may be off."""
_FINITE = Number(-sys.float_info.max, sys.float_info.max)
_NUMBERS: dict[str, Number] = {
    **dict.fromkeys(("created", "started", "ended", "handled"), MOMENT),
    "value": Number(),
}
"""By name, the types of columns of numbers that are times, or may be infinite."""


def columns_of(table: str, record: type, *, key: Collection[str] = ()) -> list[Column[Any]]:
    """The columns of a record's fields, in their order; those named in `key` are part of the
    primary key."""
    types = get_type_hints(record)
    return [
        _column(table, field, types[field.name], is_key=field.name in key)
        for field in fields(record)
        if "elsewhere" not in field.metadata
    ]


def _column(table: str, field: Field[Any], type_: Any, *, is_key: bool) -> Column[Any]:
    stated = _without_none(type_)
    name = column_name(field)
    return Column(
        name,
        _sql_type(table, name, stated, big="big" in field.metadata),
        primary_key=is_key,
        autoincrement=False if is_key else "auto",
        nullable=stated is not type_,
    )


def column_name(field: Field[Any]) -> str:
    """The name of a field's column: the field's own, unless its metadata state another."""
    stated: str = field.metadata.get("column", field.name)
    return stated


def _sql_type(table: str, column: str, type_: Any, *, big: bool) -> Cell:
    if isinstance(type_, type) and issubclass(type_, enum.StrEnum):
        return Member(type_)
    if type_ is str:
        return StudyFile() if column == "spec" else Words()
    if type_ is int:
        return Big() if big else Whole()
    if type_ is float:
        return _NUMBERS.get(column, _FINITE)
    return Json(shapes.shape_of(table, column, type_))


def _without_none(type_: Any) -> Any:
    """A type without the None that it may be instead."""
    named = get_args(type_)
    members = [member for member in named if member is not NoneType]
    is_optional = NoneType in named and len(members) == 1
    return members[0] if is_optional else type_


def _of_a_study(*, is_key: bool) -> Column[Any]:
    return Column(
        "study_id",
        Whole,
        ForeignKey("studies.id", ondelete="CASCADE"),
        primary_key=is_key,
        autoincrement=False if is_key else "auto",
        nullable=False,
    )


def _of_a_trial(columns: list[Column[Any]], *, is_key: bool) -> list[Any]:
    return [
        Column("study_id", Whole, primary_key=is_key, autoincrement=False, nullable=False),
        *columns,
        ForeignKeyConstraint(
            ["study_id", "trial"], ["trials.study_id", "trials.number"], ondelete="CASCADE"
        ),
    ]


studies = Table(
    "studies",
    metadata,
    Column("id", Whole, primary_key=True),
    *(column for column in columns_of("studies", StudyRecord) if column.name != "id"),
    # Not part of the record: who may write it, and what readers and drivers watch.
    Column("lease_owner", Words),
    Column("lease_epoch", Whole, nullable=False, server_default="0"),
    Column("lease_since", MOMENT),
    Column("lease_expires", MOMENT),
    Column("stop_requested", Flag, nullable=False, server_default="0"),
    Column("revision", Big, nullable=False, server_default="0"),
    Column("alive_at", MOMENT),
    UniqueConstraint("name"),
    sqlite_autoincrement=True,  # an id is never used twice, as PostgreSQL's sequences see to
)
"""`revision` goes up by one with every commit to the study.

`alive_at` is when a driver of it last wrote or renewed its lease, by the clock that it gives its
attempts their times with."""

trials = Table(
    "trials",
    metadata,
    _of_a_study(is_key=True),
    *columns_of("trials", Trial, key=("number",)),
    Column("revision", Big, nullable=False),
    Index(None, "study_id", "revision"),
    Index(None, "study_id", "state"),
)
"""`revision` is the study's at the last commit that touched the trial, its attempts or its
reports."""

attempts = Table(
    "attempts",
    metadata,
    *_of_a_trial(columns_of("attempts", Attempt, key=("trial", "number")), is_key=True),
)

reports = Table(
    "reports",
    metadata,
    *_of_a_trial(columns_of("reports", ReportRecord, key=("trial", "resource")), is_key=True),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Whole, primary_key=True),
    *_of_a_trial(columns_of("decisions", Decision), is_key=False),
    Index(None, "study_id", "trial"),
)

environments = Table(
    "environments",
    metadata,
    Column("id", Whole, primary_key=True),
    _of_a_study(is_key=False),
    *columns_of("environments", Environment),
    Index(None, "study_id"),
)

requests = Table(
    "requests",
    metadata,
    Column("id", Whole, primary_key=True),
    _of_a_study(is_key=False),
    *(column for column in columns_of("requests", Request) if column.name != "id"),
    Index(None, "study_id"),
)
"""The requests of people and programs to a study's driver."""

heartbeats = Table(
    "heartbeats",
    metadata,
    *_of_a_trial(
        [
            Column("trial", Whole, primary_key=True, autoincrement=False),
            Column("attempt", Whole, primary_key=True, autoincrement=False),
            Column("owner", Words, nullable=False),
            Column("heard", MOMENT, nullable=False),
            Column("expires", MOMENT, nullable=False),
        ],
        is_key=True,
    ),
)
"""A row for each running attempt that was asked for (`hpsearch.store.heartbeats`); no
record has it.

`heard` is when that process last gave a sign of life, and it counts as dead from `expires` on: both
by the database's clock."""
