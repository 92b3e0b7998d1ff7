"""The jobs of a study: the text of their script, its files, and calls of sbatch and squeue."""

import re
import secrets
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from hpsearch.errors import HpsearchError, Unreachable, UserError
from trials.checkpoints.disk.whole_folders import whole_file

LEAVE_S = 30
"""Seconds for the driver and Ray to end once the trials have saved. SLURM warns a job in time, or
up to a minute too early (sbatch --signal)."""


_ARRAY = re.compile(r"-a|--array")

_OF_NODES = re.compile(
    r"-[aNGncC]|--(array|nodes|ntasks|gres|gpu|cpus-per|mem|tres-per|exclusive|constraint)"
)
"""The beginnings of the options that say what a job of nodes takes; a driver alone takes less."""


@dataclass(frozen=True)
class StudyJob:
    """A study to submit."""

    study: str
    file: Path  # its study file, absolute
    storage: str  # the URL of its database, absolute
    save_s: float  # how long its trials may take to save their state
    starts_in: Path  # the working folder of its jobs

    @property
    def name(self) -> str:
        """The name of the job with the driver."""
        return f"hpsearch-{self.study}"

    @property
    def folder(self) -> Path:
        """The folder of its script and of what that writes; all nodes share it."""
        return self.file.parent / f"{self.study}.slurm"

    @property
    def script(self) -> Path:
        """The script of all its jobs."""
        return self.folder / "job.sh"

    def log_of(self, job: str) -> Path:
        """The log of the job with the driver."""
        return self.folder / f"{self.name}-{job}.log"


def script_of(job: StudyJob) -> str:
    """The text of the script of a study's jobs."""
    warned_s = round(job.save_s) + LEAVE_S
    options = (
        f"--job-name={job.name}",
        f"--chdir={job.starts_in}",
        f"--output={job.folder}/%x-%j.log",
        "--open-mode=append",
        "--ntasks-per-node=1",
        "--requeue",
        "--no-kill",  # the others go on where a node dies
        f"--signal=B:USR1@{warned_s}",
    )
    settings = {
        "study_file": job.file,
        "folder": job.folder,
        "save_s": round(job.save_s),
        "export PATH": sysconfig.get_path("scripts") + ":$PATH",
        "export HPSEARCH_STORAGE": job.storage,
    }
    shared = resources.files("hpsearch.running.slurm").joinpath("job.sh").read_text("utf-8")
    lines = (
        "#!/bin/bash",
        f"# The jobs of study {job.study}, written by `hpsearch submit`, which replaces this file.",
        *(f"#SBATCH {shlex.quote(option)}" for option in options),
        "",
        *(f"{name}={_quoted(str(value))}" for name, value in settings.items()),
        "",
        shared,
    )
    return "\n".join(lines)


def _quoted(value: str) -> str:
    """A value for the shell, which puts in nothing but the PATH at its end."""
    text, path, _ = value.partition(":$PATH")
    return shlex.quote(text) + path


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
