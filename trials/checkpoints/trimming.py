"""Removing the checkpoints that a trial does not need any more, and the size of the others."""

from collections.abc import Callable, Mapping
from pathlib import Path

from trials.checkpoints.folders import folder_at, is_url, split
from trials.contract import CheckpointSizes

POINTERS = ("last", "best")
WORKING = ".working-directory"
"""The name of an empty file in the folder of a trial that runs there: the rest is its own."""


def sizes_of(checkpoint: Path | str, best: Path | str | None) -> CheckpointSizes:
    folder, newest = split(checkpoint)
    _, name = split(checkpoint if best is None else best)
    where = folder_at(folder)
    sizes = where.sizes()
    files = where.manifest(name).get("state", {})
    state = {f"{name}/{file}" for file in files}
    of_name = _below(name, sizes)
    weights = sum(size for path, size in of_name.items() if path not in state)
    waiting = sum(_below(newest, sizes).values())
    if name != newest:
        waiting += weights
    return CheckpointSizes(now=sum(sizes.values()), waiting=waiting, ended=weights)


def _below(name: str, sizes: Mapping[str, int]) -> dict[str, int]:
    start = f"{name}/"
    return {path: size for path, size in sizes.items() if path.startswith(start)}


def trim_waiting(
    checkpoint: Path | str, best: Path | str | None, still_waits: Callable[[], bool] = lambda: True
) -> None:
    """Remove the checkpoints that a trial does not need while it waits.

    Its newest checkpoint stays whole, and of its best one the weights. Those after the newest are
    never touched, because the trial may continue meanwhile. `still_waits`: called once the older
    checkpoints are listed: a trial that continues from one of them, because the newest is damaged,
    writes others before the newest."""
    folder, newest = split(checkpoint)
    where = folder_at(folder)
    if not where.taken(newest):
        return
    best_names = {where.target("best")}
    if best is not None:
        _, best_name = split(best)
        best_names.add(best_name)
    older = where.older_than(newest)
    if not still_waits():
        return
    for name in older:
        if name in best_names:
            where.take_state(name)
        else:
            where.remove(name)


def trim_all(folder: Path | str) -> Exception | None:
    """Remove the folder of a trial; of one that was a working directory, the checkpoints alone, if
    there are other files. Returns the error that left something, if any. No process may write there
    any more."""
    outer, name = split(folder)
    path = Path(folder)
    if is_url(folder) or path.is_symlink() or not (path / WORKING).is_file():
        return folder_at(outer).remove(name)
    where = folder_at(folder)
    ours = [*filter(where.is_link, POINTERS), *where.checkpoints(), *where.drafts()]
    errors = [where.remove(each) for each in ours]
    if [each.name for each in path.iterdir()] == [WORKING]:
        errors.append(folder_at(outer).remove(name))
    return next(filter(None, errors), None)


def trim_ended(checkpoint: Path | str) -> None:
    """Remove all checkpoints of a trial that no process writes any more but the weights of one."""
    folder, remaining = split(checkpoint)
    where = folder_at(folder)
    if not where.taken(remaining):
        return
    for pointer in POINTERS:
        target = where.target(pointer)
        if target not in (None, remaining):
            where.point(pointer, remaining)
    for name in [*where.checkpoints(), *where.drafts()]:
        if name != remaining:
            where.remove(name)
    where.take_state(remaining)
