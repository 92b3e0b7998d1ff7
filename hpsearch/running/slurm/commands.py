"""Calls of SLURM's own commands."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence

from hpsearch.errors import Unreachable, UserError


def sbatch(arguments: Sequence[str]) -> str:
    """Submit a job, and return its id. Raises UserError with sbatch's own message if it does not
    accept the job."""
    done = _call("sbatch", "--parsable", *arguments)
    if done.returncode:
        hint = "sinfo lists the partitions, sbatch --help the options"
        raise UserError(f"SLURM did not accept the job: {_message(done)}", hint)
    job, _, _ = done.stdout.strip().partition(";")  # what follows is the name of the cluster
    return job


def scancel(job: str) -> None:
    """Cancel a job."""
    _call("scancel", job)


def queued(name: str) -> str | None:
    """The id of a job of this user that waits or runs under a name; None if there is none. Raises
    Unreachable if SLURM does not answer."""
    done = _call("squeue", "--noheader", "--me", f"--name={name}", "--format=%i %T")
    if done.returncode:
        raise Unreachable(f"SLURM does not answer: {_message(done)}")
    rows = [line.split() for line in done.stdout.splitlines()]
    return next((job for job, state in rows if state != "COMPLETING"), None)


def _call(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which(program)
    if found is None:
        hint = "submit on a login node of a SLURM cluster; elsewhere: hpsearch run STUDY"
        raise UserError(f"there is no {program} on the PATH", hint)
    call = [found, *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False)  # noqa: S603  # no shell


def _message(done: subprocess.CompletedProcess[str]) -> str:
    return "; ".join(done.stderr.split("\n")).strip("; ") or f"exit code {done.returncode}"
