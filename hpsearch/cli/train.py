"""`hpsearch train`: train the chosen configuration for good, in this process, and keep the model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hpsearch import spec_file, wiring
from hpsearch.advice import code_that_runs
from hpsearch.cli.opening import chosen_study, reading
from hpsearch.cli.output import ExportTo, TrainOn, note
from hpsearch.errors import Interrupted, UserError
from hpsearch.lifecycle import State
from hpsearch.spec import StudySpec
from hpsearch.store.queries import StudyHead, TrialRow, best_trials, trial_detail
from trials import tasks
from trials.contract import TaskError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from trials.final import Plan


def train(name: str, number: int | None, out: Path, data: TrainOn, export: ExportTo | None, storage: str) -> None:
    """Train a trial's configuration at the full budget and write the next version of the study's model.

    Args:
        name: The study.
        number: The trial; None for the best.
        out: The folder of all models; the study's versions go into a folder of its name.
        data: What to learn from.
        export: A format to write the model in, too.
        storage: The database's URL.

    Raises:
        UserError: There is no such trial, it failed, or its task cannot be trained like this.
        Interrupted: A signal stopped it, with everything saved.
    """
    with reading(storage) as connection:
        study = chosen_study(connection, name)
        trial = _chosen(connection, study, number)
    spec = _spec_of(study)
    for line in code_that_runs(spec):
        note(line)
    if spec.task["kind"] not in tasks.BUILT_IN:
        raise UserError(
            f"study {study.name} searches a function, whose training is its own",
            f"train it with: hpsearch best {study.name} --format yaml > winner.yaml - and then: "
            "python -m trials winner.yaml --out DIR",
        )
    note(f"trial {trial.number} of study {study.name}, {trial.state.value}" + _worth(trial))
    home = (out / study.name).absolute()
    version = _train(study, trial, spec, home, data, export)
    if version is None:
        raise Interrupted("interrupted, everything is saved", "the same command goes on")
    note(f"the model is in {version}")
    print(version)  # noqa: T201 - this is the result


def _train(
    study: StudyHead, trial: TrialRow, spec: StudySpec, home: Path, data: TrainOn, export: ExportTo | None
) -> Path | None:
    from trials import final  # imported here: it brings torch
    from trials.export import ExportError
    from trials.interruption import Interruption

    plan = _plan(study, trial, spec, home, data, export)
    try:
        task = tasks.load(spec.task, spec.base)
        if "test" not in spec.task:
            note("note: the task names no test file, so nothing unseen tells how good the model is")
        with Interruption() as interruption:
            return final.train(task, plan, home, note, lambda: interruption.asked)
    except TaskError as error:
        raise spec_file.refusal(study.spec, f"{study.name} (study file)", error.problems) from error
    except ExportError as error:
        raise UserError(
            str(error), "train without --export, or with the other format: what is trained is kept"
        ) from error


def _plan(
    study: StudyHead, trial: TrialRow, spec: StudySpec, home: Path, data: TrainOn, export: ExportTo | None
) -> Plan:
    import torch

    from trials.export import Export
    from trials.final import Plan

    config = wiring.worker_config(spec, home)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    packages = wiring.environment(spec, device).packages
    return Plan(
        params={**config.settings, **trial.params},
        seed=trial.seed,
        budget=config.budget,
        joined=data is TrainOn.ALL,
        device=device,
        export=Export(export.value) if export is not None else None,
        provenance={
            "study": study.name,
            "trial": trial.number,
            "value": trial.value,
            "task": dict(spec.task),
            "hpsearch": packages.get("hpsearch"),
            "packages": packages,
        },
    )


def _chosen(connection: Connection, study: StudyHead, number: int | None) -> TrialRow:
    """The trial of that number, or the best.

    Raises:
        UserError: There is none, or it failed.
    """
    if number is None:
        ranked = best_trials(connection, study, 1)
        if not ranked:
            raise UserError(
                f"no trial of {study.name} has a value yet", f"see how it goes: hpsearch status {study.name}"
            )
        return ranked[0].trial
    trial = trial_detail(connection, study, number).trial
    if trial.state is State.FAILED:
        raise UserError(
            f"trial {number} of {study.name} failed ({trial.error_kind}: {trial.error_text})",
            f"choose one that did not: hpsearch best {study.name} --top 5",
        )
    return trial


def _spec_of(study: StudyHead) -> StudySpec:
    if not study.spec or study.base is None:
        raise UserError(f"study {study.name} was not made from a study file, so it has no task to train")
    return spec_file.parse(study.spec, base=Path(study.base), name=f"{study.name} (study file)")


def _worth(trial: TrialRow) -> str:
    return "" if trial.value is None else f" with {trial.value:.6g}"
