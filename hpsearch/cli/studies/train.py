"""`hpsearch train`: train a configuration with the full budget, and keep the model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.options import FinalTraining
from hpsearch.cli.output import TrainOn, command, note
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import count
from hpsearch.domain.plugins.offers import LibraryPlugin
from hpsearch.domain.records import Environment
from hpsearch.errors import Interrupted, UserError
from hpsearch.running.creation.study import environment
from hpsearch.running.loading import library_of, load
from hpsearch.running.reproduction import Comparison
from hpsearch.running.study_run.workers import worker_config
from hpsearch.store.reading.attempts import changes, recorded_arithmetic, session_at
from hpsearch.store.reading.best import best_trials
from hpsearch.store.reading.queries import StudyHead, TrialDetail, TrialRow, trial_detail
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import origin_of, parse, refusal
from hpsearch.views.result import Retraining, retraining_of, to_train
from hpsearch.views.words import expected, may_change
from trials.contract import ROUNDS, TaskError
from trials.descriptions.builtin import BUILT_IN, describe
from trials.running import arithmetic
from trials.running.arithmetic import Arithmetic

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from trials.tasks.final.training import Plan


def train_model(name: str, wanted: FinalTraining, storage: str) -> None:
    """Train a trial's configuration with the full budget; write the next version of the model."""
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        detail = _chosen(connection, study, wanted.trial)
        trial = detail.trial
        began = min((float(each["started"]) for each in detail.attempts), default=math.inf)
        session = session_at(connection, study, began)
        recorded = recorded_arithmetic(connection, study, trial.number)
    spec = _recorded_spec(study)
    if spec.task["kind"] not in BUILT_IN:
        message = f"study {study.name} searches your own code, which this command cannot train"
        raise UserError(message, _other_way(study, trial))
    value = "" if trial.value is None else f" with {trial.value:.6g}"
    in_full = f", {expected(trial)} if trained to the end" if may_change(trial) else ""
    note(f"trial {trial.number} of study {study.name}, {trial.state.value}{value}{in_full}")
    home = (wanted.out / study.name).absolute()
    joined = wanted.data is TrainOn.ALL or spec.budget.per_trial.folds is not None
    plan = _plan(study, spec, trial, session, recorded, home, joined=joined)
    reports = {float(each["resource"]): each["metrics"] for each in detail.reports}
    comparison = Comparison(reports, ended=trial.state is State.COMPLETE)
    version = _train(study, spec, plan, home, comparison)
    if version is None:
        interrupted = "interrupted; everything is saved"
        raise Interrupted(interrupted, "to continue, repeat the same command")
    if reports and not joined and spec.budget.per_trial.unit not in ROUNDS:
        _tell(comparison, trial.number)
    note(f"the model is in {version}")
    print(version)  # noqa: T201 - this is the result


def _tell(comparison: Comparison, number: int) -> None:
    comparison.end()
    if comparison.difference is not None:
        note(f"not the same as trial {number}: {comparison.difference}")
    elif comparison.same:
        note(f"the same as trial {number}, bit for bit: {count(comparison.same, 'report')}")


def _other_way(study: StudyHead, trial: TrialRow) -> str:
    commands = [each for each, _ in to_train(study, trial.number, command)]
    if retraining_of(study.content) is Retraining.FILE:
        return f"train it with: {' - and then: '.join(commands)}"
    if found := trial.best_checkpoint or trial.checkpoint:
        return f"the checkpoint of trial {trial.number} is {found}"
    again = (library_of(study.content["task"]) or LibraryPlugin).again
    return f"trial {trial.number} kept no checkpoint; {again}: {commands[0]}"


def _train(
    study: StudyHead, spec: StudySpec, plan: Plan, home: Path, comparison: Comparison
) -> Path | None:
    from trials.running.interruption import interruption
    from trials.tasks.final import training as final  # imported here: it brings torch

    try:
        task = load(spec.task, spec.base)
        if "test" not in spec.task:
            note("note: the task has no test file, so the model is not tested on unseen data")
        with interruption() as asked:
            return final.train(task, plan, home, note, asked, comparison.add)
    except TaskError as error:
        raise refusal(study.spec, f"{study.name} (study file)", error.problems) from error


def _plan(
    study: StudyHead,
    spec: StudySpec,
    trial: TrialRow,
    session: Environment | None,
    recorded: Arithmetic | None,
    home: Path,
    *,
    joined: bool,
) -> Plan:
    import torch

    from trials.tasks.final.training import Plan

    config = worker_config(spec, home)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    now = environment(spec, device)
    settings = {**config.settings, **trial.params}
    known = describe(spec.task["kind"]).settings
    params, computed = arithmetic.adopt(
        recorded, settings, device, threads=config.threads, known=known
    )
    found = [] if session is None else changes(session, now)
    if recorded is not None:
        found += arithmetic.differences(recorded, computed)
    if found:
        listed = ", ".join(dict.fromkeys(found))
        note(f"note: the trial was trained differently, so its values may differ: {listed}")
    provenance = {
        "study": study.name,
        "trial": trial.number,
        "value": trial.value,
        "task": dict(spec.task),
        "hpsearch": now.packages.get("hpsearch"),
        "packages": now.packages,
    }
    return Plan(
        params=params,
        seed=trial.seed,
        budget=config.budget.each or config.budget,
        joined=joined,
        device=device,
        goal=config.goal,
        provenance=provenance,
        arithmetic=computed,
    )


def _chosen(connection: Connection, study: StudyHead, number: int | None) -> TrialDetail:
    """The trial of that number, or the best. Raises UserError if there is none, or it failed."""
    if number is None:
        ranked = best_trials(connection, study, 1)
        if not ranked:
            message = f"no trial of {study.name} has a value yet"
            raise UserError(message, f"see its progress: hpsearch status {study.name}")
        number = ranked[0].trial.number
    detail = trial_detail(connection, study, number)
    trial = detail.trial
    if trial.state is State.FAILED:
        message = f"trial {number} of {study.name} failed ({trial.error_kind}: {trial.error_text})"
        raise UserError(message, f"choose another: hpsearch best {study.name} --top 5")
    return detail


def _recorded_spec(study: StudyHead) -> StudySpec:
    """The study file of a study. Raises UserError if it was not made from one."""
    if origin_of(study.content) is not None:
        raise UserError(
            f"study {study.name} was imported, so it has no task to train",
            f"its parameters: hpsearch best {study.name} --format json",
        )
    if not study.spec or study.base is None:
        raise UserError(
            f"study {study.name} was not made from a study file, so it has no task to train"
        )
    name = f"{study.name} (study file)"
    return parse(study.spec, base=Path(study.base), name=name, recorded=True)
