"""Leases and the fence, which say who may write to a study.

Every write to a study begins with an UPDATE that raises its `revision`. The conditions of that
UPDATE are the fence: it finds no row where another driver has taken the study over, and then
nothing is written. It also locks the study's row, so writers of one study take turns.

Leases end by the clock of the database: the server's or, for a file, the writing machine's. No
other clock decides who may write. All functions work in a transaction of the caller's.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from hpsearch.domain.facts import RequestKind
from hpsearch.errors import LeaseLost, StudyHeld, StudyNotFound
from hpsearch.store.owners import shown
from hpsearch.store.schema import REQUEST, STUDY, requests, studies


class Now(FunctionElement[float]):
    """The time in seconds since the epoch, by the database's own clock."""

    type = sa.Double()
    inherit_cache = True


@compiles(Now, "postgresql")
def _by_the_server(*_: Any, **__: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS double precision)"


@compiles(Now, "sqlite")
def _by_this_machine(*_: Any, **__: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a study, until `expires`; each new one has a higher epoch."""

    study_id: int
    owner: str
    epoch: int
    since: float
    expires: float
    live: bool  # true if it kept others out when it was read
    alive_at: float | None
    """When a driver of the study was last known to be alive, at that time: by that driver's clock,
    not the database's. None if none ever was."""


class Entry(NamedTuple):
    """The facts that a writer learns at the fence."""

    stop_requested: bool
    revision: int  # the study's revision, raised by this write
    has_requests: bool  # true if requests wait for the study's driver


_OF_STUDY = STUDY.id == sa.bindparam("of_study")
_MINE = (STUDY.lease_epoch == sa.bindparam("epoch")) & (STUDY.lease_owner == sa.bindparam("owner"))
_FREE = STUDY.lease_owner.is_(None) | (STUDY.lease_expires <= Now())
# Not of `STUDY.id`: where an update returns it, columns are named without their tables, and
# `id` would be the request's own.
_HAS_REQUESTS = sa.exists().where(
    REQUEST.study_id == sa.bindparam("of_study"), REQUEST.handled.is_(None)
)
_ENTRY = (STUDY.stop_requested, STUDY.revision, _HAS_REQUESTS)

LIVE = sa.func.coalesce(
    STUDY.lease_owner.is_not(None) & (STUDY.lease_expires > Now()), False
).label("live")
"""True if somebody's lease on a study keeps others out."""

_LEASE = (
    STUDY.id,
    STUDY.lease_owner,
    STUDY.lease_epoch,
    STUDY.lease_since,
    STUDY.lease_expires,
    LIVE,
    STUDY.alive_at,
)
"""The fields of a `Lease`, in order."""

_UNTIL = Now() + sa.bindparam("ttl_s", type_=sa.Double)
_ALIVE_AT = sa.bindparam("alive_at", type_=sa.Double)
_RENEW = (
    sa.update(studies)
    .where(_OF_STUDY, _MINE)
    .values(lease_expires=sa.func.coalesce(_UNTIL, STUDY.lease_expires))
    .values(alive_at=sa.func.coalesce(_ALIVE_AT, STUDY.alive_at))
    .returning(*_ENTRY)
)
_ENTER = _RENEW.values(revision=STUDY.revision + 1)
_ENTER_FREE = (
    sa.update(studies)
    .where(_OF_STUDY, _FREE)
    # A driver whose lease has run out must not come back and overwrite this.
    .values(revision=STUDY.revision + 1, lease_owner=None)
    .returning(*_ENTRY)
)
_ACQUIRE = (
    sa.update(studies)
    .where(_OF_STUDY, _FREE)
    .values(
        lease_owner=sa.bindparam("owner"),
        lease_epoch=STUDY.lease_epoch + 1,
        stop_requested=False,  # one made earlier was meant for the owner before
        lease_since=Now(),
        lease_expires=_UNTIL,
    )
    .returning(*_LEASE)
)
FORGOTTEN = "the driver that was to stop had ended"
_FORGET = (
    sa.update(requests)
    .where(
        REQUEST.study_id == sa.bindparam("of_study"),
        REQUEST.kind == RequestKind.INTERRUPT.value,
        REQUEST.handled.is_(None),
    )
    .values(handled=Now(), refused=FORGOTTEN)
)
"""As `stop_requested`: it was meant for the owner before."""
_RELEASE = sa.update(studies).where(_OF_STUDY, _MINE).values(lease_owner=None, lease_expires=Now())
_PRESENT = sa.select(STUDY.name, *_LEASE)


def acquire(connection: sa.Connection, study_id: int, owner: str, ttl_s: float) -> Lease:
    """Give a study to an owner, unless a live lease keeps it. The owner's own lease keeps it too:
    the owner may be driving the study already."""
    which = {"of_study": study_id, "owner": owner, "ttl_s": ttl_s}
    row = connection.execute(_ACQUIRE, which).one_or_none()
    if row is None:
        raise _held(connection, study_id)
    connection.execute(_FORGET, {"of_study": study_id})
    return Lease(*row)


def enter(
    connection: sa.Connection,
    lease: Lease,
    ttl_s: float | None,
    alive_at: float | None,
    *,
    writes: bool = True,
) -> Entry:
    """Pass the fence with a lease, renewed by `ttl_s`. The revision stays unless it writes."""
    which = {"of_study": lease.study_id, "owner": lease.owner, "epoch": lease.epoch}
    values = {**which, "ttl_s": ttl_s, "alive_at": alive_at}
    row = connection.execute(_ENTER if writes else _RENEW, values).one_or_none()
    if row is not None:
        return Entry(*row)
    present = _present(connection, lease.study_id)
    if present is None:
        raise gone(lease.study_id)
    name = present["name"]
    owner = present["lease_owner"]
    why = f"{shown(owner)} took it" if owner else "its lease ended"
    raise LeaseLost(
        f"{shown(lease.owner)} does not own the study {name} any more: {why}",
        f"nothing was written; see where it stands: hpsearch status {name}",
    )


def enter_free(connection: sa.Connection, study_id: int) -> Entry:
    """Pass the fence to write without a lease, to a study that nobody holds."""
    row = connection.execute(_ENTER_FREE, {"of_study": study_id}).one_or_none()
    if row is None:
        raise _held(connection, study_id)
    return Entry(*row)


def release(connection: sa.Connection, lease: Lease) -> None:
    """End a lease; `lease_expires` keeps the time. Does nothing if it was lost already."""
    connection.execute(
        _RELEASE, {"of_study": lease.study_id, "owner": lease.owner, "epoch": lease.epoch}
    )


def holder(connection: sa.Connection, name: str) -> Lease | None:
    """The lease on the study of a name, live or expired; None if it was given back."""
    row = connection.execute(sa.select(*_LEASE).where(STUDY.name == name)).one_or_none()
    if row is None or row.lease_owner is None:
        return None
    return Lease(*row)


def gone(study_id: int) -> StudyNotFound:
    return StudyNotFound(
        f"there is no study with the id {study_id} any more",
        "it was deleted; `hpsearch ls` lists all",
    )


def _held(connection: sa.Connection, study_id: int) -> StudyHeld | StudyNotFound:
    present = _present(connection, study_id)
    if present is None:
        return gone(study_id)
    name = present["name"]
    owner = shown(present["lease_owner"])
    since = _clock_time(present["lease_since"])
    expires = _clock_time(present["lease_expires"])
    return StudyHeld(
        f"the study {name} is driven by {owner} since {since}",
        f"stop it first: hpsearch stop {name}; if it died, its lease ends at {expires}",
    )


def _present(connection: sa.Connection, study_id: int) -> sa.RowMapping | None:
    found = connection.execute(_PRESENT.where(STUDY.id == study_id))
    return found.mappings().one_or_none()


def _clock_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
