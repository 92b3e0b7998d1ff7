"""The run of a study on Ray: its cluster, its executor, its driver, and its trackers.

How a study is resumed, in the order of the calls in `drive`. A new one takes the same steps:

 1. `open_history` reads it with all its records, or creates it, once the cluster is there.
 2. `owning` takes over the lease of a driver that has died.
 3. `prepare` reads what others have written until then, and changes the records as the command
 asks: another budget, configurations to try, failed trials to retry, a trial to train in full.
 4. `build_study` lets trials wait again that the study had ended without (`brain.reopening`), and
 rebuilds the search and the ledger from the records.
 5. `Driver.run` calls `Study.begin`: attempts that the last driver left unfinished are ended, and
 charged until its last sign of life; their trials are queued.
 6. The first tick gives free slots what is queued, before anything new (`Agenda.next`), and
 `Attempts.launch` names the checkpoint that a trial continues from.

Where programs ask for trials, each process takes steps 4 to 6 in a transaction, and joins the
others in step 5 (`Study.join`).
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

from hpsearch.brain.reopening import retry, to_finish, train_in_full
from hpsearch.brain.widening import widen
from hpsearch.domain.facts import FILE_CHANGES
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment, StudyRecord
from hpsearch.errors import StudyHeld
from hpsearch.running.checkpoint_folders import StudyFolder, folders_of
from hpsearch.running.creation.seal import Seal, seal_of
from hpsearch.running.creation.study import environment
from hpsearch.running.driver.loop import Driver, OnTick, watched_by
from hpsearch.running.driver.sweeping import Sweeper
from hpsearch.running.study_run import retries, versions
from hpsearch.running.study_run.brain import build_study
from hpsearch.running.study_run.ownership import owning
from hpsearch.running.study_run.workers import worker_config
from hpsearch.running.tracking.senders import Senders, sending
from hpsearch.store.leases import Lease
from hpsearch.store.reading.attempts import changes
from hpsearch.store.store import Store
from hpsearch.study_file.models import Resources, StudySpec
from hpsearch.study_file.trackers import NamedTracker
from trials.checkpoints.folders import is_there, is_url

log = logging.getLogger("hpsearch")


@dataclass(frozen=True)
class StudyRun:
    """A study to drive, and its place and resources."""

    spec: StudySpec
    home: StudyFolder  # the study's own folder of checkpoints
    resources: Resources  # the study file's, or what the command line made of them
    address: str | None = None  # of a Ray cluster; None for a local one
    enqueue: Sequence[Mapping[str, Any]] = ()  # configurations to try next
    trackers: Sequence[NamedTracker] = ()  # their packages are installed
    finish: int | None = None  # a trial to train to its end
    retry: Sequence[int] = ()  # failed trials to run again
    changes: Mapping[str, str] = field(default_factory=dict)  # of its study file, by key
    widened: Mapping[str, str] = field(default_factory=dict)  # of its space and limits, by key
    former: StudySpec | None = None  # its study file before those
    seal: Seal | None = None  # of its code and data; None to read it


def drive(
    store: Store,
    run: StudyRun,
    open_history: Callable[[], History],
    watch: OnTick,
    on_driver: Callable[[Driver], None],
) -> StudyRecord:
    """Drive a study on Ray until it has finished or was interrupted, and return its record.

    `open_history` creates or reads the study once the cluster is there: without one, nothing is
    left behind. `watch` is called after every tick, and `on_driver` with the driver before it
    starts, for signal handlers."""
    # Imported here: only a driver needs a cluster.
    from hpsearch.running.executors.awaited import AwaitedExecutor
    from hpsearch.running.executors.cluster.ray_cluster import cluster

    spec, resources = run.spec, run.resources
    senders = Senders(store, spec.study, run.home.folder, run.trackers)
    with sending(senders), cluster(run.address, resources) as thread:
        executor = AwaitedExecutor(thread, worker_config(spec, run.home.folder), resources)
        try:
            history = open_history()
            device = f"{executor.gpus:g} GPU a worker" if executor.gpus else "CPU"
            # May read files for long: before the lease is taken, which nobody renews until the
            # driver runs.
            run = replace(run, seal=run.seal or seal_of(spec))
            runs_on = environment(spec, device, run.seal)
            _say_changes(store, history.study, runs_on)
            with owning(store, history.study, resources.lease_s) as lease:
                prepare(store, history, run, lease, runs_on)
                study = build_study(history, spec, failed_too=not run.retry)
                with closing(Sweeper(run.home)) as sweeper:
                    sweeper.begin(history.trials)
                    watch_all = watched_by(senders.watch, sweeper.watch, watch)
                    driver = Driver(study, executor, store, lease, watch_all, resources=resources)
                    on_driver(driver)
                    driver.run()
        finally:
            executor.close()
    return history.study


def _say_changes(store: Store, record: StudyRecord, runs_on: Environment) -> None:
    """Warn where code or data are not those of the study's latest session."""
    sessions = versions.sessions_of(store, record.name)
    found = changes(sessions[-1], runs_on) if sessions else []
    if found:
        what = "; ".join(found)
        log.warning("not as before: %s - new trials may not compare with earlier ones", what)


def prepare(
    store: Store, history: History, run: StudyRun, lease: Lease, runs_on: Environment
) -> None:
    """Note in a study's history what is new with this run; the driver's first tick writes it.
    Raises StudyHeld if another driver has changed the study since it was read."""
    store.refresh(history, -1)  # what another driver wrote before this one owned the study
    claim_folder(store, history, run.home, lease)
    history.study.spec = run.spec.text  # it may have another budget now
    history.study.enqueued += map(dict, run.enqueue)
    now = time.time()
    if run.changes:
        record, made = history.study, {"at": now, "changes": dict(run.changes)}
        before = record.system_attrs.get(FILE_CHANGES, [])
        record.system_attrs = {**record.system_attrs, FILE_CHANGES: [*before, made]}
        history.touch_study()
    sessions = versions.sessions_of(store, run.spec.study)
    widened = [f"{key} {text}" for key, text in run.widened.items()]
    for text in versions.begin_due(history, sessions, run.seal, now, widened):
        log.warning("version %d of %s begins: %s", history.version, run.spec.study, text)
    if run.former is not None:
        outside = widen(history, run.former, run.spec)
        if outside:
            what = "lie outside its space: they stay on record, and are not compared"
            log.warning("%d of %d trials %s", outside, len(history.trials), what)
    failed = [history.trials[number] for number in run.retry]
    since = retries.since_failure(sessions, failed, runs_on)
    for line in retries.in_words(since):
        log.warning("%s", line)
    retry(history, since, now)
    _forget_asked(history)
    if run.finish is not None:
        train_in_full(history, run.finish, has_checkpoint=can_continue(history, run.finish))
    history.add_environment(runs_on)


def claim_folder(store: Store, history: History, home: StudyFolder, lease: Lease) -> None:
    """Record a study's folder of checkpoints, and then mark it: in this order, every folder that
    carries a mark is in the database. Raises StudyHeld if another driver has given the study
    another uid since it was read, UserError if the folder cannot be used."""
    record = history.study
    if record.uid not in (None, home.mark.uid):
        raise StudyHeld(
            f"another driver took over study {record.name}",
            f"try again: hpsearch resume {record.name}",
        )
    folders = folders_of(record)
    if record.uid != home.mark.uid or folders[:1] != [home.folder]:
        record.uid = home.mark.uid
        record.checkpoints = home.folder
        record.former_checkpoints = [each for each in folders if each != home.folder]
        history.touch_study()
        store.commit(record.id, history.drain(), lease)
    home.claim()


def can_continue(history: History, number: int) -> bool:
    """True if a trial that is to be trained to its end has its checkpoint still. Raises UserError
    if there is no such trial, or it cannot go on."""
    checkpoint = to_finish(history, number).checkpoint
    return checkpoint is not None and (is_url(checkpoint) or is_there(checkpoint))


def _forget_asked(history: History) -> None:
    """Begin asked trials again: workers cannot read the checkpoints of their users."""
    for trial in history.trials:
        if trial.was_asked and trial.state is not State.COMPLETE:
            trial.checkpoint = None
            trial.best_checkpoint = None
            history.touch(trial)
