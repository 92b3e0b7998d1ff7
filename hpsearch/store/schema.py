"""The tables: one for each record of `hpsearch.records`, with the same names and the same columns.

Meant to be queried by hand too: `SELECT number, value, params FROM trials WHERE study_id = 1 ORDER BY value`. Times are
seconds since the epoch (UTC), resources are in the unit of the study's trial budget, enums are their values as text.

A change here needs a migration beside it (`migrations/versions`) and a new `VERSION`; a test holds the two together.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    TypeDecorator,
)

from hpsearch.store import codec, shapes

VERSION = "hpsearch_0001"
"""The schema version that this program reads and writes: the newest migration's revision. All of ours begin so."""

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(referred_table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


class Json(TypeDecorator[Any]):
    """JSON text on both databases, written and read by `hpsearch.store.codec`, of a shape of `hpsearch.store.shapes`.

    On PostgreSQL it is `json` and not `jsonb`: the latter sorts an object's keys and turns 1e+23 into a whole number
    that is not the same one.
    """

    impl = JSON
    cache_ok = True

    def __init__(self, shape: shapes.Shape) -> None:
        super().__init__(none_as_null=True)
        self.shape = shape

    def process_result_value(self, value: Any, dialect: Dialect) -> Any:
        if value is not None and (found := self.shape(value)) is not None:
            raise codec.Damaged(str(found))
        return value


class Words(TypeDecorator[str]):
    """Text that any worker, traceback or person may have written.

    PostgreSQL takes no NUL characters and neither database takes half a surrogate pair; they are written as the
    escapes a Python literal would have.
    """

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None or (value.isascii() and "\0" not in value):
            return value
        return value.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode()

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:
        return value


def _of_a_trial(*columns: Column[Any], primary_key: bool) -> list[Any]:
    """The columns that name a trial, and what ties a row to it."""
    return [
        Column("study_id", Integer, primary_key=primary_key, autoincrement=False, nullable=False),
        Column("trial", Integer, primary_key=primary_key, autoincrement=False, nullable=False),
        ForeignKeyConstraint(["study_id", "trial"], ["trials.study_id", "trials.number"], ondelete="CASCADE"),
        *columns,
    ]


studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("spec", Words, nullable=False),
    Column("directions", Json(shapes.DIRECTIONS), nullable=False),
    Column("state", Text, nullable=False),
    Column("reason", Words),
    Column("created", Double, nullable=False),
    Column("ended", Double),
    Column("active_seconds", Double, nullable=False),
    Column("user_attrs", Json(shapes.STUDY_USER_ATTRS), nullable=False),
    Column("system_attrs", Json(shapes.STUDY_SYSTEM_ATTRS), nullable=False),
    # Not part of the record: who may write it, and what readers and drivers watch.
    Column("lease_owner", Words),
    Column("lease_epoch", Integer, nullable=False, server_default="0"),
    Column("lease_since", Double),
    Column("lease_expires", Double),
    Column("stop_requested", Boolean, nullable=False, server_default="0"),
    Column("revision", BigInteger, nullable=False, server_default="0"),
    sqlite_autoincrement=True,  # an id is never used twice, as PostgreSQL's sequences see to
)
"""`revision` goes up by one with every commit to the study."""

trials = Table(
    "trials",
    metadata,
    Column("study_id", Integer, ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("state", Text, nullable=False),
    Column("params", Json(shapes.PARAMS), nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("value", Double),
    Column("resource", Double, nullable=False),
    Column("rung", Integer),
    Column("error_kind", Text),
    Column("error_text", Words),
    Column("checkpoint", Words),
    Column("gpu_seconds", Double, nullable=False),
    Column("cost", Double),
    Column("speed", Double),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("ended", Double),
    Column("role", Text, nullable=False),
    Column("repeats", Integer),
    Column("objective_values", Json(shapes.VALUES)),  # `values` in the record: a reserved word of SQL
    Column("distributions", Json(shapes.DISTRIBUTIONS), nullable=False),
    Column("user_attrs", Json(shapes.TRIAL_USER_ATTRS), nullable=False),
    Column("system_attrs", Json(shapes.TRIAL_SYSTEM_ATTRS), nullable=False),
    Column("revision", BigInteger, nullable=False),
    Index(None, "study_id", "revision"),
    Index(None, "study_id", "state"),
)
"""`revision` is the study's at the last commit that touched the trial, its attempts or its reports."""

attempts = Table(
    "attempts",
    metadata,
    *_of_a_trial(Column("number", Integer, primary_key=True, autoincrement=False), primary_key=True),
    Column("worker", Words, nullable=False),
    Column("started", Double, nullable=False),
    Column("start_resource", Double, nullable=False),
    Column("reserved_gpu_seconds", Double, nullable=False),
    Column("node", Words),
    Column("device", Words),
    Column("ended", Double),
    Column("outcome", Text),
    Column("gpu_seconds", Double, nullable=False),
    Column("note", Words),
)

reports = Table(
    "reports",
    metadata,
    *_of_a_trial(Column("resource", Double, primary_key=True, autoincrement=False), primary_key=True),
    Column("value", Double),
    Column("metrics", Json(shapes.METRICS), nullable=False),
    Column("attempt", Integer),
    Column("step", BigInteger),
    Column("elapsed", Double),
    Column("created", Double, nullable=False),
)

decisions = Table(
    "decisions",
    metadata,
    Column("id", Integer, primary_key=True),
    *_of_a_trial(primary_key=False),
    Column("kind", Text, nullable=False),
    Column("why", Words, nullable=False),
    Column("resource", Double, nullable=False),
    Column("against", Json(shapes.AGAINST), nullable=False),
    Column("created", Double, nullable=False),
    Index(None, "study_id", "trial"),
)

environments = Table(
    "environments",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created", Double, nullable=False),
    Column("revision", Words),
    Column("packages", Json(shapes.PACKAGES), nullable=False),
    Column("device", Words, nullable=False),
    Column("data_fingerprint", Words),
)
