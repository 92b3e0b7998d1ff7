"""Who owns a study: leases, for as long as somebody drives or changes it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

from hpsearch.domain.records import StudyRecord
from hpsearch.errors import StoreUnreachable, StudyHeld
from hpsearch.store import owners
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store

log = logging.getLogger("hpsearch")


@contextmanager
def owning(store: Store, record: StudyRecord, lease_s: float) -> Iterator[Lease]:
    """Own a study while the block lasts.

    Where its last owner was a process of this machine that has ended, its lease is not waited for.

    Args:
        store: The database.
        record: The study.
        lease_s: How long the lease lasts if nobody renews it.

    Raises:
        StudyHeld: Another driver owns it.
    """
    before = store.holder(record.name)
    if before is not None and owners.is_dead(before.owner):
        store.release(before)
    owner = owners.this_process()
    lease = store.acquire(record.id, owner, lease_s)
    try:
        yield lease
    except BaseException:
        # It may have ended the block in the middle of a transaction, as a second Ctrl-C does. A
        # new connection is not in one.
        store.close()
        raise
    finally:
        _give_back(store, lease, record.name)


def _give_back(store: Store, lease: Lease, name: str) -> None:
    try:
        store.release(lease)
    except StoreUnreachable as error:
        log.warning("the lease on %s was not given back, and expires: %s", name, error.message)


def refuse_if_held(store: Store, name: str) -> None:
    """Refuse a study that another driver owns, before a cluster is started for it.

    Raises:
        StudyHeld: Another driver owns it.
    """
    holder = store.holder(name)
    if holder is None or not holder.live or owners.is_dead(holder.owner):
        return
    since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
    raise StudyHeld(
        f"study {name} is driven by {owners.shown(holder.owner)} since {since}",
        f"watch it with: hpsearch status {name} - stop it with: hpsearch stop {name}",
    )
