"""The folder of checkpoints of a study that is driven: recorded, marked, and swept."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hpsearch.brain.study import Study
from hpsearch.checkpoint_folders import StudyFolder, folders_of, settle
from hpsearch.domain.history import Changes, History
from hpsearch.driver.loop import Watch
from hpsearch.driver.sweeping import Sweeper
from hpsearch.errors import StudyHeld
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store


def move_in(store: Store, history: History, home: StudyFolder, lease: Lease) -> None:
    """Record a study's folder of checkpoints, and then mark it: in this order, every folder that
    carries a mark is in the database. Raises StudyHeld if another driver has given the study
    another uid since it was read, UserError if the folder cannot be used."""
    record = history.study
    if record.uid not in (None, home.mark.uid):
        raise StudyHeld(
            f"another driver took over study {record.name}",
            f"try again: hpsearch resume {record.name}",
        )
    present = next(iter(folders_of(record)), None)
    if (record.uid, present) != (home.mark.uid, home.folder):
        settle(record, home)
        history.touch_study()
        store.commit(record.id, history.drain(), lease)
    home.claim()


@contextmanager
def sweeping(home: StudyFolder, history: History, watch: Watch) -> Iterator[Watch]:
    """Remove checkpoints that are not kept, while a driver runs. Yields a watch for the driver,
    which calls `watch` last."""
    sweeper = Sweeper(home)
    sweeper.begin(history.trials)

    def watch_both(study: Study, changes: Changes, now: float) -> None:
        sweeper.watch(study, changes, now)
        watch(study, changes, now)

    try:
        yield watch_both
    finally:
        sweeper.close()
