"""The ownership of a study: leases, for as long as somebody drives or changes it."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy import Connection

from hpsearch.domain.records import StudyRecord
from hpsearch.errors import StoreUnreachable, StudyHeld
from hpsearch.store import heartbeats, owners
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store

log = logging.getLogger("hpsearch")


@contextmanager
def owning(store: Store, record: StudyRecord, lease_s: float) -> Iterator[Lease]:
    """Own a study while the block lasts, by a lease that lasts `lease_s` unless it is renewed. The
    lease of a process of this machine that has ended is void. Raises StudyHeld if another driver
    owns the study, or processes that have asked for its trials are alive."""
    release_if_dead(store, record.name)
    owner = owners.this_process()
    lease = store.acquire(record.id, owner, lease_s)
    try:
        yield _after_askers(store, lease, record.name)
    except BaseException:
        # It may have ended the block in the middle of a transaction, as a second Ctrl-C does. A
        # new connection is not in one.
        store.close()
        raise
    finally:
        _give_back(store, lease, record.name)


def release_if_dead(store: Store, name: str) -> None:
    """End the lease of a process of this machine that has ended."""
    holder = store.holder(name)
    if holder is not None and owners.is_dead(holder.owner):
        store.release(holder)


def _after_askers(store: Store, lease: Lease, name: str) -> Lease:
    """The lease, once no asking process has a trial any more. Trials of dead processes are charged
    until their last sign of life."""
    with store.writing() as connection:
        _refuse_asked(connection, lease.study_id, name)
        left = heartbeats.read(connection, lease.study_id)
        heartbeats.end(connection, lease.study_id, [beat.key for beat in left])
    heard = [beat.renewed for beat in left]
    if not heard:
        return lease
    return replace(lease, alive_at=max(lease.alive_at or 0.0, *heard))


def _refuse_asked(connection: Connection, study_id: int, name: str) -> None:
    asking = heartbeats.askers(connection, study_id).get(study_id)
    if asking:
        raise StudyHeld(
            f"study {name} is asked by {heartbeats.named(asking)}, which trains its trials",
            f"wait until they are told, or stop the study first: hpsearch stop {name}",
        )


def _give_back(store: Store, lease: Lease, name: str) -> None:
    try:
        store.release(lease)
    except StoreUnreachable as error:
        log.warning("the lease on %s was not given back, and expires: %s", name, error.message)


def refuse_if_held(store: Store, name: str) -> None:
    """Raise StudyHeld, before a cluster is started, if others drive or ask a study."""
    study_id = store.find_study(name).id
    with store.reading() as connection:
        _refuse_asked(connection, study_id, name)
    holder = store.holder(name)
    if holder is None or not holder.live or owners.is_dead(holder.owner):
        return
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
    raise StudyHeld(
        f"study {name} is driven by {owners.shown(holder.owner)} since {since}",
        f"watch it with: hpsearch status {name} - stop it with: hpsearch stop {name}",
    )
