"""`hpsearch check`: find mistakes before anything is paid for, and print what the study would do.

Nothing of it remains: no database is made, no cluster is started. The study file and its data are
read, the database and the cluster are asked whether they answer. A built-in task trains and
evaluates one step on the longest batch; then one trial of any task trains up to its first report,
in a process of its own.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlalchemy import URL

from hpsearch.adapters import loading
from hpsearch.brain.trial_log import lacking
from hpsearch.checkpoint_folders import checkpoint_root
from hpsearch.cli.output import note, show, terminal_width
from hpsearch.creation import warm_start
from hpsearch.domain import events as ev
from hpsearch.domain.facts import EarlierStudy
from hpsearch.errors import StoreUnreachable, StudyNotFound, UserError
from hpsearch.executors.address import refuse_unreachable
from hpsearch.executors.first_report import Tried, try_out
from hpsearch.forecast import footprint, plan
from hpsearch.forecast.plan import Capacity
from hpsearch.forecast.sentence import sentence
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.url import display, is_sqlite, parse_url, refuse_in_memory
from hpsearch.store.store import Store
from hpsearch.store.version import stored_version
from hpsearch.study_file import space
from hpsearch.study_file.advice import advice
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load, refusal
from hpsearch.study_file.types import AUTO
from hpsearch.study_run.workers import goal_of, worker_config
from hpsearch.tracking.processes import refuse_missing
from hpsearch.words.numbers import duration, number, pairs
from trials.contract import Problem, Rehearsed, Setup, TaskError
from trials.descriptions.builtin import BUILT_IN, describe
from trials.descriptions.description import ASK
from trials.descriptions.models import KEY
from trials.descriptions.report_pattern import visible
from trials.devices.memory import keep_to_share
from trials.disk import drafts
from trials.disk.log_file import OURS
from trials.running.runner import failure_of
from trials.tasks.command.program import exit_text

LIMIT_S = 120.0
"""How long a trial may take to its first report."""
MAIN_GUARD = 'if it trains when it is imported, put that under if __name__ == "__main__"'
HOW_TO_REPORT = "report once after each part of its budget: docs/own-training-code.md, command.md"
SHOWN_LINES, SHOWN_LETTERS = 12, 200
"""Limits of a trial's printed lines that are shown."""

HEAVY = {"batch_size", "max_length", "max_target_length", "width", "depth", "lora_rank"}
"""Settings whose largest value takes the most memory or disk.

The rehearsal uses that value, so that what does not fit fails here and not later.
"""


def check_study(study: Path, storage: str, address: str | None) -> None:
    """Check a study file, its data, the database at a URL and the cluster at an address, if one is
    given; train up to a first report; print the plan, and how long the study will take.

    Raises:
        UserError: Mistakes in the study file, the data or the arguments, a first step that fails,
            or a first trial without a report in time, or with one that the study cannot use.
        Unreachable: The database or the cluster does not answer.
    """
    spec = load(study, inspect=_inspect)
    refuse_missing(spec.track)
    note(f"{study.name}: no mistakes found")
    for line in advice(spec):
        note(f"{study.name}: {line}")
    folder = checkpoint_root(spec, None)
    exists = _check_storage(storage, spec)
    if address is not None:
        refuse_unreachable(address)
    device = _device(spec)
    measured: dict[str, float] = {}
    if spec.task["kind"] in BUILT_IN:
        note(f"trying one training step and one evaluation step on {device} ...")
        measured = _rehearse(spec, study.name, device)
    if spec.task["kind"] != ASK.kind:
        measured = {**_first_report(spec, study.name, device), **measured}
    capacity = None if address is not None else _capacity()
    show(*plan.plan(spec, measured, capacity, terminal_width()))
    workers = plan.workers_of(spec.resources, capacity)
    checkpoint = plan.checkpoint_of(measured)
    if checkpoint is not None:
        for line in footprint.warnings(spec, checkpoint, workers, folder):
            note(f"{study.name}: {line}")
    if exists:
        note(
            f"study {spec.study} is already in the database: "
            "resume it, or give the new study another name"
        )
    note(sentence(spec, measured, workers))
    if spec.task["kind"] != ASK.kind and "reported_at" not in measured:
        message = f"no report arrived within {duration(LIMIT_S)}, so nothing shows that one will"
        raise UserError(message, "report more often; a study itself waits longer")


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
            return True
        earlier_studies(store, spec)
        return False


def _has_tables(url: URL) -> bool:
    file = Path(str(url.database))
    if is_sqlite(url) and not file.exists():
        if not file.parent.is_dir():
            message = f"{display(url)}: the folder {file.parent} does not exist"
            raise StoreUnreachable(message, f"mkdir -p {file.parent}")
        return False
    with closing(Database(url)) as database, database.connected() as connection:
        return stored_version(connection, url) is not None


def earlier_studies(store: Store, spec: StudySpec) -> list[EarlierStudy]:
    """Read the results of earlier studies for a new one, and print the names of those studies.

    Raises:
        UserError: A study of `warm_start` is not in the database or has nothing to tell.
    """
    if spec.search.warm_start is None:
        return []
    earlier = warm_start.earlier_studies(store, spec)
    note(warm_start.summary(earlier))
    return earlier


def _inspect(task: Mapping[str, Any], base: Path | None) -> list[Problem]:
    """The problems of a built-in task. The user's own code is imported by the first trial's
    process, so that it does nothing in this one."""
    return loading.inspect(task, base) if task.get("kind") in BUILT_IN else []


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
            task = loading.load(spec.task, spec.base)
            assert isinstance(task, Rehearsed), "every built-in task is"
            return task.rehearse(setup, task.prepare(setup.params))
        except TaskError as error:
            raise refusal(spec.text, name, error.problems) from error
        except Exception as error:
            failure = failure_of(error)
            if failure.kind == "error" and not spec.task.get(KEY):
                raise  # a bug of ours: it keeps its traceback
            hint = "lower max_length or eval_batch_size, or use a smaller model"
            is_full = failure.kind == "out_of_memory"
            message = f"the first step fails ({failure.kind}): {failure.text}"
            raise UserError(message, hint if is_full else None) from error


def _first_report(spec: StudySpec, name: str, device: str) -> dict[str, float]:
    """Train one trial up to its first report; return what was measured.

    Raises:
        SpecError: The task refuses its part of the file.
        UserError: The trial fails or ends without a report, or its report is not one that the
            study can use.
    """
    known = space.defaults(spec.space, describe(spec.task["kind"]).settings) or {}
    params = space.completed(spec.space, spec.enqueue[0] if spec.enqueue else known)
    note(f"trying one trial until its first report, for at most {duration(LIMIT_S)} ...")
    if params:
        note(f"with {pairs(params)}")
    share = spec.resources.gpu
    with drafts.temporary("hpsearch-check-") as folder:
        config = worker_config(spec, folder)
        order = ev.Launch(0, 1, "check", params, spec.seed, until=0.0)
        of_device = 1.0 if isinstance(share, str) or share == 0 else float(share)
        tried = try_out(config, order, device, of_device, LIMIT_S)
        log = Path(str(config.log(0, 1)))
        printed = _printed(log) if log.is_file() else []
    if isinstance(tried.news, ev.Reported):
        return _measured(spec, tried.news, tried)
    if isinstance(tried.news, list):
        raise refusal(spec.text, name, tried.news)
    if printed:
        note("the first trial has printed, at last:")
    for line in printed:
        note(f"  {line[:SHOWN_LETTERS]}")
    if isinstance(tried.news, ev.Failed):
        failure = tried.news
        raise UserError(f"the first trial fails ({failure.kind.value}): {failure.text}")
    if tried.news is not None:
        raise UserError("the first trial ends without a report", HOW_TO_REPORT)
    if tried.exit_code is not None:
        raise _process_ended(spec, tried.exit_code, imported=tried.imported)
    after = f"no report within {duration(tried.seconds)}"
    if tried.imported:
        note(f"{after}; the trial was still running, and nothing had failed")
    else:
        note(f"{after}: {spec.task['kind']} was still being imported; {MAIN_GUARD}")
    return {}


def _printed(log: Path) -> list[str]:
    """The last lines that a trial has printed."""
    lines = [visible(line) for line in log.read_bytes().split(b"\n")]
    own = [line for line in lines if line.strip() and not line.startswith(OURS)]
    return own[-SHOWN_LINES:]


def _measured(spec: StudySpec, report: ev.Reported, tried: Tried) -> dict[str, float]:
    """What a first report tells of the study.

    Raises:
        UserError: It lacks a metric that the study needs, or that is not finite.
    """
    unit = spec.budget.per_trial.unit.value
    at = f"{number(report.resource)} {unit}"
    note(f"first report: at {at}, after {duration(tried.seconds)}: {pairs(report.metrics)}")
    problem = lacking(spec, report)
    if problem is not None:
        raise UserError(problem, "report it, or change objective or constraints")
    for objective in spec.objectives:
        value = report.metrics[objective.metric]
        if not math.isfinite(value):
            message = f"the first report, at {at}, has {objective.metric} {value}"
            raise UserError(message, "it must be a finite number; try other parameters")
    trained_s = tried.seconds if report.elapsed is None else report.elapsed
    measured = {
        "reported_at": report.resource,
        "reported_after_s": trained_s,
        "start_up_seconds": tried.start_up_s,
        "process_seconds": max(0.0, tried.seconds - trained_s - tried.start_up_s),
    }
    if report.held is not None:
        measured |= {"checkpoint_bytes": report.held.now, "weights_bytes": report.held.ended}
    return measured


def _process_ended(spec: StudySpec, exit_code: int, *, imported: bool) -> UserError:
    """The error that the process of the first trial ended by itself."""
    how = exit_text(exit_code)
    if not imported:
        message = f"importing {spec.task['kind']} ended its process with {how}"
        return UserError(message, MAIN_GUARD)
    hint = "lower what takes memory, such as the batch size" if exit_code == -9 else None
    return UserError(f"the process of the first trial ended with {how}", hint)


def _heaviest(spec: StudySpec) -> dict[str, Any]:
    """Settings of a run: the fixed ones and a configuration that takes the most memory."""
    table = describe(spec.task["kind"]).settings
    wanted = space.defaults(spec.space, table) or {}
    for name in spec.space.keys() & HEAVY:
        largest = space.largest_value(spec.space[name])
        if largest is not None:
            wanted[name] = largest
    monitor = {}
    if table and "monitor" in table:
        monitor["monitor"] = spec.objective.metric
    shared = space.largest(spec.space, spec.settings, table)
    searched = space.completed(spec.space, wanted)
    return {**monitor, **shared, **spec.settings, **searched}


def _device(spec: StudySpec) -> str:
    import torch  # imported here: only the rehearsal needs it

    return "cuda:0" if spec.resources.gpu != 0 and torch.cuda.is_available() else "cpu"


def _capacity() -> Capacity:
    import torch

    return Capacity(cpus=os.cpu_count() or 1, gpus=torch.cuda.device_count())
