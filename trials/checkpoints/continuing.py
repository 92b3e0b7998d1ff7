"""Finding and verifying the checkpoint that a run continues from."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from trials.checkpoints.checkpoint_folder import CheckpointFolder, order_of
from trials.checkpoints.manifests import CheckpointError, place_of, verify

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OpenedCheckpoint:
    """A checkpoint that a run continues from. `files`: a folder of this machine with its files."""

    path: Path | str
    files: Path


@contextmanager
def opened(source: Path | str) -> Iterator[OpenedCheckpoint]:
    """The checkpoint to continue from, as a context.

    It is the newest whole one of the stretch that `source` belongs to, or, if all of these are
    damaged, the newest whole one before them. Raises CheckpointError if none of them can be used,
    FolderError if no installed library can read the URL."""
    where, name = place_of(source)
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


@contextmanager
def opened_on_ranks(
    source: Path | str, rank: int, told: Callable[[Callable[[], str | None]], str | None]
) -> Iterator[OpenedCheckpoint]:
    """The checkpoint that rank 0 continues from, as `opened`, on one of the ranks of a trial.
    `told`: gives all ranks the result of rank 0's function. Raises CheckpointError on all ranks if
    none can be used, RuntimeError if this rank does not find the checkpoint of rank 0."""
    found: OpenedCheckpoint | None = None
    damage = CheckpointError("rank 0 found no checkpoint that can be used")
    with ExitStack() as stack:
        try:
            if rank == 0:
                found = stack.enter_context(opened(source))
        except CheckpointError as error:
            damage = error
        of_first = told(lambda: None if found is None else str(found.path))
        if of_first is None:
            raise damage
        try:
            found = found or stack.enter_context(opened(of_first))
        except CheckpointError as error:
            what = f"rank {rank} cannot read the checkpoint of rank 0: {error}"
            hint = "keep checkpoints in a folder that all nodes share, or in an object store"
            raise RuntimeError(f"{what}; {hint}") from error
        yield found


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
