"""Heartbeats of attempts whose processes ask for trials themselves.

A driver owns a study for as long as it drives it. Processes that ask take turns instead, each for
one transaction. A row here keeps an attempt to its process, which renews it. All times are by the
database's clock. All functions work in a transaction of the caller's.
"""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Double, delete, insert, literal, select, update

from hpsearch.store.leases import Now
from hpsearch.store.owners import is_dead, shown
from hpsearch.store.schema import STUDY, Sql, heartbeats, studies
from trials.settings import some

MOST_NAMED = 3  # processes that a message names

Key = tuple[int, int]  # an attempt, as (trial, attempt)


class Heartbeat(NamedTuple):
    """The latest sign of life of an attempt."""

    trial: int
    attempt: int
    owner: str  # the process, as `hpsearch.store.owners` names it
    renewed: float
    live: bool  # true if it had not run out when it was read

    @property
    def key(self) -> Key:
        return self.trial, self.attempt


_CELL = heartbeats.c
_IS_LIVE = (_CELL.expires > Now()).label("live")


def _until(ttl_s: float) -> Sql:
    return Now() + literal(ttl_s, Double)


def read(connection: Connection, study_id: int) -> list[Heartbeat]:
    each = select(_CELL.trial, _CELL.attempt, _CELL.owner, _CELL.renewed, _IS_LIVE)
    of_study = each.where(_CELL.study_id == study_id).order_by(_CELL.trial)
    return [Heartbeat(*row) for row in connection.execute(of_study)]


def askers(connection: Connection, study_id: int | None = None) -> dict[int, list[str]]:
    found = select(_CELL.study_id, _CELL.owner).distinct().where(_IS_LIVE)
    if study_id is not None:
        found = found.where(_CELL.study_id == study_id)
    alive: dict[int, list[str]] = {}
    for of_study, owner in connection.execute(found.order_by(_CELL.study_id, _CELL.owner)):
        if not is_dead(owner):
            alive.setdefault(of_study, []).append(owner)
    return alive


def named(owners: Sequence[str]) -> str:
    """The names of processes for people: the first ones, and a count of the others."""
    return some(map(shown, owners), MOST_NAMED)


def moment(connection: Connection, study_id: int) -> tuple[float, float | None]:
    """The time by the database's clock, and the time at which the study was last worked on."""
    clocks = select(Now(), STUDY.alive_at).where(STUDY.id == study_id)
    now, alive_at = connection.execute(clocks).one()
    return float(now), alive_at


def begin(connection: Connection, study_id: int, key: Key, owner: str, ttl_s: float) -> None:
    """Note that an attempt begins in the process `owner`, dead after `ttl_s` of silence."""
    which = dict(zip(("trial", "attempt"), key, strict=True), study_id=study_id, owner=owner)
    begun = insert(heartbeats).values(**which, renewed=Now(), expires=_until(ttl_s))
    connection.execute(begun)


def renew(connection: Connection, study_id: int, owner: str, ttl_s: float) -> int:
    is_own = (_CELL.study_id == study_id) & (_CELL.owner == owner)
    renewed = update(heartbeats).where(is_own).values(renewed=Now(), expires=_until(ttl_s))
    return connection.execute(renewed).rowcount


def end(connection: Connection, study_id: int, keys: Collection[Key]) -> None:
    for trial, attempt in keys:
        of_attempt = (_CELL.trial == trial) & (_CELL.attempt == attempt)
        connection.execute(delete(heartbeats).where(_CELL.study_id == study_id, of_attempt))


def seen(connection: Connection, study_id: int, at: float, *, forgets_stop: bool) -> None:
    """Note when the study was worked on, and forget a stop that was requested before."""
    values: dict[str, Any] = {"alive_at": at}
    if forgets_stop:
        values["stop_requested"] = False
    connection.execute(update(studies).where(STUDY.id == study_id).values(values))
