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
"""How long a removal keeps drivers away, unless it is renewed.

Longer than it takes to remove the checkpoints of one trial.
"""


def stop_study(name: str, storage: str) -> None:
    """Ask the driver of a study to save everything and end, or let it hand out no more trials."""
    with closing(Store.open(storage, create=False)) as store:
        record = store.find_study(name)
        driver = _live(store.holder(name))
        with store.reading() as connection:
            head = find_study(connection, name)
        may_be_asked = head.is_asked and head.state is StudyState.RUNNING
        if driver is None and (head.driver is not None or may_be_asked):
            store.request_stop(name, origin())
            note(
                f"study {name} hands out no more trials: ask() returns None\n"
                "running trials are stopped at their next report, and go back to the queue\n"
                f"see its progress with: hpsearch status {name}\n"
                f'go on later in Python: hpsearch.resume(url, "{name}")'
            )
            return
        if driver is None:
            finished = record.state is StudyState.FINISHED
            why = "is finished" if finished else "has no driver"
            note(f"study {name} {why}: there is nothing to stop")
            return
        store.request_stop(name, origin())
    note(
        f"{shown(driver.owner)} will stop study {name}: "
        "running trials save their state and go back to the queue\n"
        f"see its progress with: hpsearch status {name}\n"
        f"continue it later with: hpsearch resume {name}"
    )


def remove_study(name: str, storage: str, *, yes: bool, keep_checkpoints: bool) -> None:
    """Remove a study from the database, and its checkpoints; in a terminal, ask first.

    Checkpoints are removed first: if that fails, the study is still there, and the removal can be
    repeated.

    Args:
        name: The study.
        storage: The database's URL.
        yes: Whether to remove it without a question.
        keep_checkpoints: Whether to leave the checkpoints where they are.

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
                lines = _kept(record)
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
    """Ask whether the removal is meant.

    Raises:
        UserError: There is nobody to ask.
    """
    what = f"remove {_what_goes(record, keep_checkpoints)}"
    somebody_answers = sys.stdin.isatty() and sys.stderr.isatty()
    if somebody_answers:
        question = escaped(f"{what}? It cannot be undone.")
        return typer.confirm(question, err=True)
    options = "--yes --keep-checkpoints" if keep_checkpoints else "--yes"
    hint = f"it cannot be undone; if you mean it: hpsearch rm {record.name} {options}"
    raise UserError(f"this would {what}", hint)


def _what_goes(record: StudyRecord, keep_checkpoints: bool) -> str:
    """What a removal removes, for a question."""
    folders = folders_of(record)
    if record.uid is None or not folders or keep_checkpoints:
        return f"study {record.name} and all its trials"
    places = " and ".join(folders)
    return f"study {record.name}, all its trials, and their checkpoints in {places}"


def _removed(store: Store, record: StudyRecord, lease: Lease) -> tuple[list[Emptied], list[str]]:
    """Remove a study's checkpoints, and keep other drivers out in the meantime."""

    def named_in(folder: str) -> bool:
        with store.reading() as connection:
            return names_checkpoints(connection, record.id, folder)

    def go_on() -> None:
        """Refused if another driver has taken the study over, as after a long suspension."""
        store.renew(lease, HOLD_S)

    return remove_checkpoints(record, named_in, go_on)


def _kept(record: StudyRecord) -> list[str]:
    return [f"its checkpoints are left in {folder}" for folder in folders_of(record)]


def _live(lease: Lease | None) -> Lease | None:
    return lease if lease is not None and lease.live else None
