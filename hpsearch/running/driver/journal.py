"""The transactions of a driver, and its patience with a database that does not answer.

Each transaction is fenced by the driver's lease, and named by the study revision that it makes.
If one succeeded but its answer was lost, trying it again writes nothing twice.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hpsearch.domain.history import Changes
from hpsearch.domain.records import Request, StudyRecord
from hpsearch.errors import StoreUnreachable
from hpsearch.store.leases import Entry, Lease
from hpsearch.store.store import Store
from hpsearch.study_file.models import Resources

LEASE_TTL_S = 45.0  # the seconds that a lease lasts which is not renewed
RENEW_S = 5.0  # while nothing else is written, a lease is renewed at least this often
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 10.0
"""Pauses between two attempts to reach the database double from the first to the longest."""

log = logging.getLogger("hpsearch")

T = TypeVar("T")


@dataclass
class Journal:
    """The transactions of one driver, which has the lease on its study."""

    store: Store
    study: StudyRecord
    lease: Lease
    resources: Resources
    clock: Callable[[], float]  # gives seconds since the epoch
    revision: int = 0  # that of the study after the last commit
    written: float = 0.0  # when something was last written; the time as of which it was decided

    def begin(self) -> None:
        """Read the study's revision. Raises StoreUnreachable as `write`."""
        self.revision = self._patiently(lambda: self.store.revision(self.study.id))

    @property
    def due(self) -> float:
        """The time at which the lease must be renewed, if nothing is written until then."""
        return self.written + min(RENEW_S, self.resources.lease_s / 4)

    def write(self, changes: Changes, now: float) -> Entry:
        """Commit the changes of a tick, as decided at `now`, in one transaction; without changes,
        renew the lease. Returns the state at the fence, such as a stop that was requested.

        Nothing was written where it raises LeaseLost, as another driver has taken the study over;
        Unreachable, as the database is at an older state than this driver has written; or
        StoreUnreachable, as it did not answer within the driver's patience."""
        if changes:
            entry = self._patiently(lambda: self._commit(changes))
        else:
            entry = self._patiently(self._renew)
        self.written = now
        return entry

    def requests(self) -> list[Request]:
        """The unanswered requests to the study. Raises StoreUnreachable as `write`."""
        return self._patiently(lambda: self.store.waiting(self.study.id))

    def _commit(self, changes: Changes) -> Entry:
        revision, lease_s = self.revision + 1, self.resources.lease_s
        entry = self.store.commit(
            self.study.id, changes, self.lease, lease_s, self.clock(), revision
        )
        self.revision = revision
        return entry

    def _renew(self) -> Entry:
        return self.store.renew(self.lease, self.resources.lease_s, self.clock())

    def _patiently(self, call: Callable[[], T]) -> T:
        patience_s = self.resources.database_patience_s
        return patiently(call, patience_s, self.clock, self.study.name)


def patiently(
    call: Callable[[], T], patience_s: float, clock: Callable[[], float], study: str
) -> T:
    """Call the database, again and again while it does not answer. Trials continue meanwhile. A
    pause counts as long as it was meant to be, even if the process was stopped in it. Raises
    StoreUnreachable, which says how the study is resumed, after `patience_s` seconds."""
    waited_s = 0.0
    pause_s = FIRST_PAUSE_S
    while True:
        began = clock()
        try:
            answer = call()
        except StoreUnreachable as error:
            waited_s += clock() - began
            if waited_s > patience_s:
                saved = "everything up to the last report is saved; when it answers again"
                hint = f"{saved}: hpsearch resume {study}"
                what = f"{error.message} - waited {waited_s:.0f} s for it"
                raise type(error)(what, hint) from error
            what = "the database does not answer, trying again in"
            log.warning("%s %.1f s: %s", what, pause_s, error.message)
        else:
            if waited_s:
                log.warning("the database answers again, after %.1f s", waited_s)
            return answer
        time.sleep(pause_s)
        waited_s += pause_s
        pause_s = min(LONGEST_PAUSE_S, pause_s * 2)
