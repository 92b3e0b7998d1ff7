"""Removing what a trial does not need any more, and the size of what it needs.

Removing the state of a checkpoint leaves the weights alone, under the same name. Nothing is
written, so a process that is killed meanwhile leaves nothing half written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from trials.checkpoints.listing import checkpoints_in, drafts_in, older_than
from trials.checkpoints.manifests import manifest_of
from trials.checkpoints.places import place, split
from trials.checkpoints.protocol import Place
from trials.contract import Held

POINTERS = ("last", "best")


def held(checkpoint: Path | str, best: Path | str | None) -> Held:
    """The size of the checkpoints of a trial.

    Args:
        checkpoint: Its newest.
        best: Its best, if any.

    Raises:
        OSError: They cannot be read.
    """
    folder, newest = split(checkpoint)
    name = newest
    if best is not None:
        _, name = split(best)
    where = place(folder)
    sizes = where.sizes()
    files = manifest_of(where, name).get("state", {})
    state = {f"{name}/{file}" for file in files}
    of_name = _below(name, sizes)
    weights = sum(size for path, size in of_name.items() if path not in state)
    waiting = sum(_below(newest, sizes).values())
    if name != newest:
        waiting += weights
    return Held(now=sum(sizes.values()), waiting=waiting, ended=weights)


def _below(name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of the files of a checkpoint, by path."""
    start = f"{name}/"
    return {path: size for path, size in sizes.items() if path.startswith(start)}


def trim_waiting(
    checkpoint: Path | str,
    best: Path | str | None,
    still_waits: Callable[[], bool] = lambda: True,
) -> None:
    """Remove what a trial does not need while it waits.

    Its newest checkpoint stays whole, and of its best one the weights. What comes after the newest
    is never touched, so the trial may continue meanwhile. If it continues from an older checkpoint,
    because the newest is damaged, then what it writes comes before the newest; `still_waits` is
    therefore asked once it is known what would be removed.

    Args:
        checkpoint: The newest that is on record.
        best: The best that is on record, if any.
        still_waits: Whether the trial has not been started since.
    """
    folder, newest = split(checkpoint)
    where = place(folder)
    if not where.taken(newest):
        return
    best_names = {where.target("best")}
    if best is not None:
        _, best_name = split(best)
        best_names.add(best_name)
    older = older_than(where, newest)
    if not still_waits():
        return
    for name in older:
        if name in best_names:
            take_state(where, name)
        else:
            where.remove(name)


def trim_ended(checkpoint: Path | str) -> None:
    """Remove all that a trial has saved except the weights of one checkpoint.

    No process may write there any more.

    Args:
        checkpoint: The one that is on record.
    """
    folder, remaining = split(checkpoint)
    where = place(folder)
    if not where.taken(remaining):
        return
    for pointer in POINTERS:
        target = where.target(pointer)
        if target not in (None, remaining):
            where.point(pointer, remaining)
    for name in [*checkpoints_in(where), *drafts_in(where)]:
        if name != remaining:
            where.remove(name)
    take_state(where, remaining)


def trim_moved(folder: Path | str, newest: Path | str, best: Path | str | None) -> None:
    """Remove what a trial has saved in a folder that it has left, except the weights of its best.

    Does nothing where the newest checkpoint is seen there: the two are one folder, by a link or by
    another name.

    Args:
        folder: Where the trial was before.
        newest: Its newest checkpoint on record, in another folder.
        best: The best that is on record, if any, in any folder.
    """
    where = place(folder)
    present, name = split(newest)
    if manifest_of(where, name) == manifest_of(place(present), name):
        return
    for name in [*checkpoints_in(where), *drafts_in(where)]:
        path = str(where.path(name))
        if best is not None and path == str(best):
            take_state(where, name)
        else:
            where.remove(name)
    for pointer in POINTERS:
        target = where.target(pointer)
        if target is not None and not where.taken(target):
            where.dissolve(pointer)


def take_state(where: Place, name: str) -> None:
    """Leave only the weights of a checkpoint, if its manifest says which files those are."""
    files = manifest_of(where, name).get("state", {})
    where.strip(name, files)
