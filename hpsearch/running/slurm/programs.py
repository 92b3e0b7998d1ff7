"""Calls of SLURM's programs."""

import os
import shutil
import subprocess

from hpsearch.errors import HpsearchError, Unreachable, UserError

PATIENCE_S = 30.0
"""Seconds that a program may take to answer."""

_HIDES = ("SQUEUE_", "SINFO_", "SBATCH_ARRAY_INX", "SBATCH_WAIT", "SLURM_TIME_FORMAT")
"""Beginnings of environment variables that change answers, or how jobs are submitted."""


def call(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Call a program of SLURM. Raises UserError if this machine does not have it, and Unreachable
    if it does not answer."""
    found = shutil.which(program)
    if found is None:
        hint = "submit on a login node of a SLURM cluster; elsewhere: hpsearch run STUDY"
        raise UserError(f"there is no {program} on the PATH", hint)
    environment = {name: os.environ[name] for name in os.environ if not name.startswith(_HIDES)}
    try:
        return subprocess.run(  # noqa: S603  # no shell
            [found, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        what = f"SLURM does not answer: {program} has waited for {PATIENCE_S:.0f} s"
        raise Unreachable(what, "see how it is with: scontrol ping") from None


def answer_of(program: str, *arguments: str) -> str:
    """The output of a program of SLURM; empty where there is none."""
    try:
        done = call(program, *arguments)
    except HpsearchError:
        return ""
    return "" if done.returncode else done.stdout


def message_of(done: subprocess.CompletedProcess[str]) -> str:
    """The error that a program has printed."""
    return "; ".join(done.stderr.split("\n")).strip("; ") or f"exit code {done.returncode}"
