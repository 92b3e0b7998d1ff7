"""The run of a study on Ray: its cluster, its executor, its driver, and the trackers it tells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpsearch.brain.study import Study
from hpsearch.checkpoint_folders import StudyFolder
from hpsearch.creation.environment import environment
from hpsearch.domain.history import Changes, History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Environment, StudyRecord
from hpsearch.driver.journal import Patience
from hpsearch.driver.loop import Driver, Watch
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study_file.models import Resources, StudySpec
from hpsearch.study_file.trackers import NamedTracker
from hpsearch.study_run.brain import build_study
from hpsearch.study_run.home import move_in, sweeping
from hpsearch.study_run.ownership import owning
from hpsearch.study_run.workers import worker_config
from hpsearch.tracking.processes import Senders, sending


@dataclass(frozen=True)
class StudyRun:
    """A study that is to be driven, and on what."""

    spec: StudySpec
    home: StudyFolder  # the study's own folder of checkpoints
    resources: Resources  # the study file's, or what the command line made of them
    address: str | None = None  # of a Ray cluster; None for a local one
    enqueue: Sequence[Mapping[str, Any]] = ()  # configurations to try next
    trackers: Sequence[NamedTracker] = ()  # their packages are installed


def drive(
    store: Store,
    run: StudyRun,
    take_up: Callable[[], History],
    watch: Watch,
    on_driver: Callable[[Driver], None],
) -> StudyRecord:
    """Drive a study on Ray until it has finished or was interrupted, and return its record.

    `take_up` creates or loads the study; it is called once the cluster is there: without one,
    nothing is left behind. `watch` is called after every tick. `on_driver` is given the driver
    before it starts, for signal handlers."""
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


def settle_in(
    store: Store, history: History, run: StudyRun, lease: Lease, runs_on: Environment
) -> None:
    """Note in a study's history what is new with this run; the driver writes it when it begins.
    Raises StudyHeld if another driver has changed the study since it was read."""
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


def patience_of(resources: Resources) -> Patience:
    """How long a study file says that its driver waits for each part, and others for it."""
    return Patience(resources.lease_s, resources.database_patience_s, resources.stop_grace_s)


def begun_with(senders: Senders, watch: Watch) -> Watch:
    """A watch that first starts the senders: once the driver has written that the study runs."""

    def watch_and_begin(study: Study, changes: Changes, now: float) -> None:
        senders.begin()
        watch(study, changes, now)

    return watch_and_begin
