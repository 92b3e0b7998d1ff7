"""Heartbeats: which attempts run in processes that ask for trials themselves, and who is alive.

A driver owns a study for as long as it drives it. Processes that ask take turns instead, each for
one transaction, and in between nobody owns the study. What keeps an attempt to its process is a row
here, which that process renews. All times are by the database's clock.

All functions here work in a transaction of the caller's.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, Double, bindparam, delete, insert, select, update

from hpsearch.store.leases import Now
from hpsearch.store.owners import is_dead, shown
from hpsearch.store.schema import heartbeats, studies

MOST_NAMED = 3
"""Processes that a message names."""

Key = tuple[int, int]
"""An attempt, as (trial, attempt)."""


class Heartbeat(NamedTuple):
    """The latest sign of life of an attempt."""

    trial: int
    attempt: int
    owner: str
    """The process, as `hpsearch.store.owners` names it."""
    heard: float
    live: bool
    """Whether it had not run out when it was read."""

    @property
    def key(self) -> Key:
        """The attempt."""
        return self.trial, self.attempt


_EACH = select(
    heartbeats.c.trial,
    heartbeats.c.attempt,
    heartbeats.c.owner,
    heartbeats.c.heard,
    heartbeats.c.expires,
    Now().label("now"),
).order_by(heartbeats.c.trial)
# Times are compared here and not in SQL, where a damaged one would count as later than any other.
_ASKERS = select(
    heartbeats.c.study_id, heartbeats.c.owner, heartbeats.c.expires, Now().label("now")
).order_by(heartbeats.c.study_id, heartbeats.c.owner)
_UNTIL = Now() + bindparam("ttl_s", type_=Double)
_BEGIN = insert(heartbeats).values(
    study_id=bindparam("of_study"),
    trial=bindparam("of_trial"),
    attempt=bindparam("of_attempt"),
    owner=bindparam("of_owner"),
    heard=Now(),
    expires=_UNTIL,
)
_RENEW = (
    update(heartbeats)
    .where(
        heartbeats.c.study_id == bindparam("of_study"), heartbeats.c.owner == bindparam("of_owner")
    )
    .values(heard=Now(), expires=_UNTIL)
)
_END = delete(heartbeats).where(
    heartbeats.c.study_id == bindparam("of_study"),
    heartbeats.c.trial == bindparam("of_trial"),
    heartbeats.c.attempt == bindparam("of_attempt"),
)
_SEEN = (
    update(studies)
    .where(studies.c.id == bindparam("of_study"))
    .values(alive_at=bindparam("at", type_=Double))
)
_STOPPING = update(studies).where(studies.c.id == bindparam("of_study"))


def read(connection: Connection, study_id: int) -> list[Heartbeat]:
    """The heartbeats of a study, by the number of the trial."""
    of_study = _EACH.where(heartbeats.c.study_id == study_id)
    beats = []
    for trial, attempt, owner, heard, expires, now in connection.execute(of_study):
        beats.append(Heartbeat(trial, attempt, owner, heard, live=expires > now))
    return beats


def askers(connection: Connection, study_id: int | None = None) -> dict[int, list[str]]:
    """The processes that have trials and are alive, by the id of the study.

    Args:
        connection: In a transaction.
        study_id: The study; None for all.
    """
    found = _ASKERS
    if study_id is not None:
        found = found.where(heartbeats.c.study_id == study_id)
    alive: dict[int, list[str]] = {}
    for of_study, owner, expires, now in connection.execute(found):
        known = alive.setdefault(of_study, [])
        if expires > now and owner not in known and not is_dead(owner):
            known.append(owner)
    return {of_study: owners for of_study, owners in alive.items() if owners}


def named(owners: Sequence[str]) -> str:
    """Processes for people: the first of them, and how many more there are."""
    first = ", ".join(shown(owner) for owner in owners[:MOST_NAMED])
    more = len(owners) - MOST_NAMED
    return first if more <= 0 else f"{first} and {more} more"


def moment(connection: Connection, study_id: int) -> tuple[float, float | None]:
    """The time by the database's clock, and the one at which the study was last worked on."""
    clocks = select(Now(), studies.c.alive_at).where(studies.c.id == study_id)
    now, alive_at = connection.execute(clocks).one()
    return float(now), alive_at


def begin(connection: Connection, study_id: int, key: Key, owner: str, ttl_s: float) -> None:
    """An attempt begins in the process `owner`, which counts as dead if it is silent for
    `ttl_s`."""
    trial, attempt = key
    which = {"of_study": study_id, "of_trial": trial, "of_attempt": attempt}
    connection.execute(_BEGIN, {**which, "of_owner": owner, "ttl_s": ttl_s})


def renew(connection: Connection, study_id: int, owner: str, ttl_s: float) -> int:
    """A process is alive, with all its attempts. Returns how many it has."""
    which = {"of_study": study_id, "of_owner": owner, "ttl_s": ttl_s}
    return connection.execute(_RENEW, which).rowcount


def end(connection: Connection, study_id: int, keys: Collection[Key]) -> None:
    """Attempts have ended."""
    ended = []
    for trial, attempt in keys:
        ended.append({"of_study": study_id, "of_trial": trial, "of_attempt": attempt})
    if ended:
        connection.execute(_END, ended)


def seen(connection: Connection, study_id: int, at: float) -> None:
    """The study was worked on at this time."""
    connection.execute(_SEEN, {"of_study": study_id, "at": at})


def forget_stop(connection: Connection, study_id: int) -> None:
    """A stop that was requested is over: whoever comes now was not meant."""
    connection.execute(_STOPPING.values(stop_requested=False), {"of_study": study_id})
