"""`hpsearch check`: find mistakes before anything is paid for, and print what the study would do.

Nothing of it remains: no database is made, no cluster is started. The study file and its data are
read, the database and the cluster are asked whether they answer. A built-in task trains and
evaluates one step on the longest batch; then one trial of any task trains up to its first report,
in a process of its own.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from hpsearch.cli.output import note, show, terminal_width
from hpsearch.domain.facts import EarlierStudy
from hpsearch.domain.numbers import duration
from hpsearch.domain.plugins.door import packages
from hpsearch.errors import StoreUnusable, StudyNotFound, UserError
from hpsearch.running import loading
from hpsearch.running.checkpoint_folders import checkpoint_root
from hpsearch.running.creation import warm_start
from hpsearch.running.creation.seal import seal_of
from hpsearch.running.executors.cluster.address import refuse_unreachable
from hpsearch.running.rehearsal import first_trial
from hpsearch.running.rehearsal.first_step import rehearse
from hpsearch.running.study_run.versions import changed_files
from hpsearch.running.tracking.senders import refuse_missing
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.url import display, is_sqlite, parse_url, refuse_in_memory
from hpsearch.store.reading.attempts import environments_of, versions_of
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store
from hpsearch.store.version import stored_version
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import advice, load
from hpsearch.study_file.types import AUTO
from hpsearch.views import plan, words
from trials.contract import Problem, TaskError
from trials.descriptions.builtin import BUILT_IN
from trials.descriptions.command import COMMAND, line_of
from trials.descriptions.description import ASK
from trials.devices import gpu
from trials.settings import some
from trials.tasks.command import starting
from trials.tasks.function import function_task


def check_study(study: Path, storage: str, address: str | None) -> None:
    """Check a study file, its data, the database and the cluster; print the plan and its time."""
    remarks: list[str] = []
    spec = load(study, inspect=partial(_inspect, remarks))
    refuse_missing(spec.track)
    note(f"{study.name}: no mistakes found")
    for line in (*remarks, *advice(spec)):
        note(f"{study.name}: {line}")
    if others := packages():
        note(f"plugins of other packages: {', '.join(others)}")
    folder = checkpoint_root(spec, None)
    exists = _check_storage(storage, spec)
    if address is not None:
        refuse_unreachable(address)
    has_gpu = spec.resources.gpu != 0 and _finds_gpu(spec, address)
    device = "cuda:0" if has_gpu else "cpu"
    measured: dict[str, float] = {}
    if spec.task["kind"] in BUILT_IN:
        note(f"trying one training step and one evaluation step on {device} ...")
        measured = rehearse(spec, study.name, device, note)
    if spec.task["kind"] != ASK.kind:
        measured = {**first_trial.first_report(spec, study.name, device, note), **measured}
    capacity = None
    if address is None:
        capacity = plan.Capacity(cpus=os.cpu_count() or 1, gpus=gpu.count())
    show(*plan.plan(spec, measured, capacity, terminal_width()))
    workers = plan.workers_of(spec.resources, capacity)
    checkpoint = plan.checkpoint_of(measured)
    if checkpoint is not None:
        for line in plan.checkpoint_warnings(spec, checkpoint, workers, folder):
            note(f"{study.name}: {line}")
    if exists:
        note(
            f"study {spec.study} is already in the database: "
            "resume it, or give the new study another name"
        )
    note(plan.sentence(spec, measured, workers, capacity))
    no_seed = words.without_seed(spec.task)
    if no_seed is not None:
        note(f"{study.name}: {no_seed}")
    if spec.task["kind"] != ASK.kind and "reported_at" not in measured:
        late = f"no report arrived within {duration(first_trial.LIMIT_S)}"
        raise UserError(
            f"{late}, so nothing shows that one will",
            "report more often; a study itself waits longer",
        )


def _finds_gpu(spec: StudySpec, address: str | None) -> bool:
    """True if torch can use a GPU. Raises UserError if a study needs one that it cannot use."""
    if gpu.can_be_used():
        return True
    if address is None and gpu.installed():
        fault = gpu.fault("cuda:0")
        if spec.task["kind"] in BUILT_IN:
            raise UserError(f"this machine has a GPU that cannot be used: {fault}", gpu.ON_CPUS)
        if spec.task["kind"] not in (COMMAND.kind, ASK.kind):
            note(f"if your code uses torch, it will not find the GPU of this machine: {fault}")
    return False


def _check_storage(storage: str, spec: StudySpec) -> bool:
    """Check that the database can be used, without changing it, and has the studies of
    `warm_start`; return whether it has the study. Raises UserError or Unreachable."""
    url = parse_url(storage)
    refuse_in_memory(url)
    if not _has_tables(url):
        named = spec.search.warm_start
        if named not in (None, AUTO):
            empty = f"{display(url)} is empty"
            message = f"search.warm_start: there is no study {named[0]}, because {empty}"
            raise StudyNotFound(message, "name the database of the earlier studies with --storage")
        return False
    with closing(Store.open(storage, create=False)) as store:
        if spec.study in store.study_names():
            _say_changed(store, spec)
            return True
        earlier_studies(store, spec)
        return False


def _say_changed(store: Store, spec: StudySpec) -> None:
    with store.reading() as connection:
        study = find_study(connection, spec.study)
        sessions = environments_of(connection, study)
        files = changed_files(versions_of(connection, study.id), sessions, seal_of(spec))
    if files:
        note(f"not as study {spec.study} has trained with: {some(files)}")


def _has_tables(url: URL) -> bool:
    file = Path(str(url.database))
    if is_sqlite(url) and not file.exists():
        if not file.parent.is_dir():
            message = f"{display(url)}: the folder {file.parent} does not exist"
            raise StoreUnusable(message, f"mkdir -p {file.parent}")
        return False
    with closing(Database(url)) as database, database.connected() as connection:
        return stored_version(connection, url) is not None


def earlier_studies(store: Store, spec: StudySpec) -> list[EarlierStudy]:
    """Read the results of earlier studies for a new one, and print the names of those studies.
    Raises UserError if a study of `warm_start` is not in the database or has nothing to tell."""
    if spec.search.warm_start is None:
        return []
    earlier = warm_start.earlier_studies(store, spec)
    note(warm_start.summary(earlier))
    return earlier


def _inspect(remarks: list[str], task: Mapping[str, Any], base: Path | None) -> list[Problem]:
    """The problems of a built-in task, and sentences to add to the remarks. The user's own code is
    imported by the first trial's process, so that it does nothing in this one."""
    kind, folder = task.get("kind"), base or Path.cwd()
    if kind in BUILT_IN:
        return loading.inspect(task, base, lambda where, what: remarks.append(f"{where}: {what}"))
    if kind == COMMAND.kind:
        remarks += _python_of(task, folder)
    elif isinstance(kind, str) and ":" in kind:
        remarks += function_task.remarks(kind, folder)
    return []


def _python_of(task: Mapping[str, Any], folder: Path) -> list[str]:
    """A sentence on the Python that a command runs, where it is not this one."""
    try:
        program = line_of(task).program
    except TaskError:
        return []  # it is refused elsewhere
    file = None if program is None else starting.file_of(program, folder / task.get("cwd", "."))
    python = None if file is None else starting.other_python(file)
    if python is None:
        return []
    return [f"task.run: runs on {python}, not on {sys.executable}, and has the packages of that"]
