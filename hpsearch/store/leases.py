"""Leases and the fence: who may write to a study.

Every write to a study begins with an UPDATE that raises its `revision`. The conditions of that UPDATE are the fence: it
finds no row where another driver has taken the study over, and then nothing is written. It also locks the study's row,
so writers of one study take turns.

All functions here work in a transaction of the caller's.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection, RowMapping, Update, bindparam, func, select, text, update

from hpsearch.errors import LeaseLost, StudyHeld, StudyNotFound
from hpsearch.store.schema import studies


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write to a study, until `expires`; each new one of a study has a higher epoch."""

    study_id: int
    owner: str
    epoch: int
    since: float
    expires: float

    def live(self, now: float) -> bool:
        """Whether it still keeps others out."""
        return now < self.expires


class Entry(NamedTuple):
    """What a writer learns at the fence."""

    stop_requested: bool
    revision: int
    """The study's revision, raised by this write."""


_OF_STUDY = studies.c.id == bindparam("of_study")
_MINE = (studies.c.lease_epoch == bindparam("epoch")) & (studies.c.lease_owner == bindparam("owner"))
_FREE = studies.c.lease_owner.is_(None) | (studies.c.lease_expires <= bindparam("now"))
_ENTRY = (studies.c.stop_requested, studies.c.revision)

_RENEW = (
    update(studies)
    .where(_OF_STUDY, _MINE)
    .values(lease_expires=func.coalesce(bindparam("expires"), studies.c.lease_expires))
    .returning(*_ENTRY)
)
_ENTER = _RENEW.values(revision=studies.c.revision + 1)
_ENTER_FREE = (
    update(studies)
    .where(_OF_STUDY, _FREE)
    # A driver whose lease has run out must not come back and overwrite this.
    .values(revision=studies.c.revision + 1, lease_owner=None)
    .returning(*_ENTRY)
)
_ACQUIRE = (
    update(studies)
    .where(_OF_STUDY, _FREE | (studies.c.lease_owner == bindparam("owner")))
    .values(
        lease_owner=bindparam("owner"),
        lease_epoch=studies.c.lease_epoch + 1,
        lease_since=bindparam("now"),
        lease_expires=bindparam("expires"),
    )
    .returning(studies.c.lease_epoch)
)
_RELEASE = update(studies).where(_OF_STUDY, _MINE).values(lease_owner=None, lease_expires=bindparam("now"))
_PRESENT = select(studies.c.id, studies.c.name, *(c for c in studies.c if c.name.startswith("lease_")))

_FORMER = select(studies.c.lease_owner).where(_OF_STUDY, studies.c.lease_expires <= bindparam("now"))
_TERMINATE = text(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE starts_with(application_name, :name) AND usename = current_user AND pid <> pg_backend_pid()"
)


def session_name(owner: str) -> str:
    """By what an owner's session is known in a PostgreSQL server; its first 25 characters tell it from all others."""
    return f"hpsearch {hashlib.sha256(owner.encode()).hexdigest()[:16]} {owner}"


def end_former(connection: Connection, study_id: int, now: float) -> None:
    """End the session of an owner whose lease has run out.

    One that is frozen in the middle of a transaction would keep the study's row from its successor for ever: not even
    `idle_in_transaction_session_timeout` ends it where the server still waits for the rest of a batch of statements.
    SQLite knows no sessions; there a transaction ends with its process.
    """
    if connection.dialect.name != "postgresql":
        return
    owner = connection.execute(_FORMER, {"of_study": study_id, "now": now}).scalar_one_or_none()
    if owner is not None:
        connection.execute(_TERMINATE, {"name": session_name(owner)[:25]})


def acquire(connection: Connection, study_id: int, owner: str, now: float, ttl_s: float) -> Lease:
    """Give a study to an owner, where the lease of another has not kept it."""
    which = {"of_study": study_id, "owner": owner, "now": now, "expires": now + ttl_s}
    epoch = connection.execute(_ACQUIRE, which).scalar_one_or_none()
    if epoch is None:
        raise _held(connection, study_id)
    return Lease(study_id=study_id, owner=owner, epoch=epoch, since=now, expires=now + ttl_s)


def renew(connection: Connection, lease: Lease, expires: float) -> Entry:
    """Pass the fence only to move the lease's end; the revision stays."""
    return _pass(connection, _RENEW, lease, expires)


def enter(connection: Connection, lease: Lease, expires: float | None) -> Entry:
    """Pass the fence to write, with a lease; its end moves where one is given."""
    return _pass(connection, _ENTER, lease, expires)


def enter_free(connection: Connection, study_id: int, now: float) -> Entry:
    """Pass the fence to write without a lease, to a study that nobody holds at `now`; a lease that ran out is void."""
    row = connection.execute(_ENTER_FREE, {"of_study": study_id, "now": now}).one_or_none()
    if row is None:
        raise _held(connection, study_id)
    return Entry(*row)


def release(connection: Connection, lease: Lease, now: float) -> None:
    """End a lease; `lease_expires` keeps when. Does nothing where it was lost already."""
    which = {"of_study": lease.study_id, "owner": lease.owner, "epoch": lease.epoch, "now": now}
    connection.execute(_RELEASE, which)


def holder(connection: Connection, name: str) -> Lease | None:
    """The lease on the study of a name, live or expired; None where it was given back."""
    row = connection.execute(_PRESENT.where(studies.c.name == name)).mappings().one_or_none()
    if row is None or row["lease_owner"] is None:
        return None
    return Lease(row["id"], row["lease_owner"], row["lease_epoch"], row["lease_since"], row["lease_expires"])


def gone(study_id: int) -> StudyNotFound:
    """What to raise where a study that was there is not there any more."""
    return StudyNotFound(
        f"there is no study with the id {study_id} any more", "it was deleted; `hpsearch ls` lists all"
    )


def _pass(connection: Connection, statement: Update, lease: Lease, expires: float | None) -> Entry:
    which = {"of_study": lease.study_id, "owner": lease.owner, "epoch": lease.epoch, "expires": expires}
    row = connection.execute(statement, which).one_or_none()
    if row is not None:
        return Entry(*row)
    present = _present(connection, lease.study_id)
    if present is None:
        raise gone(lease.study_id)
    name, owner = present["name"], present["lease_owner"]
    raise LeaseLost(
        f"{lease.owner} does not own the study {name} any more: {f'{owner} took it' if owner else 'its lease ended'}",
        f"nothing was written; see where it stands: hpsearch status {name}",
    )


def _held(connection: Connection, study_id: int) -> StudyHeld | StudyNotFound:
    present = _present(connection, study_id)
    if present is None:
        return gone(study_id)
    name = present["name"]
    since, expires = (_clock_time(present[key]) for key in ("lease_since", "lease_expires"))
    return StudyHeld(
        f"the study {name} is driven by {present['lease_owner']} since {since}",
        f"stop it first: hpsearch stop {name}; if it died, its lease ends at {expires}",
    )


def _present(connection: Connection, study_id: int) -> RowMapping | None:
    return connection.execute(_PRESENT.where(studies.c.id == study_id)).mappings().one_or_none()


def _clock_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
