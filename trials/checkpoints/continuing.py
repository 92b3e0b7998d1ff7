"""Finding and verifying the checkpoint that a run continues from."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trials.checkpoints.checkpoint_folder import CheckpointFolder, order_of
from trials.checkpoints.folders import folder_at, split
from trials.checkpoints.manifests import CheckpointError, verify

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedCheckpoint:
    """A checkpoint that a run continues from.

    Args:
        path: Its folder or URL.
        files: A folder of this machine with its files.
    """

    path: Path | str
    files: Path


@contextmanager
def opened(source: Path | str) -> Iterator[OpenedCheckpoint]:
    """The checkpoint to continue from, as a context.

    It is the newest whole one of the stretch that `source` belongs to, or, if all of these are
    damaged, the newest whole one before them.

    Raises:
        CheckpointError: None of them can be used.
        FolderError: No installed library can read the URL.
    """
    folder, name = split(source)
    where = folder_at(folder)
    complaints = []
    wanted = where.named(name)
    for candidate in _candidates(where, wanted):
        path = where.path(candidate)
        with where.local(candidate) as files:
            try:
                verify(files, str(path), whole=True)
            except CheckpointError as damage:
                complaints.append(str(damage))
                continue
            if complaints:
                log.warning("%s; continuing from %s", "; ".join(complaints), candidate)
            yield OpenedCheckpoint(path, files)
            return
    found = "; ".join(complaints)
    raise CheckpointError(f"{found}; there is none before it, so start the trial afresh")


def _candidates(where: CheckpointFolder, name: str) -> Iterator[str]:
    """The names of the checkpoints to try in place of `name`, the best choice first."""
    stretch = where.manifest(name).get("stretch")
    if stretch:
        here = order_of(name)
        after = [other for other in where.checkpoints() if order_of(other) > here]
        newer = where.of_stretch(after, stretch)
        yield from reversed(newer)
    yield name
    yield from reversed(where.older_than(name))
