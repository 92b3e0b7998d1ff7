"""`hpsearch stop`, `rm`, `enqueue` and more budget: changes to a study from outside its driver.

A request that is refused raises UserError.
"""

import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import typer

from hpsearch.cli.launchers import cancelled
from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.options import Proposal
from hpsearch.cli.output import note, was_submitted
from hpsearch.domain.facts import RequestKind
from hpsearch.domain.records import StudyRecord, StudyState
from hpsearch.errors import NoDatabase, StudyNotFound, UserError
from hpsearch.running.checkpoint_folders import folders_of
from hpsearch.running.creation.study import spec_of
from hpsearch.running.driver.removal import Emptied, remove_checkpoints
from hpsearch.running.study_run.ownership import owning, refuse_if_held
from hpsearch.running.study_run.requests import ask
from hpsearch.running.study_run.revision import revision_of_study
from hpsearch.store.leases import Lease
from hpsearch.store.owners import person, shown
from hpsearch.store.reading.queries import find_study, names_checkpoints, trial_detail
from hpsearch.store.store import Store
from hpsearch.study_file.space import contains
from hpsearch.study_file.text import parameters_of, text_of
from hpsearch.views.terminal.escapes import escaped


def stop(name: str, trial: int | None, storage: str) -> None:
    if trial is None and _is_cancelled(name, storage):
        return
    with closing(Store.open(storage, create=False)) as store:
        if trial is None:
            _stop_study(store, name)
        else:
            done = f"trial {trial} of {name} is stopped"
            _ask(store, name, RequestKind.STOP, {"trial": trial}, done)


def _is_cancelled(name: str, storage: str) -> bool:
    """Take a study that nobody drives out of its queue; false if it is in none."""
    with suppress(NoDatabase, StudyNotFound), reading(storage) as connection:
        study = chosen_study(connection, name)
        if study.driver is not None or not was_submitted():
            return False
    jobs = cancelled(storage, name)
    if not jobs:
        return False
    note(f"study {name} {jobs[0].in_words}")
    note(f"cancelled: job {' and '.join(each.job for each in jobs)}")
    return True


def propose(name: str, proposal: Proposal, storage: str) -> None:
    text, like = proposal.configuration, proposal.like
    if proposal.patch is not None or proposal.revision is not None:
        _revise(name, proposal, storage)
        return
    if not text and like is None:
        example = 'for example: hpsearch enqueue NAME "lr=1e-4"'
        raise UserError("there is nothing to try", example)
    with closing(Store.open(storage, create=False)) as store:
        spec = spec_of(store.find_study(name))
        params: dict[str, Any] = {}
        if like is not None:
            with store.reading() as connection:
                found = trial_detail(connection, find_study(connection, name), like)
            params = dict(found.trial.params)
        if text:
            params |= parameters_of(text)
        problems = contains(spec, params)
        if problems:
            raise UserError("; ".join(problems))
        content = {"params": params, "why": proposal.why}
        done = f"study {name} tries it next, as trial"
        _ask(store, name, RequestKind.PROPOSE, content, done)


def _revise(name: str, proposal: Proposal, storage: str) -> None:
    file, commit = proposal.patch, proposal.revision
    if proposal.configuration or proposal.like is not None or None not in (file, commit):
        message = "one change of code is tested at a time, with the best parameters so far"
        raise UserError(message, "give --patch or --revision alone, with --why")
    if file == Path() or commit == "":
        raise UserError("no change is named", "give --patch a file, or --revision a commit")
    with closing(Store.open(storage, create=False)) as store:
        patch = None
        if file is not None:
            text_of(file, "patch")  # which tells what is wrong with it
            patch = file.read_bytes().decode()  # with the ends of its lines as they are
        content = revision_of_study(store, name, proposal.why, patch=patch, commit=commit or "HEAD")
        done = f"study {name} tests it: hpsearch show {name} --revisions"
        _ask(store, name, RequestKind.REVISE, content, done)


def raise_budget(store: Store, name: str, limits: Mapping[str, float | str]) -> None:
    written = ", ".join(f"{limit} {value}" for limit, value in limits.items())
    _ask(store, name, RequestKind.BUDGET, dict(limits), f"study {name} goes on with {written}")


def _ask(store: Store, name: str, kind: RequestKind, content: dict[str, Any], done: str) -> None:
    reply, is_driven = ask(store, name, kind, content, person())
    if not is_driven:
        note(f"study {name} has no driver: the next one sees to it (hpsearch resume {name})")
    elif reply.handled is None:
        note(f"the driver of {name} has not answered yet; it will see to it")
    elif kind is RequestKind.PROPOSE:
        note(f"{done} {reply.trial}")
    else:
        note(done)


HOLD_S = 300.0
"""Seconds that a removal keeps drivers away, unless it is renewed.

Longer than it takes to remove the checkpoints of one trial.
"""


def _stop_study(store: Store, name: str) -> None:
    """Ask the driver of a study to save everything and end, or let it hand out no more trials."""
    record = store.find_study(name)
    lease = store.holder(name)
    with store.reading() as connection:
        head = chosen_study(connection, name)
    is_driven = lease is not None and lease.live
    may_be_asked = head.is_asked and head.state is StudyState.RUNNING
    if not is_driven and head.driver is None and not may_be_asked:
        why = "is finished" if record.state is StudyState.FINISHED else "has no driver"
        note(f"study {name} {why}: there is nothing to stop")
        return
    store.request_stop(name, person())
    if lease is not None and lease.live:
        save = "running trials save their state and go back to the queue"
        note(f"{shown(lease.owner)} will stop study {name}: {save}")
        again = f"hpsearch resume {name}"
    else:
        note(f"study {name} hands out no more trials: ask() returns None")
        note("running trials are stopped at their next report, and go back to the queue")
        again = f'hpsearch.resume(url, "{name}") in Python'
    note(f"see its progress with: hpsearch status {name}")
    note(f"continue it later with: {again}")


def remove_study(name: str, storage: str, *, yes: bool, keep_checkpoints: bool) -> None:
    """Remove a study from the database, and before that its checkpoints, so that a removal that
    fails can be repeated; in a terminal, ask first unless `yes`."""
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
