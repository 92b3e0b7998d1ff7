"""What launchers know of studies. One that raises is told of, once, and knows nothing."""

from collections.abc import Iterator
from typing import Any

from hpsearch.domain.plugins.door import named, offers_of, tell_of
from hpsearch.domain.plugins.offers import LauncherPlugin
from hpsearch.domain.plugins.queued import QueuedJob
from hpsearch.errors import HpsearchError


def queued(storage: str, study: str | None = None) -> list[QueuedJob]:
    """The jobs with drivers that wait or run for studies of a database, or for one of them."""
    jobs = [job for some in _answers("jobs", storage, study) for job in some]
    return [job for job in jobs if job.driver is None]


def cancelled(storage: str, study: str) -> list[QueuedJob]:
    """Take the jobs of a study out of their queues, and return them."""
    return [job for jobs in _answers("cancel", storage, study) for job in jobs]


def launched_by(folder: str | None, study: str, storage: str) -> str | None:
    """The command that has launched a study whose file is in a folder; None if none has."""
    return next(filter(None, _answers("again", folder, study, storage)), None)


def _answers(function: str, *given: Any) -> Iterator[Any]:
    for name, launcher in offers_of(LauncherPlugin).items():
        try:
            yield named(getattr(launcher, function))(*given)
        except HpsearchError:
            raise
        except Exception as error:  # noqa: BLE001 - it is somebody else's code
            tell_of("launcher", name, error)
