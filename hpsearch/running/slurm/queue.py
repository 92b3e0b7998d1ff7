"""The jobs of studies in SLURM's queue, each known by its database and its study."""

import hashlib
import re
import shlex
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hpsearch.errors import HpsearchError, Unreachable
from hpsearch.running.slurm.programs import call, message_of
from hpsearch.store.connecting.url import file_of, parse_url

STUDY = "# The study"
"""The line of a script before what is of one study alone."""

_MARK = re.compile(r"hpsearch/([0-9a-f]{16})/([\w.-]+?)(?:/nodes-of-(\d+))?$")

_SAYS_WHERE = ("host", "port", "service", "options")
"""The parts of a URL's query that say which database it is."""

_IN_WORDS = {
    "AssocGrp": "the limit of your account is reached",
    "AssocMax": "your limit in this account is reached",
    "BadConstraints": "no node has what it asks for",
    "BeginTime": "its time to begin has not come; a job that is requeued waits two minutes",
    "DependencyNeverSatisfied": "the job that it waits for has failed: stop it, and submit again",
    "Dependency": "it starts after another job",
    "JobArrayTaskLimit": "as many tasks run as its array allows",
    "JobHeldAdmin": "an administrator holds it",
    "JobHeldUser": "it is held; scontrol release lets it go",
    "JobLaunchFailure": "it could not be started, and is held; scontrol release tries again",
    "Licenses": "it waits for a licence",
    "None": "SLURM has not looked at it yet",
    "NodeDown": "a node that it needs is down",
    "PartitionDown": "its partition is down",
    "PartitionNodeLimit": "it asks for more nodes than the partition has or allows",
    "PartitionTimeLimit": "it asks for more time than the partition allows",
    "Priority": "jobs of a higher priority come first",
    "QOSGrp": "the limit of its QOS is reached",
    "QOSMax": "your limit in this QOS is reached",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "Reservation": "its reservation has not begun",
    "Resources": "its nodes or cores are not free yet",
}
"""Beginnings of SLURM's reasons; a longer one comes before its own beginning."""


@dataclass(frozen=True)
class QueuedJob:
    """A job of a study."""

    study: str
    job: str  # its id
    state: str  # as SLURM writes it, such as PENDING
    reason: str  # why it waits, as SLURM writes it
    driver: str | None = None  # for nodes: the id of the job with their driver

    @property
    def waits(self) -> bool:
        """True if it does not run."""
        return self.state.startswith(("PENDING", "REQUEUE"))

    def in_words(self) -> str:
        """How it stands."""
        if not self.waits:
            return f"is job {self.job} ({self.state.lower()}), whose driver has not begun yet"
        words = (text for start, text in _IN_WORDS.items() if self.reason.startswith(start))
        why = "".join(f": {text}" for text in list(words)[:1])
        return f"waits in the queue as job {self.job} ({self.reason}){why}"

    def as_plain(self) -> dict[str, Any]:
        """What a program reads."""
        return {**asdict(self), "in_words": self.in_words()}


def mark_of(storage: str, study: str) -> str:
    """The text by which a job's comment names its study: a digest of the database's URL, without
    user and password, and the study's name. It is the same before the study has begun."""
    url = parse_url(storage)
    file = file_of(url)
    if file is None:
        query = [pair for pair in sorted(url.query.items()) if pair[0] in _SAYS_WHERE]
        place = repr((url.host, url.port or 5432, url.database, query))
    else:
        place = str(file.resolve())
    return f"hpsearch/{hashlib.sha256(place.encode()).hexdigest()[:16]}/{study}"


def jobs_in(storage: str, study: str | None = None) -> list[QueuedJob]:
    """The jobs of this user that wait or run for studies of a database, or for one of them, drivers
    before nodes. Raises Unreachable if SLURM does not answer."""
    done = call("squeue", "--noheader", "--me", "--format=%F|%T|%r|%k")
    if done.returncode:
        raise Unreachable(f"SLURM does not answer: {message_of(done)}")
    wanted = mark_of(storage, "").split("/")[1]
    found: dict[str, QueuedJob] = {}
    for line in done.stdout.splitlines():
        job, state, reason, comment = [*line.split("|", 3), "", "", ""][:4]
        mark = _MARK.search(comment)
        if mark is None or mark[1] != wanted or state == "COMPLETING":
            continue
        if study in (None, mark[2]) and not (job in found and state == "PENDING"):
            found[job] = QueuedJob(mark[2], job, state, reason, mark[3])
    return sorted(found.values(), key=lambda each: each.driver is not None)


def seen_in(storage: str, study: str | None = None) -> list[QueuedJob]:
    """The jobs as `jobs_in`; none where there is no SLURM, or it does not answer."""
    if shutil.which("squeue") is None:
        return []
    try:
        return jobs_in(storage, study)
    except HpsearchError:
        return []


def cancel(jobs: list[QueuedJob]) -> None:
    """Take jobs out of the queue."""
    call("scancel", *(each.job for each in jobs))


def command_of(folder: str | None, study: str, storage: str) -> str | None:
    """The command that has submitted a study whose file is in a folder; None if none has."""
    script = Path(folder or "") / f"{study}.slurm" / "job.sh"
    try:
        block = script.read_text("utf-8").rpartition(f"\n{STUDY}\n")[2].partition("\n\n")[0]
        words = shlex.split(block)
    except (OSError, ValueError):
        return None
    settings = dict(word.split("=", 1) for word in words if "=" in word)
    is_own = settings.get("mark") == mark_of(storage, study)
    return settings.get("HPSEARCH_SUBMIT") if is_own else None
