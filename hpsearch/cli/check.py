"""`hpsearch check`: find every mistake before anything is paid for, and say what the study would do.

Nothing is written: no database is made, no cluster started. The study file and its data are read, the database and
the cluster's door are knocked at, and one training step and one evaluation step are run on the longest batch.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from hpsearch import space, spec_file, wiring
from hpsearch.advice import advice
from hpsearch.cli.output import note, room, show
from hpsearch.errors import StoreUnreachable, UserError
from hpsearch.executors.address import refuse_unreachable
from hpsearch.levels import trial_budget
from hpsearch.spec import CategoricalParameter, StudySpec
from hpsearch.store.database import Database
from hpsearch.store.store import Store
from hpsearch.store.url import display, in_memory, is_sqlite, parse_url
from hpsearch.store.version import check_version, stored_version
from hpsearch.views import plan
from hpsearch.views.plan import Machine
from trials import tasks
from trials.contract import Setup, Task, TaskError
from trials.runner import failure_of
from trials.tasks.pretrained import KEY

HEAVY = ("batch_size", "max_length")
"""Settings whose largest value takes the most memory: the rehearsal uses it, so that it fails here and not later."""


def check(study: Path, storage: str, address: str | None) -> None:
    """Check a study file, its data, the database and the cluster; rehearse one step; print the plan.

    Args:
        study: The study file.
        storage: The database's URL.
        address: Of a Ray cluster; None for this machine.

    Raises:
        UserError: Mistakes in the study file, the data or the arguments, or a first step that fails.
        Unreachable: The database or the cluster does not answer.
    """
    spec = spec_file.load(study)
    note(f"{study.name}: no mistakes found")
    for line in advice(spec):
        note(f"{study.name}: {line}")
    wiring.checkpoint_folder(spec, None)
    taken = _check_storage(storage, spec.study)
    if address is not None:
        refuse_unreachable(address)
    device = _device(spec)
    note(f"one training and one evaluation step on {device} ...")
    rehearsal = _rehearse(spec, study.name, device)
    show(*plan.plan(spec, rehearsal, None if address is not None else _machine(), room()))
    if taken:
        note(f"study {spec.study} is already in the database: resume it, or give the new one another name")


def _check_storage(storage: str, name: str) -> bool:
    """See that the database can be used, without making or changing one; return whether it has the study.

    Raises:
        UserError: Not a URL of a supported database.
        StoreUnreachable: It does not answer, or belongs to another program, or its folder is missing or read-only.
        SchemaMismatch: It is of another version.
    """
    url = parse_url(storage)
    if in_memory(url):
        raise UserError("a database in memory ends with the program", "name a file, such as sqlite:///hpsearch.db")
    if is_sqlite(url) and not Path(str(url.database)).exists():
        _check_folder(Path(str(url.database)).parent, display(url))
        return False
    with closing(Database(url)) as database, database.connected() as connection:
        version = stored_version(connection, url)
    if version is None:
        return False
    check_version(version, url)
    with closing(Store.open(storage, create=False)) as store:
        return name in store.study_names()


def _check_folder(folder: Path, shown: str) -> None:
    if not folder.is_dir():
        raise StoreUnreachable(f"{shown}: the folder {folder} does not exist", f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise StoreUnreachable(f"{shown}: the folder {folder} cannot be written to", "check its permissions")


def _rehearse(spec: StudySpec, name: str, device: str) -> dict[str, float]:
    """Build the task and run one training step and one evaluation step; return what was measured.

    Raises:
        SpecError: The task refuses its part of the file.
        UserError: The step diverges, does not fit in memory, or fails in the user's own code.
    """
    with tempfile.TemporaryDirectory(prefix="hpsearch-check-") as folder:
        setup = Setup(_heaviest(spec), spec.seed, trial_budget(spec), Path(folder), device=device)
        try:
            task: Task = tasks.load(spec.task, spec.base)
            return task.rehearse(setup, task.prepare(setup.params))
        except TaskError as error:
            raise spec_file.refusal(spec.text, name, error.problems) from error
        except Exception as error:
            failure = failure_of(error)
            if failure.kind == "error" and spec.task["kind"] in tasks.BUILT_IN and not spec.task.get(KEY):
                raise  # a bug, unless it is one of code that came with a model
            hint = (
                "lower max_length or eval_batch_size, or shrink the model" if failure.kind == "out_of_memory" else None
            )
            raise UserError(f"the first step fails ({failure.kind}): {failure.text}", hint) from error


def _heaviest(spec: StudySpec) -> dict[str, Any]:
    """Settings of a run: the fixed ones and a configuration, with the largest of what takes memory."""
    table = tasks.describe(spec.task["kind"]).settings
    wanted = space.defaults(spec.space, table) or {}
    for name in HEAVY:
        if (parameter := spec.space.get(name)) is None:
            continue
        if isinstance(parameter, CategoricalParameter):
            numbers = [choice for choice in parameter.choices if isinstance(choice, int | float)]
            wanted.update({name: max(numbers)} if numbers else {})
        else:
            wanted[name] = parameter.high
    monitor = {"monitor": spec.objective.metric} if "monitor" in (table or {}) else {}
    return {**monitor, **spec.settings, **space.completed(spec.space, wanted)}


def _device(spec: StudySpec) -> str:
    import torch  # imported here: only the rehearsal needs it

    return "cuda:0" if spec.resources.gpu != 0 and torch.cuda.is_available() else "cpu"


def _machine() -> Machine:
    import torch

    return Machine(cpus=os.cpu_count() or 1, gpus=torch.cuda.device_count())
