"""`hpsearch check`: find mistakes before anything is paid for, and print what the study would do.

Nothing is written: no database is made, no cluster is started. The study file and its data are
read, the database and the cluster are asked whether they answer, and one training step and one
evaluation step are run on the longest batch.
"""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from hpsearch.adapters import loading
from hpsearch.cli.output import note, show, terminal_width
from hpsearch.domain.facts import EarlierStudy
from hpsearch.errors import StoreUnreachable, StudyNotFound, UserError, hearing
from hpsearch.executors.address import refuse_unreachable
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.url import display, is_sqlite, parse_url, refuse_in_memory
from hpsearch.store.store import Store
from hpsearch.store.version import check_version, stored_version
from hpsearch.study_file import space
from hpsearch.study_file.advice import advice
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import CategoricalParameter, Parameter, StudySpec
from hpsearch.study_file.reading import load, refusal
from hpsearch.study_file.types import AUTO
from hpsearch.tracking.packages import refuse_missing
from hpsearch.views import footprint, plan
from hpsearch.views.plan import Capacity
from hpsearch.wiring import warm_start
from hpsearch.wiring.homes import checkpoint_root
from hpsearch.wiring.workers import goal_of
from trials.contract import ProgramFailed, Setup, Task, TaskError
from trials.descriptions.asked import ASK
from trials.descriptions.builtin import BUILT_IN, describe
from trials.descriptions.command import COMMAND
from trials.descriptions.models import KEY
from trials.devices.memory import keep_to_share
from trials.disk import drafts
from trials.runner import failure_of

HEAVY = ("batch_size", "max_length", "max_target_length", "width", "depth", "lora_rank")
"""Settings whose largest value takes the most memory or disk.

The rehearsal uses that value, so that what does not fit fails here and not later.
"""


def check_study(study: Path, storage: str, address: str | None) -> None:
    """Check a study file, its data, the database and the cluster; rehearse one step; print the
    plan.

    Args:
        study: The study file.
        storage: The database's URL.
        address: The address of a Ray cluster; None for this machine.

    Raises:
        UserError: Mistakes in the study file, the data or the arguments, or a first step that
            fails.
        Unreachable: The database or the cluster does not answer.
    """
    spec = load(study, inspect=loading.inspect)
    refuse_missing(spec.track)
    note(f"{study.name}: no mistakes found")
    for line in advice(spec):
        note(f"{study.name}: {line}")
    folder = checkpoint_root(spec, None)
    exists = _check_storage(storage, spec)
    if address is not None:
        refuse_unreachable(address)
    device = _device(spec)
    rehearsal = {}
    if spec.task["kind"] != ASK.kind:
        note(_what_is_tried(spec, device))
        rehearsal = _rehearse(spec, study.name, device)
    capacity = None if address is not None else _capacity()
    show(*plan.plan(spec, rehearsal, capacity, terminal_width()))
    checkpoint = plan.checkpoint_of(rehearsal)
    if checkpoint is not None:
        workers = plan.workers_of(spec.resources, capacity)
        for line in footprint.warnings(spec, checkpoint, workers, folder):
            note(f"{study.name}: {line}")
    if exists:
        note(
            f"study {spec.study} is already in the database: "
            "resume it, or give the new study another name"
        )


def _check_storage(storage: str, spec: StudySpec) -> bool:
    """Check that the database can be used, without changing it, and has the studies of
    `warm_start`; return whether it has the study.

    Raises:
        UserError: `storage` is not a URL of a supported database, or a study of `warm_start` is not
            in it or has nothing to tell.
        StoreUnreachable: It does not answer, belongs to another program, or its folder is missing
            or read-only.
        SchemaMismatch: It has another schema version.
    """
    url = parse_url(storage)
    refuse_in_memory(url)
    if is_sqlite(url):
        file = Path(str(url.database))
        if not file.exists():
            _check_folder(file.parent, display(url))
            _refuse_named(spec, display(url))
            return False
    with closing(Database(url)) as database, database.connected() as connection:
        version = stored_version(connection, url)
    if version is None:
        _refuse_named(spec, display(url))
        return False
    check_version(version, url)
    with closing(Store.open(storage, create=False)) as store:
        if store.has_study(spec.study):
            return True
        earlier_studies(store, spec)
        return False


def earlier_studies(store: Store, spec: StudySpec) -> list[EarlierStudy]:
    """What earlier studies tell a new one; whose results they are, and which of them are damaged,
    is said at once, since that does not keep the study from running.

    Raises:
        UserError: A study of `warm_start` is not in the database or has nothing to tell.
    """
    if spec.search.warm_start is None:
        return []
    with hearing() as damage:
        told = warm_start.told_to(store, spec)
    for each in damage:
        note(str(each))
    note(warm_start.summary(told))
    return told


def _refuse_named(spec: StudySpec, database: str) -> None:
    """Refuse earlier studies by name where there is no database yet that could hold them."""
    named = spec.search.warm_start
    if named not in (None, AUTO):
        message = f"search.warm_start: there is no study {named[0]}, because {database} is empty"
        raise StudyNotFound(message, "name the database of the earlier studies with --storage")


def _check_folder(folder: Path, database: str) -> None:
    if not folder.is_dir():
        message = f"{database}: the folder {folder} does not exist"
        raise StoreUnreachable(message, f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        message = f"{database}: the folder {folder} cannot be written to"
        raise StoreUnreachable(message, "check its permissions")


def _what_is_tried(spec: StudySpec, device: str) -> str:
    if spec.task["kind"] == COMMAND.kind:
        return "trying the command, until its first report or for 20 seconds ..."
    return f"trying one training step and one evaluation step on {device} ..."


def _rehearse(spec: StudySpec, name: str, device: str) -> dict[str, float]:
    """Build the task and run one training step and one evaluation step; return what was measured.

    Raises:
        SpecError: The task refuses its part of the file.
        UserError: The step diverges, does not fit in memory, or fails in the user's own code.
    """
    share = spec.resources.gpu
    with drafts.temporary("hpsearch-check-") as folder:
        params, budget = _heaviest(spec), trial_budget(spec)
        setup = Setup(params, spec.seed, budget, folder, device=device, goal=goal_of(spec))
        if isinstance(share, float | int) and share > 0:
            keep_to_share(device, share)
        try:
            task: Task = loading.load(spec.task, spec.base)
            return task.rehearse(setup, task.prepare(setup.params))
        except TaskError as error:
            raise refusal(spec.text, name, error.problems) from error
        except Exception as error:
            failure = failure_of(error)
            if failure.kind == "error" and not _runs_code_of_others(spec):
                raise  # a bug of ours: it keeps its traceback
            message = f"the first step fails ({failure.kind}): {failure.text}"
            if isinstance(error, ProgramFailed):
                message = failure.text
            raise UserError(message, _HINTS.get(failure.kind)) from error


_HINTS = {"out_of_memory": "lower max_length or eval_batch_size, or use a smaller model"}


def _runs_code_of_others(spec: StudySpec) -> bool:
    """Whether the task is the user's own, or its model brings code."""
    return spec.task["kind"] not in BUILT_IN or bool(spec.task.get(KEY))


def _heaviest(spec: StudySpec) -> dict[str, Any]:
    """Settings of a run: the fixed ones and a configuration that takes the most memory."""
    table = describe(spec.task["kind"]).settings
    wanted = space.defaults(spec.space, table) or {}
    for name in HEAVY:
        if name in spec.space:
            wanted.update(_largest(name, spec.space[name]))
    monitor = {}
    if table and "monitor" in table:
        monitor["monitor"] = spec.objective.metric
    shared = space.largest(spec.space, spec.settings, table)
    searched = space.completed(spec.space, wanted)
    return {**monitor, **shared, **spec.settings, **searched}


def _largest(name: str, parameter: Parameter) -> dict[str, Any]:
    """The largest value of a parameter, by its name; empty if no choice is a number."""
    if not isinstance(parameter, CategoricalParameter):
        return {name: parameter.high}
    numbers = [choice for choice in parameter.choices if isinstance(choice, int | float)]
    return {name: max(numbers)} if numbers else {}


def _device(spec: StudySpec) -> str:
    import torch  # imported here: only the rehearsal needs it

    return "cuda:0" if spec.resources.gpu != 0 and torch.cuda.is_available() else "cpu"


def _capacity() -> Capacity:
    import torch

    return Capacity(cpus=os.cpu_count() or 1, gpus=torch.cuda.device_count())
