"""The jobs of studies in SLURM's queue, each known by its database and its study."""

import hashlib
import os
import re
from pathlib import Path

from hpsearch.domain.plugins.queued import QueuedJob
from hpsearch.errors import HpsearchError, Unreachable
from hpsearch.plugins.slurm.programs import Refused, answer_of, call
from hpsearch.store.connecting.url import file_of, parse_url

_MARK = re.compile(r"hpsearch/([0-9a-f]{16})/([\w.-]+?)(?:/nodes-of-(\d+))?$")

_IN_WORDS = {
    "Assoc": "a limit of your account is reached",
    "BeginTime": "its time to begin has not come; a job that is requeued waits two minutes",
    "Dependency": "it starts after another job, or never if that has failed",
    "JobHeld": "it is held; scontrol release lets it go",
    "PartitionConfig": "it asks for more than the partition has or allows",
    "PartitionNodeLimit": "it asks for more nodes than the partition has or allows",
    "PartitionTimeLimit": "it asks for more time than the partition allows",
    "Priority": "jobs of a higher priority come first",
    "QOSMax": "your limit in this QOS is reached",
    "QOS": "the limit of its QOS is reached",
    "ReqNodeNotAvail": "nodes that it needs are down, drained or reserved",
    "Resources": "its nodes or cores are not free yet",
}
"""Beginnings of SLURM's reasons that are met most."""


def mark_of(storage: str, study: str) -> str:
    """The text by which a job's comment names its study: a digest of the database's URL, without
    user and password, and the study's name. It is the same before the study has begun."""
    url = parse_url(storage)
    file = file_of(url)
    if file is None:
        says_where = ("host", "port", "service", "options")
        query = [pair for pair in sorted(url.query.items()) if pair[0] in says_where]
        place = repr((url.host, url.port or 5432, url.database, query))
    else:
        place = str(file.resolve())
    return f"hpsearch/{hashlib.sha256(place.encode()).hexdigest()[:16]}/{study}"


def jobs_in(storage: str, study: str | None = None) -> list[QueuedJob]:
    """The jobs of this user that wait or run for studies of a database, or for one of them, drivers
    before nodes and older ones first. Raises Unreachable if SLURM does not answer."""
    try:
        lines = call("squeue", "--noheader", "--me", "--sort=i", "--format=%F|%T|%r|%k")
    except Refused as error:
        raise Unreachable(f"SLURM does not answer: {error.message}") from None
    database = mark_of(storage, "")
    found: dict[str, QueuedJob] = {}
    for line in lines.splitlines():
        job, state, reason, comment = [*line.split("|", 3), "", "", ""][:4]
        mark = _MARK.search(comment)
        if mark is None or not mark[0].startswith(database) or state == "COMPLETING":
            continue
        if study in (None, mark[2]) and not (job in found and state == "PENDING"):
            words, is_ours = _in_words(job, state, reason), job == os.environ.get("SLURM_JOB_ID")
            found[job] = QueuedJob(mark[2], job, state, reason, words, mark[3], is_ours)
    return sorted(found.values(), key=lambda each: each.driver is not None)


def _in_words(job: str, state: str, reason: str) -> str:
    if not state.startswith(("PENDING", "REQUEUE")):
        return f"is job {job} ({state.lower()}), whose driver has not begun yet"
    words = [text for start, text in _IN_WORDS.items() if reason.startswith(start)]
    return ": ".join([f"waits in the queue as job {job} ({reason})", *words[:1]])


def seen_in(storage: str, study: str | None = None) -> list[QueuedJob]:
    """The jobs as `jobs_in`; none where there is no SLURM, or it does not answer."""
    try:
        return jobs_in(storage, study)
    except HpsearchError:
        return []


def cancel(storage: str, study: str) -> list[QueuedJob]:
    """Take the jobs of a study out of the queue, and return them."""
    jobs = seen_in(storage, study)
    if jobs:
        answer_of("scancel", *(each.job for each in jobs))
    return jobs


def command_of(folder: str | None, study: str, storage: str) -> str | None:
    """The command that has submitted a study whose file is in a folder; None if none has."""
    try:
        text = (Path(folder or "") / f"{study}.slurm" / "submitted").read_text("utf-8")
    except (OSError, ValueError):
        return None
    mark, _, command = text.partition("\n")
    return command.strip() if mark == mark_of(storage, study) else None
