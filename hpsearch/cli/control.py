"""`hpsearch stop` and `hpsearch rm`: what changes a study from outside."""

from __future__ import annotations

import time
from contextlib import closing

from hpsearch.cli.output import note
from hpsearch.errors import StudyHeld, UserError
from hpsearch.records import StudyState
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store


def stop(name: str, storage: str) -> None:
    """Ask the driver of a study to save everything and end."""
    with closing(Store.open(storage, create=False)) as store:
        record = store.find_study(name)
        driver = _live(store.holder(name))
        if driver is None:
            what = "is finished" if record.state is StudyState.FINISHED else "is driven by nobody"
            note(f"study {name} {what}: there is nothing to stop")
            return
        store.request_stop(name)
    note(
        f"{driver.owner} will stop study {name}: running trials save their state and go back to the queue.\n"
        f"See how it goes with `hpsearch status {name}`; go on later with `hpsearch resume {name}`."
    )


def rm(name: str, storage: str, *, yes: bool) -> None:
    """Remove a study with its trials and reports from the database; checkpoints stay on disk.

    Raises:
        UserError: `yes` is not given.
        StudyHeld: A driver owns the study.
        StudyNotFound: There is none of that name.
    """
    with closing(Store.open(storage, create=False)) as store:
        record = store.find_study(name)
        driver = _live(store.holder(name))
        if driver is not None:
            raise StudyHeld(f"study {name} is driven by {driver.owner}", f"stop it first: hpsearch stop {name}")
        if not yes:
            hint = f"it cannot be undone; if you mean it: hpsearch rm {name} --yes"
            raise UserError(f"this would remove study {name} and all its trials", hint)
        store.delete_study(record.id)
    note(f"removed study {name}; checkpoints, if any, are still on disk")


def _live(lease: Lease | None) -> Lease | None:
    return lease if lease is not None and lease.live(time.time()) else None
