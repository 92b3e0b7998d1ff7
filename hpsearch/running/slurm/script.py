"""The script of a study's jobs: what SLURM is told, what is special to the study, and `job.sh`."""

from __future__ import annotations

import shlex
import sysconfig
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

LEAVE_S = 30
"""Seconds for the driver and Ray to end once the trials have saved. SLURM warns a job in time, or
up to a minute too early (sbatch --signal)."""


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
