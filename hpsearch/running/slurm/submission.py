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

from hpsearch.errors import HpsearchError, UserError
from hpsearch.running.slurm.limits import refuse_beyond
from hpsearch.running.slurm.options import SbatchOption, read_options
from hpsearch.running.slurm.programs import answer_of, call, message_of
from hpsearch.running.slurm.queue import STUDY, mark_of
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

_OF_A_DRIVER = ("--ntasks=1", "--cpus-per-task=1", "--mem=4G")


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
        "mark": mark_of(job.storage, job.study),
        "save_s": round(job.save_s),
        "export HPSEARCH_STORAGE": job.storage,
        "export HPSEARCH_SUBMIT": job.command,
    }
    shared = resources.files("hpsearch.running.slurm").joinpath("job.sh").read_text("utf-8")
    lines = (
        "#!/bin/bash",
        f"# The jobs of study {job.study}, written by `hpsearch submit`, which replaces this file.",
        *(f"#SBATCH {shlex.quote(option)}" for option in options),
        "",
        f"export PATH={shlex.quote(sysconfig.get_path('scripts'))}:$PATH",
        *(line for file in job.preludes for line in _run_first(file)),
        STUDY,
        *(f"{name}={shlex.quote(str(value))}" for name, value in settings.items()),
        "",
        shared,
    )
    return "\n".join(lines)


def _run_first(file: Path) -> tuple[str, ...]:
    """The lines of a prelude, of which the first that fails ends the job and is named."""
    says = 'echo "hpsearch: a line of $prelude failed on $SLURMD_NODENAME: $BASH_COMMAND" >&2'
    before = (f"prelude={shlex.quote(str(file))}", f"trap '{says}' EXIT", "set -e")
    return (*before, _text_of(file), "set +euxo pipefail", "trap - EXIT")


def _text_of(prelude: Path) -> str:
    """The lines of a prelude. Raises UserError if it cannot be read, also by bash."""
    hint = "a prelude has #SBATCH lines and lines for bash, as the script of a job"
    try:
        text = prelude.read_text("utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f"the prelude {prelude} cannot be read: {error}", hint) from None
    done = subprocess.run(
        ["bash", "-n"],  # noqa: S607  # the one on the PATH
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stderr:
        raise UserError(f"the prelude {prelude} is not for bash: {done.stderr.strip()}", hint)
    return text


def defaults_of(preludes: Sequence[Path]) -> list[list[str]]:
    """The words of the #SBATCH lines of each prelude."""
    words = []
    for file in preludes:
        lines = [line for line in _text_of(file).splitlines() if line.startswith("#SBATCH")]
        try:
            words.append([word for line in lines for word in shlex.split(line[7:], comments=True)])
        except ValueError as error:
            raise UserError(f"a #SBATCH line of {file} cannot be read: {error}") from None
    return words


def sbatch(arguments: Sequence[str]) -> str:
    """Submit a job, and return its id. Raises UserError with sbatch's own message if it does not
    accept the job."""
    done = call("sbatch", *arguments)
    job, _, _ = done.stdout.strip().partition(";")  # what follows is the name of the cluster
    if done.returncode or not job:
        hint = "sinfo lists the partitions, sbatch --help the options"
        raise UserError(f"SLURM did not accept the job: {message_of(done)}", hint)
    return job


@dataclass(frozen=True)
class Calls:
    """The calls of sbatch for a study: the options of each job."""

    job: StudyJob
    driver: list[SbatchOption]
    arrays: list[list[SbatchOption]]  # of nodes; none if they are in the same job

    def of_driver(self) -> list[str]:
        """The words after `sbatch` for the job with the driver."""
        alone = ["head"] if self.arrays else []
        mark = _marked(self.driver, mark_of(self.job.storage, self.job.study))
        return ["--parsable", *_words(self.driver), mark, str(self.job.script), *alone]

    def of_nodes(self, driver: str) -> list[list[str]]:
        """The words after `sbatch` for each array, whose driver is a job with this id."""
        mark = f"{mark_of(self.job.storage, self.job.study)}/nodes-of-{driver}"
        together = (f"--job-name={self.job.name}-{driver}", f"--dependency=after:{driver}")
        ends = (str(self.job.script), "node", driver)
        return [
            ["--parsable", *_words(each), *together, _marked(each, mark), *ends]
            for each in self.arrays
        ]


def _words(options: Sequence[SbatchOption]) -> list[str]:
    return [word for option in options for word in option.words]


def _marked(options: Sequence[SbatchOption], mark: str) -> str:
    """The comment of a job: the user's own, and the mark of its study."""
    own = [option.value or "" for option in options if option.name == "comment"]
    return f"--comment={' '.join([*own[-1:], mark])}"


def calls_of(job: StudyJob, options: Sequence[str], for_driver: Sequence[str] = ()) -> Calls:
    """The calls of sbatch for a study: one job; or with `--array` among the options, one for the
    driver, with the options `for_driver` too, and each array of nodes. Raises UserError if SLURM
    would not accept them, or never start them."""
    site = [f"--array={os.environ['SBATCH_ARRAY_INX']}"] if "SBATCH_ARRAY_INX" in os.environ else []
    given: list[SbatchOption] = []
    for words in (site, *defaults_of(job.preludes), options):
        given = _over(given, read_options(words))
    arrays = _arrays(given)
    own = read_options(for_driver)
    if own and not arrays:
        what = "--driver is for the job of the driver, which only --array has"
        raise UserError(what, "give its options to the job itself")
    driver = given
    if arrays:
        needs = _OF_A_DRIVER if _memory_is_shared_out() else _OF_A_DRIVER[:2]
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
    """The options of each array. Of several, each has those before the first `--array` and those
    from its own to the next one."""
    starts = [place for place, option in enumerate(given) if option.name == "array"]
    if len(starts) < 2:
        return [given] if starts else []
    shared, ends = given[: starts[0]], [*starts[1:], len(given)]
    return [[*shared, *given[start:end]] for start, end in zip(starts, ends, strict=True)]


def _memory_is_shared_out() -> bool:
    found = re.search(r"SelectTypeParameters\s*= (.*)", answer_of("scontrol", "show", "config"))
    return found is not None and "MEMORY" in found[1].upper()


@dataclass(frozen=True)
class Submitted:
    """The ids of the jobs of a study."""

    driver: str
    nodes: tuple[str, ...]  # those of the arrays


def submit(calls: Calls) -> Submitted:
    """Write the files of a study and submit its jobs. Raises UserError if a file cannot be written,
    or SLURM does not accept a job."""
    _write(calls.job)
    driver = sbatch(calls.of_driver())
    nodes: list[str] = []
    try:
        for words in calls.of_nodes(driver):
            nodes.append(sbatch(words))
    except HpsearchError:
        call("scancel", driver, *nodes)
        raise
    return Submitted(driver, tuple(nodes))


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
