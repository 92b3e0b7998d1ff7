"""The jobs of a study: the text of their script, its files, and calls of sbatch."""

import os
import re
import secrets
import shlex
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from hpsearch.domain.plugins.queued import refuse_queued
from hpsearch.errors import HpsearchError, UserError
from hpsearch.plugins.slurm.limits import refuse_beyond
from hpsearch.plugins.slurm.options import SbatchOption, read_options
from hpsearch.plugins.slurm.programs import Refused, answer_of, call
from hpsearch.plugins.slurm.queue import jobs_in, mark_of
from trials.checkpoints.disk.whole_folders import whole_file

LEAVE_S = 30
"""Seconds for the driver and Ray to end once the trials have saved. SLURM warns a job in time, or
up to a minute too early (sbatch --signal)."""

_OF_NODES = re.compile(
    r"array|nodes|ntasks|tasks-per|gres|gpus|gpu-|cpus-per|mem$|mem-per|mincpus|tres-per|exclusive"
    r"|constraint|prefer|nodelist|nodefile|extra-node|cores-per|sockets-per|threads-per|contiguous"
    r"|licenses|tmp|oversubscribe|overcommit|switches|spread-job|use-min-nodes"
)
"""The options that say what a job of nodes takes; a driver alone takes less."""

_BEFORE_PRELUDES = """\
_hps_arguments=("$@") _hps_path=$PATH
set -- # what a prelude sources gets no arguments of ours
trap 'echo "hpsearch: a line of $prelude failed on $SLURMD_NODENAME: $BASH_COMMAND" >&2' EXIT
set -e
"""
_AFTER_PRELUDES = """\
set +efux +o pipefail
trap - EXIT
set -- "${_hps_arguments[@]}"
unset IFS
[[ $PATH == *"$_hps_path" ]] || export PATH=${PATH:+$PATH:}$_hps_path
"""


@dataclass(frozen=True)
class StudyJob:
    """A study to submit."""

    study: str
    file: Path  # its study file, absolute
    storage: str  # the URL of its database, absolute
    save_s: float  # how long its trials may take to save their state
    starts_in: Path  # the working folder of its jobs
    command: str = ""  # the one that submits it, and continues it
    preludes: Sequence[Path] = ()  # the files whose lines every node runs first

    @property
    def name(self) -> str:
        return f"hpsearch-{self.study}"

    @property
    def folder(self) -> Path:
        """The folder of its script and of what that writes; all nodes share it."""
        return self.file.parent / f"{self.study}.slurm"

    @property
    def mark(self) -> str:
        return mark_of(self.storage, self.study)

    @property
    def script(self) -> Path:
        return self.folder / "job.sh"

    def log_of(self, job: str) -> Path:
        return self.folder / f"{self.name}-{job}.log"


def script_of(job: StudyJob) -> str:
    warned_s = round(job.save_s) + LEAVE_S
    options = (
        f"--job-name={job.name}",
        f"--chdir={job.starts_in}",
        f"--output={job.folder}/{job.name}-%j.log",
        "--open-mode=append",
        "--ntasks-per-node=1",
        "--requeue",
        "--no-kill",  # the others go on where a node dies
        f"--signal=B:USR1@{warned_s}",
    )
    settings = {
        "study_file": job.file,
        "folder": job.folder,
        "name": job.name,
        "save_s": round(job.save_s),
        "export HPSEARCH_SUBMIT": job.command,
    }
    lines = [
        "#!/bin/bash",
        f"# The jobs of study {job.study}, written by `hpsearch submit`, which replaces this file.",
        *(f"#SBATCH {shlex.quote(option)}" for option in options),
        f"\nexport PATH={shlex.quote(sysconfig.get_path('scripts'))}:$PATH",
        _BEFORE_PRELUDES,
        *(f"prelude={shlex.quote(str(file))}\n{_text_of(file)}\n" for file in job.preludes),
        _AFTER_PRELUDES,
        *(f"{name}={shlex.quote(str(value))}" for name, value in settings.items()),
        f"cd {shlex.quote(str(job.starts_in))} || exit 1",
        'HPSEARCH_STORAGE=$(<"$folder/storage") || exit 1 # it may have a password',
        "export HPSEARCH_STORAGE\n",
        resources.files("hpsearch.plugins.slurm").joinpath("job.sh").read_text("utf-8"),
    ]
    return "\n".join(lines)


def _text_of(prelude: Path) -> str:
    """The lines of a prelude. Raises UserError if it cannot be read, also by bash."""
    hint = "a prelude has #SBATCH lines and lines for bash, as the script of a job"
    try:
        text = prelude.read_text("utf-8-sig")
    except (OSError, ValueError) as error:
        raise UserError(f"the prelude {prelude} cannot be read: {error}", hint) from None
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True)  # noqa: S607
    if done.stderr:
        raise UserError(f"the prelude {prelude} is not for bash: {done.stderr.strip()}", hint)
    return text


def _defaults_of(prelude: Path) -> list[str]:
    lines = [line[7:] for line in _text_of(prelude).splitlines() if line.startswith("#SBATCH")]
    try:
        return [word for line in lines for word in shlex.split(line, comments=True)]
    except ValueError as error:
        raise UserError(f"a #SBATCH line of {prelude} cannot be read: {error}") from None


def sbatch(arguments: Sequence[str]) -> str:
    """Submit a job, and return its id. Raises UserError with sbatch's own message."""
    try:
        printed = call("sbatch", *arguments)
    except Refused as error:
        hint = "sinfo lists the partitions, sbatch --help the options"
        raise UserError(f"SLURM did not accept the job: {error.message}", hint) from None
    found = re.search(r"^\d+", printed, re.MULTILINE)  # the name of a cluster may follow
    if found is None:
        raise UserError(f"sbatch has not printed the id of a job, but: {printed.strip()}")
    return found[0]


@dataclass(frozen=True)
class Calls:
    """The calls of sbatch for a study: the options of each job."""

    job: StudyJob
    driver: list[SbatchOption]
    arrays: list[list[SbatchOption]]  # of nodes; none if they are in the same job

    def of_driver(self) -> list[str]:
        """The words after `sbatch` for the job with the driver."""
        alone = ["head"] if self.arrays else []
        return [*_words(self.driver, self.job.mark), str(self.job.script), *alone]

    def of_nodes(self, driver: str) -> list[list[str]]:
        """The words after `sbatch` for each array, whose driver is a job with this id."""
        mark = f"{self.job.mark}/nodes-of-{driver}"
        name = f"--job-name={self.job.name}-{driver}"
        together = read_options([name, f"--dependency=after:{driver}"])
        ends = (str(self.job.script), "node", driver)
        return [[*_words([*each, *together], mark), *ends] for each in self.arrays]


def _words(options: Sequence[SbatchOption], mark: str) -> list[str]:
    """The words of options, with the mark of a study behind the user's own comment. Those of
    --quiet are left out, as sbatch prints the job's id."""
    words = [word for option in options if option.name != "quiet" for word in option.words]
    own = [option.value or "" for option in options if option.name == "comment"]
    return ["--parsable", *words, f"--comment={' '.join([*own[-1:], mark])}"]


def calls_of(job: StudyJob, options: Sequence[str], for_driver: Sequence[str] = ()) -> Calls:
    """The calls of sbatch for a study: one job; or with `--array` among the options, one for the
    driver, with the options `for_driver` too, and each array of nodes. Raises UserError if SLURM
    would not accept them, or never start them."""
    array = os.environ.get("SBATCH_ARRAY_INX")
    given = read_options([f"--array={array}"] if array else [])
    for words in (*map(_defaults_of, job.preludes), options):
        given = _over(given, read_options(words))
    arrays = _arrays(given)
    own = read_options(for_driver)
    if own and not arrays:
        what = "--driver is for the job of the driver, which only --array has"
        raise UserError(what, "give its options to the job itself")
    driver = given
    if arrays:
        needs = ["--ntasks=1", "--cpus-per-task=1"]
        if re.search("SelectTypeParameters.*MEMORY", answer_of("scontrol", "show", "config")):
            needs.append("--mem=4G")  # SLURM shares out memory, and would give all of a node
        shared = [option for option in arrays[0] if not _OF_NODES.match(option.name)]
        driver = [*shared, *_over(read_options(needs), own)]
    for each in (driver, *arrays):
        refuse_beyond(each)
    return Calls(job, driver, arrays)


def _over(below: list[SbatchOption], above: list[SbatchOption]) -> list[SbatchOption]:
    """Options that win over others; memory is given in one of several ways."""
    names = {option.name for option in above}
    if names & {"mem", "mem-per-cpu", "mem-per-gpu"}:
        names |= {"mem", "mem-per-cpu", "mem-per-gpu"}
    return [*(option for option in below if option.name not in names), *above]


def _arrays(given: list[SbatchOption]) -> list[list[SbatchOption]]:
    """The options of each array: those before the first `--array`, and its own to the next one."""
    starts = [place for place, option in enumerate(given) if option.name == "array"]
    if len(starts) < 2:
        return [given] if starts else []
    shared, ends = given[: starts[0]], [*starts[1:], len(given)]
    return [[*shared, *given[start:end]] for start, end in zip(starts, ends, strict=True)]


def submit(calls: Calls) -> list[str]:
    """Write the files of a study, submit its jobs, and return their ids, the driver's first. Raises
    StudyHeld if a driver of it waits or runs already, and UserError if SLURM does not accept a
    job."""
    job = calls.job
    jobs = jobs_in(job.storage, job.study)
    refuse_queued(jobs)
    if jobs:  # nodes of a driver that has left
        answer_of("scancel", *(each.job for each in jobs))
    _write(job)
    submitted = [sbatch(calls.of_driver())]
    try:
        both = jobs_in(job.storage, job.study)  # if another process submits at the same moment
        refuse_queued([each for each in both if int(each.job) < int(submitted[0])])
        for words in calls.of_nodes(submitted[0]):
            submitted.append(sbatch(words))
    except HpsearchError:
        answer_of("scancel", *submitted)
        raise
    return submitted


def _write(job: StudyJob) -> None:
    """Write the script and its secrets; nobody else may read any of them."""
    texts = {
        "token": secrets.token_hex(32),  # of its Ray clusters
        "storage": job.storage,
        "submitted": f"{job.mark}\n{job.command}",
        job.script.name: script_of(job),
    }
    try:
        job.folder.mkdir(mode=0o700, exist_ok=True)
        for name, text in texts.items():
            with whole_file(job.folder / name) as unfinished:
                unfinished.touch(mode=0o600)
                unfinished.write_text(text, "utf-8")
    except OSError as error:
        message = f"{job.folder} cannot be written: {error.strerror or error}"
        raise UserError(message, "put the study file into a folder that all nodes share") from error
