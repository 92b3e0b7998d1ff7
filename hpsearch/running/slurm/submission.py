"""The submission of a study: its files, then its jobs."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from hpsearch.errors import HpsearchError, UserError
from hpsearch.running.slurm.commands import sbatch, scancel
from hpsearch.running.slurm.script import StudyJob, script_of
from trials.checkpoints.disk.whole_files import whole_file

_ARRAY = re.compile(r"-a|--array")
_OF_NODES = re.compile(
    r"-[aNGncC]|--(array|nodes|ntasks|gres|gpu|cpus-per|mem|tres-per|exclusive|constraint)"
)
"""The beginnings of the options that say what a job of nodes takes; a driver alone takes less."""


@dataclass(frozen=True)
class Submitted:
    """The jobs of a study."""

    driver: str  # the id of the job with the driver
    nodes: str | None = None  # that of the array of nodes; None if they are in the same job


def submit(job: StudyJob, options: Sequence[str], for_driver: Sequence[str]) -> Submitted:
    """Write the files of a study and submit its jobs: one job, or with `--array` among sbatch's
    options, one for the driver, with the options `for_driver` too, and an array of nodes. Raises
    UserError if a file cannot be written, or SLURM does not accept a job."""
    groups = _grouped(options)
    is_array = any(_ARRAY.match(group[0]) for group in groups)
    if for_driver and not is_array:
        what = "--driver is for the job of the driver, which only --array has"
        raise UserError(what, "give its options to the job itself")
    _write(job)
    script = str(job.script)
    if not is_array:
        return Submitted(sbatch([*options, script]))
    shared = [word for group in groups if not _OF_NODES.match(group[0]) for word in group]
    driver = sbatch([*shared, *for_driver, script, "head"])
    together = (f"--job-name={job.name}-{driver}", f"--dependency=after:{driver}")
    try:
        nodes = sbatch([*options, *together, script, "node", driver])
    except HpsearchError:
        scancel(driver)
        raise
    return Submitted(driver, nodes)


def _grouped(options: Sequence[str]) -> list[list[str]]:
    """Each option with the words that are its value."""
    groups: list[list[str]] = []
    for word in options:
        if word.startswith("-") or not groups:
            groups.append([word])
        else:
            groups[-1].append(word)
    return groups


def _write(job: StudyJob) -> None:
    """Write the script, and the token of its Ray clusters; nobody else may read either."""
    token = job.folder / "token"
    try:
        job.folder.mkdir(mode=0o700, exist_ok=True)
        token.touch(mode=0o600)
        token.write_text(secrets.token_hex(32), "utf-8")
        with whole_file(job.script) as unfinished:
            unfinished.touch(mode=0o700)
            unfinished.write_text(script_of(job), "utf-8")
    except OSError as error:
        message = f"{job.folder} cannot be written: {error.strerror or error}"
        raise UserError(message, "put the study file into a folder that all nodes share") from error
