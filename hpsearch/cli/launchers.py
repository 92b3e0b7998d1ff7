"""What launchers know of studies. One that raises is told of, once, and left out."""

from collections.abc import Sequence
from typing import Any

from hpsearch.cli.output import note
from hpsearch.domain.plugins.door import named, offers_of
from hpsearch.domain.plugins.offers import LauncherPlugin
from hpsearch.domain.plugins.queued import QueuedJob
from hpsearch.errors import HpsearchError

_left_out: set[str] = set()


def queued(storage: str, study: str | None = None) -> list[QueuedJob]:
    """The jobs that wait or run for studies of a database, or for one of them; of each launcher,
    those with drivers first."""
    return [job for each in _launchers() for job in _asked(each, each.jobs, storage, study) or ()]


def cancelled(storage: str, study: str) -> list[QueuedJob]:
    """Take the jobs of a study out of their queues, and return them."""
    found: list[QueuedJob] = []
    for each in _launchers():
        jobs: Sequence[QueuedJob] = _asked(each, each.jobs, storage, study) or ()
        if jobs:
            _asked(each, each.cancel, jobs)
            found += jobs
    return found


def launched_by(folder: str | None, study: str, storage: str) -> str | None:
    """The command that has launched a study whose file is in a folder; None if none has."""
    for each in _launchers():
        command: str | None = _asked(each, each.again, folder, study, storage)
        if command is not None:
            return command
    return None


def _launchers() -> Sequence[LauncherPlugin]:
    return tuple(offers_of(LauncherPlugin).values())


def _asked(launcher: LauncherPlugin, function: str, *given: Any) -> Any:
    """What a launcher's function returns; None of a launcher that is left out."""
    if launcher.name in _left_out:
        return None
    try:
        return named(function)(*given)
    except HpsearchError:
        raise
    except Exception as error:  # noqa: BLE001 - it is somebody else's code
        _left_out.add(launcher.name)
        note(f"launcher {launcher.name} is left out: {type(error).__name__}: {error}")
        return None
