"""The jobs of studies, as launchers tell of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from hpsearch.errors import StudyHeld


@dataclass(frozen=True)
class QueuedJob:
    """A job of a study, which waits or runs.

    Attributes:
        study: The name of the study.
        job: Its id.
        state: As the launcher's programs write it, such as PENDING.
        reason: Why it waits, as they write it.
        in_words: How it stands, behind the study's name, such as "waits in the queue as job 7".
        driver: For one of nodes alone: the id of the job with their driver.
        is_ours: This process runs in it.
    """

    study: str
    job: str
    state: str
    reason: str
    in_words: str
    driver: str | None = None
    is_ours: bool = False

    def as_plain(self) -> dict[str, Any]:
        """The job as a document."""
        return {name: value for name, value in asdict(self).items() if name != "is_ours"}


def refuse_queued(jobs: Sequence[QueuedJob]) -> None:
    """Refuse a driver for a study that has one in a queue, by its jobs, those with drivers first,
    unless this is that one. Raises StudyHeld."""
    if not jobs or jobs[0].driver is not None or jobs[0].is_ours:
        return
    found = jobs[0]
    raise StudyHeld(
        f"study {found.study} is job {found.job} already",
        f"it {found.in_words} - wait for it, or save everything and take it out of the queue "
        f"with: hpsearch stop {found.study}",
    )
