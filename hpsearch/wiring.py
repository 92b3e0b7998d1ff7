"""Where concrete parts are chosen and joined: a study file, a database and a cluster become a driver."""

from __future__ import annotations

import getpass
import hashlib
import logging
import os
import platform
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from hpsearch import space
from hpsearch.agenda import ENQUEUED
from hpsearch.driver import Driver, Patience, Watch
from hpsearch.errors import StoreUnreachable, StudyExists, StudyHeld, UserError
from hpsearch.executors.worker import WorkerConfig
from hpsearch.frozen import STEP_SCALE
from hpsearch.levels import step_scale, trial_budget
from hpsearch.optuna_storage import StudyStorage
from hpsearch.records import Changes, Environment, History, StudyRecord
from hpsearch.reopening import reopen
from hpsearch.search import Search
from hpsearch.spec import Resources, StudySpec
from hpsearch.spec_file import parse
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study import Study
from hpsearch.sweeping import Sweeper
from trials import places, tasks
from trials.contract import Goal

BASE = "hpsearch:base"
"""Study attribute: the folder that relative paths in the study file start from."""

CHECKPOINTS = "hpsearch:checkpoints"
"""Study attribute: the folder of the study's checkpoints."""

log = logging.getLogger("hpsearch")

RECORDED_PACKAGES = ("hpsearch", "torch", "transformers", "optuna", "ray", "numpy", "scikit-learn", "tokenizers")


def checkpoint_folder(spec: StudySpec, asked_for: str | None) -> str:
    """The study's folder for checkpoints: what was asked for, or the study file's, or one beside it.

    Returns: An absolute path, or a URL.

    Raises:
        UserError: A URL that nothing here can read or write.
    """
    stated = spec.checkpoints or str(Path("hpsearch-studies") / spec.study)
    return usable(asked_for or (stated if places.is_url(stated) else spec.base / stated))


def usable(checkpoints: Path | str) -> str:
    """A folder for checkpoints by its absolute name.

    Raises:
        UserError: A URL that nothing here can read or write, or a path that can be no folder.
    """
    try:
        places.place(checkpoints)
        if not places.is_url(checkpoints):
            _refuse_no_folder(Path(checkpoints))
    except places.PlaceError as error:
        raise UserError(str(error), "install the package it names, or give a folder that all workers share") from error
    return places.absolute(checkpoints)


def _refuse_no_folder(path: Path) -> None:
    """See that a path is a folder's, or that one could be made there.

    Raises:
        UserError: Something else is in its place, or no file system takes it.
    """
    if not str(path).isprintable():
        raise UserError(f"checkpoints cannot be kept at {str(path)!r}", "name a folder of printable letters")
    try:
        odd = next((part for part in (path, *path.parents) if part.exists() and not part.is_dir()), None)
    except OSError as error:
        what = f"checkpoints cannot be kept at {str(path)[:60]!r}: {error.strerror}"
        raise UserError(what, "name another folder with --checkpoints") from None
    if odd is not None:
        raise UserError(f"checkpoints cannot be kept at {path}: {odd} is no folder", "name another with --checkpoints")


def create_study(store: Store, spec: StudySpec, checkpoints: Path | str) -> History:
    """Write a new study into the database.

    Args:
        store: The database.
        spec: The study file.
        checkpoints: The folder for checkpoints, an absolute path or a URL.

    Raises:
        StudyExists: The name is taken.
    """
    record = StudyRecord(
        id=0,
        name=spec.study,
        spec=spec.text,
        directions=tuple(objective.direction for objective in spec.objectives),
        created=time.time(),
        user_attrs={BASE: str(spec.base.absolute()), CHECKPOINTS: str(checkpoints)},
        system_attrs={STEP_SCALE: step_scale(spec)},
    )
    try:
        return History(store.create_study(record))
    except StudyExists as error:
        raise StudyExists(
            f"study {spec.study} is already in {store.display_url}",
            f"continue it with: hpsearch resume {spec.study} - or give the new one another name",
        ) from error


def spec_of(record: StudyRecord) -> StudySpec:
    """The study file that a study was created from.

    Raises:
        SpecError: It has mistakes by now.
        UserError: The database does not say where its paths start.
    """
    base = record.user_attrs.get(BASE)
    if not isinstance(base, str):
        what = f"study {record.name} has no attribute {BASE}, the folder that its paths start from"
        raise UserError(what, "somebody changed the database by hand; start the study anew: hpsearch run STUDY.yaml")
    return parse(record.spec, base=Path(base), name=f"{record.name} (study file)")


@contextmanager
def owning(store: Store, record: StudyRecord, lease_s: float) -> Iterator[tuple[Lease, float | None]]:
    """Own a study: its lease, and when the driver before was last known to live.

    A holder that is a process of this machine and gone needs no waiting for: its lease is ended.

    Args:
        store: The database.
        record: The study.
        lease_s: How long the lease lasts where nobody renews it.

    Raises:
        StudyHeld: Another driver owns it.
    """
    before = store.holder(record.name)
    if before is not None and _is_dead(before.owner):
        store.release(before, time.time())
    owner = f"{getpass.getuser()}@{socket.gethostname()}:{os.getpid()}"
    lease = store.acquire(record.id, owner, time.time(), lease_s)
    store.clear_stop(record.name)
    try:
        yield lease, None if before is None else before.expires - lease_s
    finally:
        try:
            store.release(lease, time.time())
        except StoreUnreachable as error:
            log.warning("the lease on %s was not given back, and ends by itself: %s", record.name, error.message)


def _is_dead(owner: str) -> bool:
    """Whether an owner was a process of this machine that no longer runs."""
    host, _, process = owner.rpartition("@")[2].rpartition(":")
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False


def refuse_if_held(store: Store, name: str) -> None:
    """Refuse early, before a cluster is started, a study that another driver owns.

    Raises:
        StudyHeld: Another driver owns it.
    """
    holder = store.holder(name)
    if holder is not None and holder.live(time.time()) and not _is_dead(holder.owner):
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(holder.since))
        raise StudyHeld(
            f"study {name} is driven by {holder.owner} since {since}",
            f"watch it with: hpsearch status {name} - stop it with: hpsearch stop {name}",
        )


def worker_config(spec: StudySpec, checkpoints: Path | str) -> WorkerConfig:
    """What every worker of a study needs to know."""
    description = tasks.describe(spec.task["kind"])
    monitor = {"monitor": spec.objective.metric} if "monitor" in (description.settings or {}) else {}
    return WorkerConfig(
        task=spec.task,
        base=str(spec.base.absolute()),
        settings={**monitor, **spec.settings},
        budget=trial_budget(spec),
        checkpoints=str(checkpoints),
        prepares=spec.task["kind"] in tasks.BUILT_IN,
        threads=max(1, int(spec.resources.cpu)),
        goal=Goal(spec.objective.metric, maximize=spec.objective.direction == "maximize"),
    )


def build_study(store: Store, history: History, spec: StudySpec) -> Study:
    """The brain of a study over its history, with Optuna reading that same history."""
    reopen(history)
    storage = StudyStorage(store)
    storage.attach(history)
    description = tasks.describe(spec.task["kind"])
    defaults = space.defaults(spec.space, description.settings)
    return Study(spec, history, Search(spec, history, storage), defaults)


def drive(
    store: Store,
    spec: StudySpec,
    take_up: Callable[[], History],
    *,
    address: str | None,
    resources: Resources,
    checkpoints: Path | str,
    watch: Watch,
    on_driver: Callable[[Driver], None],
    enqueue: Sequence[Mapping[str, Any]] = (),
) -> StudyRecord:
    """Drive a study on Ray until it has finished or was interrupted, and return its record.

    Args:
        store: The database.
        spec: The study file.
        take_up: Creates or loads the study; called once the cluster is there, so that nothing is left behind if not.
        address: Of a Ray cluster; None for a local one.
        resources: The study file's, or what the command line made of them.
        checkpoints: The study's folder for checkpoints.
        watch: Called after every tick.
        on_driver: Given the driver before it starts, for signal handlers.
        enqueue: Known-good configurations, tried next.
    """
    from hpsearch.executors.ray import RayExecutor  # imported here: only a driver needs a cluster
    from hpsearch.executors.ray_cluster import cluster

    with cluster(address, resources):
        executor = RayExecutor(worker_config(spec, checkpoints), resources)
        try:
            history = take_up()
            patience = patience_of(resources)
            with owning(store, history.study, patience.lease_s) as (lease, last_seen):
                store.refresh(history, -1)  # what another driver wrote between our reading and our owning it
                history.study.spec = spec.text  # with another budget, where it was given one
                history.study.user_attrs[CHECKPOINTS] = str(checkpoints)
                asked_for = [*history.study.system_attrs.get(ENQUEUED, []), *map(dict, enqueue)]
                history.study.system_attrs.update({ENQUEUED: asked_for} if asked_for else {})
                device = f"{executor.gpus:g} GPU a worker" if executor.gpus else "CPU"
                history.add_environment(environment(spec, device))
                study = build_study(store, history, spec)
                with sweeping(checkpoints, history, watch) as watch_and_sweep:
                    driver = Driver(study, executor, store, lease, watch_and_sweep, patience=patience)
                    on_driver(driver)
                    driver.run(last_seen)
        finally:
            executor.close()
    return history.study


def patience_of(resources: Resources) -> Patience:
    """How long a study file says that its driver waits for each part, and others for it."""
    return Patience(resources.lease_s, resources.database_patience_s, resources.stop_grace_s)


@contextmanager
def sweeping(checkpoints: Path | str, history: History, watch: Watch) -> Iterator[Watch]:
    """Remove checkpoints that are not kept while a driver runs: a watch that goes before another one."""
    sweeper = Sweeper(checkpoints)
    sweeper.begin(history.trials)

    def both(study: Study, changes: Changes, now: float) -> None:
        sweeper.watch(study, changes, now)
        watch(study, changes, now)

    try:
        yield both
    finally:
        sweeper.close()


def environment(spec: StudySpec, device: str) -> Environment:
    """What this driver's session runs on."""
    packages = {}
    for name in RECORDED_PACKAGES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    packages["python"] = platform.python_version()
    return Environment(time.time(), _revision(spec.base), packages, device, _fingerprint(spec))


def _revision(folder: Path) -> str | None:
    try:
        git = subprocess.run(  # noqa: S603 - a fixed command
            ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return git.stdout.strip() or None


def _fingerprint(spec: StudySpec) -> str | None:
    """SHA-256 over the files that the task names; None if it names none."""
    digest, found = hashlib.sha256(), False
    for key, value in sorted(spec.task.items()):
        path = spec.base / value if isinstance(value, str) and key != "kind" else None
        if path is None or not path.is_file():
            continue
        found = True
        with path.open("rb") as file:
            while chunk := file.read(1 << 20):
                digest.update(chunk)
    return digest.hexdigest() if found else None
