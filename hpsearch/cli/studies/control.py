"""`hpsearch stop` and `hpsearch rm`: commands that change a study from outside its driver."""

from __future__ import annotations

import sys
from contextlib import closing

import typer

from hpsearch.checkpoint_folders import folders_of
from hpsearch.cli.output import note
from hpsearch.cli.studies.asking import origin
from hpsearch.domain.records import StudyRecord, StudyState
from hpsearch.driver.removal import Emptied, remove_checkpoints
from hpsearch.errors import UserError
from hpsearch.store.leases import Lease
from hpsearch.store.owners import shown
from hpsearch.store.reading.queries import find_study, names_checkpoints
from hpsearch.store.store import Store
from hpsearch.study_run.ownership import owning, refuse_if_held
from hpsearch.terminal.escapes import escaped

HOLD_S = 300.0
"""Seconds that a removal keeps drivers away, unless it is renewed.

Longer than it takes to remove the checkpoints of one trial.
"""


def stop_study(name: str, storage: str) -> None:
    """Ask the driver of a study to save everything and end, or let it hand out no more trials."""
    with closing(Store.open(storage, create=False)) as store:
        record = store.find_study(name)
        lease = store.holder(name)
        with store.reading() as connection:
            head = find_study(connection, name)
        is_driven = lease is not None and lease.live
        may_be_asked = head.is_asked and head.state is StudyState.RUNNING
        if not is_driven and head.driver is None and not may_be_asked:
            finished = record.state is StudyState.FINISHED
            why = "is finished" if finished else "has no driver"
            note(f"study {name} {why}: there is nothing to stop")
            return
        store.request_stop(name, origin())
    if lease is not None and lease.live:
        note(
            f"{shown(lease.owner)} will stop study {name}: "
            "running trials save their state and go back to the queue"
        )
        again = f"hpsearch resume {name}"
    else:
        note(f"study {name} hands out no more trials: ask() returns None")
        note("running trials are stopped at their next report, and go back to the queue")
        again = f'hpsearch.resume(url, "{name}") in Python'
    note(f"see its progress with: hpsearch status {name}")
    note(f"continue it later with: {again}")


def remove_study(name: str, storage: str, *, yes: bool, keep_checkpoints: bool) -> None:
    """Remove a study from the database, and its checkpoints; in a terminal, ask first unless `yes`.

    Checkpoints are removed first: if that fails, the study is still there, and the removal can be
    repeated.

    Raises:
        UserError: Nobody can be asked and `yes` is not given, or checkpoints could not be removed.
        StudyHeld: A driver owns the study.
        StudyNotFound: There is no such study.
    """
    with closing(Store.open(storage, create=False)) as store:
        record = store.find_study(name)
        refuse_if_held(store, name)
        if not yes and not _agreed(record, keep_checkpoints):
            note("nothing was removed")
            return
        with owning(store, record, HOLD_S) as lease:
            # Another driver may have moved its checkpoints while the question was open.
            record = store.find_study(name)
            emptied: list[Emptied] = []
            if keep_checkpoints:
                lines = [f"its checkpoints are left in {each}" for each in folders_of(record)]
            else:
                emptied, lines = _removed(store, record, lease)
            # Refused if another driver has taken the study over in the meantime.
            store.renew(lease, HOLD_S)
            store.delete_study(record.id)
    note(f"removed study {name}")
    for folder in emptied:
        note(folder.dissolve())
    for line in lines:
        note(line)


def _agreed(record: StudyRecord, keep_checkpoints: bool) -> bool:
    """Ask whether the removal is meant. Raises UserError if there is nobody to ask."""
    folders = folders_of(record)
    what = f"remove study {record.name} and all its trials"
    if record.uid is not None and folders and not keep_checkpoints:
        places = " and ".join(folders)
        what = f"remove study {record.name}, all its trials, and their checkpoints in {places}"
    if sys.stdin.isatty() and sys.stderr.isatty():
        return typer.confirm(escaped(f"{what}? It cannot be undone."), err=True)
    options = "--yes --keep-checkpoints" if keep_checkpoints else "--yes"
    hint = f"it cannot be undone; if you mean it: hpsearch rm {record.name} {options}"
    raise UserError(f"this would {what}", hint)


def _removed(store: Store, record: StudyRecord, lease: Lease) -> tuple[list[Emptied], list[str]]:
    """Remove a study's checkpoints, and keep other drivers out in the meantime."""

    def named_in(folder: str) -> bool:
        with store.reading() as connection:
            return names_checkpoints(connection, record.id, folder)

    def go_on() -> None:
        """Refused if another driver has taken the study over, as after a long suspension."""
        store.renew(lease, HOLD_S)

    return remove_checkpoints(record, named_in, go_on)
