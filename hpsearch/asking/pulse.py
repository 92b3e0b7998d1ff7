"""The thread that says that a process is alive, for as long as it has trials."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing

from hpsearch.driver.journal import RENEW_S
from hpsearch.errors import HpsearchError
from hpsearch.store.asked import heartbeats
from hpsearch.store.store import Store

log = logging.getLogger("hpsearch")


class Pulse:
    """Renews the heartbeats of one process on one study.

    It has a connection of its own: the process may wait for its turn for long.

    Args:
        url: The database.
        study_id: The study.
        owner: This process, as `hpsearch.store.owners` names it.
        ttl_s: After how many seconds of silence others take it for dead.
        is_busy: Whether it has trials.
    """

    def __init__(
        self, url: str, study_id: int, owner: str, ttl_s: float, is_busy: Callable[[], bool]
    ) -> None:
        self._url = url
        self._study_id = study_id
        self._owner = owner
        self._ttl_s = ttl_s
        self._is_busy = is_busy
        self._every_s = min(RENEW_S, ttl_s / 4)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hpsearch pulse", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the thread soon."""
        self._ended.set()

    def close(self) -> None:
        """End the thread; what it is writing is waited for a moment."""
        self.end()
        self._thread.join(self._every_s)

    def _run(self) -> None:
        with closing(Store.unchecked(self._url)) as store:
            while not self._ended.wait(self._every_s):
                if self._is_busy():
                    self._beat(store)

    def _beat(self, store: Store) -> None:
        try:
            with store.writing() as connection:
                heartbeats.renew(connection, self._study_id, self._owner, self._ttl_s)
        except HpsearchError as error:
            log.warning("the study was not told that this process is alive: %s", error.message)
