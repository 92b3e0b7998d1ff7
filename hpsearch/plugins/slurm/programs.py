"""Calls of SLURM's programs."""

import os
import shutil
import subprocess

from hpsearch.errors import HpsearchError, Unreachable, UserError

PATIENCE_S = 30.0  # that a program may take to answer
_HIDES = ("SQUEUE_", "SINFO_", "SBATCH_ARRAY_INX", "SBATCH_WAIT", "SLURM_TIME_FORMAT")
"""Beginnings of environment variables that change answers, or how jobs are submitted."""


class Refused(HpsearchError):
    """A program of SLURM that has ended with an error, which is the message."""


def call(program: str, *arguments: str) -> str:
    """The output of a program of SLURM. Raises Refused if it has ended with an error, UserError if
    this machine does not have it, and Unreachable if it does not answer."""
    found = shutil.which(program)
    if found is None:
        hint = "submit on a login node of a SLURM cluster; elsewhere: hpsearch run STUDY"
        raise UserError(f"there is no {program} on the PATH", hint)
    environment = {name: os.environ[name] for name in os.environ if not name.startswith(_HIDES)}
    try:
        done = subprocess.run(  # noqa: S603  # no shell
            [found, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        what = f"SLURM does not answer: {program} has waited for {PATIENCE_S:.0f} s"
        raise Unreachable(what, "see how it is with: scontrol ping") from None
    if done.returncode:
        message = "; ".join(done.stderr.split("\n")).strip("; ")
        raise Refused(message or f"{program}: exit code {done.returncode}")
    return done.stdout


def answer_of(program: str, *arguments: str) -> str:
    """The output of a program; empty where there is none."""
    try:
        return call(program, *arguments)
    except HpsearchError:
        return ""
