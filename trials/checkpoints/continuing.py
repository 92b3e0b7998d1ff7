"""The checkpoint that a run continues from: found, verified, and brought along to a new folder."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from trials.checkpoints.checkpoint_folder import CheckpointFolder, order_of
from trials.checkpoints.folders import folder_at, split
from trials.checkpoints.manifests import CheckpointError, verify
from trials.disk import trees
from trials.disk.whole_folders import removed_on_error

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

    It is the newest whole one of the stretch that `source` belongs to, or where all of these are
    damaged, the newest whole one before it. A run cannot continue from weights alone.

    Raises:
        CheckpointError: Neither it nor one before it can be used.
        FolderError: A URL that nothing here can read.
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
    """What a run may continue from in place of `name`, the best choice first."""
    stretch = where.manifest(name).get("stretch")
    if stretch:
        here = order_of(name)
        after = [other for other in where.checkpoints() if order_of(other) > here]
        newer = where.of_stretch(after, stretch)
        yield from reversed(newer)
    yield name
    yield from reversed(where.older_than(name))


def carry_best(source: Path | str, folder: Path | str) -> None:
    """Copy the best checkpoint of the folder that a run leaves into the folder that it goes to.

    The new folder may have earlier checkpoints, or those of an attempt whose reports never arrived.
    One of the same name is replaced, and `best` no longer names another. Does nothing where the old
    folder has no best checkpoint.

    Args:
        source: The checkpoint that the run is continued from.
        folder: Where it continues; another folder.

    Raises:
        CheckpointError: The best one is damaged.
        FolderError: A URL that nothing here can read or write.
        OSError: It cannot be copied.
    """
    before, name = split(source)
    old, new = folder_at(before), folder_at(folder)
    best = old.target("best")
    if best is None or order_of(best) > order_of(name):
        return
    manifest = old.manifest(best)
    if manifest and manifest == new.manifest(best):
        # It is the copy of a process that may have been killed before it set the pointer.
        new.point("best", best)
        return
    with old.local(best) as files:
        verify(files, str(old.path(best)))
        new.remove(best)
        draft = new.draft()
        with removed_on_error(draft):
            trees.copy(files, draft)
            new.publish(draft, best, ["best"])
