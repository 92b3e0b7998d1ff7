"""Drives a study on Ray: its brain, its executor, its driver, and what cleans up behind them."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hpsearch.brain.reopening import reopen
from hpsearch.brain.study import Study
from hpsearch.checkpoint_folders import StudyFolder, folders_of, settle
from hpsearch.domain.history import Changes, History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment, StudyRecord
from hpsearch.driver.journal import Patience
from hpsearch.driver.loop import Driver, Watch
from hpsearch.driver.slimming import Slimmer
from hpsearch.driver.sweeping import Sweeper
from hpsearch.errors import StudyHeld
from hpsearch.optuna_storage.view import HistoryStorage
from hpsearch.search.searcher import Searcher
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study_file import space
from hpsearch.study_file.models import Resources, StudySpec
from hpsearch.study_file.trackers import NamedTracker
from hpsearch.tracking.processes import Senders, sending
from hpsearch.wiring.environment import environment
from hpsearch.wiring.ownership import owning
from hpsearch.wiring.workers import worker_config
from trials.descriptions.builtin import describe

log = logging.getLogger("hpsearch")


@dataclass(frozen=True)
class StudyRun:
    """A study that is to be driven, and on what.

    Args:
        spec: The study file.
        home: The study's own folder of checkpoints.
        resources: The study file's, or what the command line made of them.
        address: The address of a Ray cluster; None for a local one.
        enqueue: Configurations to try next.
        trackers: The trackers that hear of it; their packages are installed.
    """

    spec: StudySpec
    home: StudyFolder
    resources: Resources
    address: str | None = None
    enqueue: Sequence[Mapping[str, Any]] = ()
    trackers: Sequence[NamedTracker] = ()


def drive(
    store: Store,
    run: StudyRun,
    take_up: Callable[[], History],
    watch: Watch,
    on_driver: Callable[[Driver], None],
) -> StudyRecord:
    """Drive a study on Ray until it has finished or was interrupted, and return its record.

    Args:
        store: The database.
        run: What is driven, and on what.
        take_up: Creates or loads the study. It is called once the cluster is there: without one,
            nothing is left behind.
        watch: Called after every tick.
        on_driver: Given the driver before it starts, for signal handlers.
    """
    # Imported here: only a driver needs a cluster.
    from hpsearch.executors.ray import RayExecutor
    from hpsearch.executors.ray_cluster import cluster

    spec, resources = run.spec, run.resources
    senders = Senders(store, spec.study, run.home.folder, run.trackers)
    with sending(senders), cluster(run.address, resources):
        executor = RayExecutor(worker_config(spec, run.home.folder), resources)
        try:
            history = take_up()
            device = f"{executor.gpus:g} GPU a worker" if executor.gpus else "CPU"
            # May read files for long: before the lease is taken, which nobody renews until the
            # driver runs.
            runs_on = environment(spec, device)
            patience = patience_of(resources)
            with owning(store, history.study, patience.lease_s) as lease:
                settle_in(store, history, run, lease, runs_on)
                study = build_study(history, spec)
                with sweeping(run.home, history, begun_with(senders, watch)) as watch_all:
                    driver = Driver(study, executor, store, lease, watch_all, patience=patience)
                    on_driver(driver)
                    driver.run()
        finally:
            executor.close()
    return history.study


def move_in(store: Store, history: History, home: StudyFolder, lease: Lease) -> None:
    """Record a study's folder of checkpoints, and then mark it.

    In this order, every folder that carries a mark is in the database.

    Args:
        store: The database.
        history: The study, as the database has it.
        home: Its folder from now on.
        lease: The caller's.

    Raises:
        StudyHeld: Another driver has given the study another uid since it was read.
        UserError: The folder cannot be used.
    """
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


def settle_in(
    store: Store, history: History, run: StudyRun, lease: Lease, runs_on: Environment
) -> None:
    """Note in a study's history what is new with this run. The driver writes it when it begins.

    Raises:
        StudyHeld: Another driver has changed the study since it was read.
    """
    store.refresh(history, -1)  # what another driver wrote before this one owned the study
    move_in(store, history, run.home, lease)
    history.study.spec = run.spec.text  # it may have another budget now
    history.study.enqueued += map(dict, run.enqueue)
    _forget_asked(history)
    history.add_environment(runs_on)


def _forget_asked(history: History) -> None:
    """Let trials that were asked for begin again: a worker cannot read what their users saved."""
    for trial in history.trials:
        if trial.was_asked and trial.state is not State.COMPLETE:
            trial.checkpoint = None
            trial.best_checkpoint = None
            history.touch(trial)


def build_study(history: History, spec: StudySpec) -> Study:
    """The brain of a study over its history, with Optuna reading that same history."""
    reopen(history)
    storage = HistoryStorage(history, time.time)
    known = describe(spec.task["kind"]).settings
    defaults = space.defaults(spec.space, known)
    return Study(spec, history, Searcher(spec, history, storage), defaults)


def patience_of(resources: Resources) -> Patience:
    """How long a study file says that its driver waits for each part, and others for it."""
    return Patience(resources.lease_s, resources.database_patience_s, resources.stop_grace_s)


def begun_with(senders: Senders, watch: Watch) -> Watch:
    """A watch that first starts the senders: once the driver has written that the study runs."""

    def watch_and_begin(study: Study, changes: Changes, now: float) -> None:
        senders.begin()
        watch(study, changes, now)

    return watch_and_begin


@contextmanager
def sweeping(home: StudyFolder, history: History, watch: Watch) -> Iterator[Watch]:
    """Remove checkpoints that are not kept, while a driver runs.

    Yields a watch for the driver, which calls `watch` last.
    """
    folders = folders_of(history.study)
    former = [folder for folder in folders if folder != home.folder]
    sweeper = Sweeper(home.mark, folders)
    sweeper.begin(history.trials)
    slimmer = Slimmer(home.folder, former, home.mark)
    slimmer.begin(history.trials)

    def watch_all(study: Study, changes: Changes, now: float) -> None:
        sweeper.watch(study, changes, now)
        slimmer.watch(study, changes, now)
        watch(study, changes, now)

    try:
        yield watch_all
    finally:
        slimmer.close()
        sweeper.close()
