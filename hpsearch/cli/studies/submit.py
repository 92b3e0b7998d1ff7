"""`hpsearch submit`: a study as jobs of SLURM."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from hpsearch.adapters import loading
from hpsearch.cli.output import note
from hpsearch.cli.studies.run import refuse_asked
from hpsearch.domain.records import StudyState
from hpsearch.errors import StudyHeld, UserError
from hpsearch.slurm.commands import queued
from hpsearch.slurm.script import StudyJob
from hpsearch.slurm.submission import submit
from hpsearch.store.connecting.url import file_of, parse_url, refuse_in_memory
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import load
from hpsearch.study_run.ownership import refuse_if_held
from hpsearch.tracking.processes import refuse_missing

KILLED_AFTER = 2
"""A worker that has not saved after so many times `resources.stop_grace` is killed."""


def submit_study(path: Path, options: Sequence[str], for_driver: str, storage: str) -> None:
    """Submit a study to SLURM, and print the id of the job with its driver. `options` are sbatch's;
    `for_driver` are more of them, in one text, for the job of a driver alone.

    Raises:
        UserError: A mistake in the study file or the arguments, a study that has ended, or a job
            that SLURM does not accept.
        StudyHeld: A driver owns the study, or a job of it waits or runs.
        Unreachable: The database or SLURM does not answer.
    """
    if str(path).startswith("-"):
        example = "hpsearch submit study.yaml --partition gpu --time 4:00:00"
        raise UserError("the study file comes first", f"for example: {example}")
    spec = load(path, inspect=loading.inspect)
    refuse_asked(spec)
    refuse_missing(spec.track)
    url = parse_url(storage)
    refuse_in_memory(url)
    file = file_of(url)
    if file is None or file.exists():
        _refuse_held_or_ended(storage, spec)
    study_job = StudyJob(
        spec.study,
        path.resolve(),
        storage if file is None else f"sqlite:///{file}",
        KILLED_AFTER * spec.resources.stop_grace_s,
        Path.cwd(),
    )
    _refuse_queued(study_job)
    submitted = submit(study_job, options, shlex.split(for_driver))
    note(f"study {spec.study} is job {submitted.driver}, by {study_job.script}")
    if submitted.nodes is not None:
        note(f"its nodes are the tasks of job {submitted.nodes}; they may start later, and again")
    note(f"see the queue:     squeue --me --job {submitted.driver}")
    note(f"read what it says: tail -F {shlex.quote(str(study_job.log_of(submitted.driver)))}")
    note(f"see its progress:  hpsearch status {spec.study}")
    note(f"save and stop it:  hpsearch stop {spec.study}")
    print(submitted.driver)  # noqa: T201 - this is the result


def _refuse_held_or_ended(storage: str, spec: StudySpec) -> None:
    with closing(Store.open(storage)) as store:
        if spec.study not in store.study_names():
            return
        refuse_if_held(store, spec.study)
        record = store.find_study(spec.study)
    if record.state is StudyState.FINISHED:
        raise UserError(
            f"study {spec.study} has already ended: {record.reason}",
            f"to continue it, raise a limit on a node: srun hpsearch resume {spec.study} "
            "--trials N - or give the new study another name",
        )
    note(f"study {spec.study} is continued as it was created")


def _refuse_queued(study_job: StudyJob) -> None:
    job = queued(study_job.name)
    if job is not None:
        raise StudyHeld(
            f"study {study_job.study} is job {job} already",
            f"see it with: squeue --job {job} - save and stop it: hpsearch stop "
            f"{study_job.study} - or take it out of the queue: scancel {job}",
        )
