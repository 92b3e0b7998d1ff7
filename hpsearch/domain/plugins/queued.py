"""The jobs of studies, as launchers tell of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hpsearch.errors import StudyHeld


@dataclass(frozen=True)
class QueuedJob:
    """A job of a study, which waits or runs."""

    study: str
    job: str  # its id
    state: str  # as the queue writes it, such as PENDING
    reason: str  # why it waits, as the queue writes it
    in_words: str  # how it stands, such as "waits in the queue as job 7"
    driver: str | None = None  # for nodes: the id of the job with their driver
    is_ours: bool = False  # this process runs in it

    def as_plain(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "is_ours"}


def refuse_queued(jobs: Sequence[QueuedJob]) -> None:
    """Raise StudyHeld for a study that has another driver, the first of its jobs, in a queue."""
    for job in jobs[:1]:
        if job.driver is None and not job.is_ours:
            hint = (
                "wait for it, or save everything and take it out of the queue with: hpsearch stop"
            )
            what = f"study {job.study} is job {job.job} already"
            raise StudyHeld(what, f"it {job.in_words} - {hint} {job.study}")
