"""Removes all checkpoints of a study that is itself to be removed.

It removes only what lies beside the study's mark (`hpsearch.running.checkpoint_folders`): the
folders of its trials one by one, their logs and the records of trackers, then the study, and its
marks last. A removal that was interrupted can therefore be repeated as long as the study is in the
database.
"""

from collections.abc import Callable
from dataclasses import dataclass

from hpsearch.domain.records import StudyRecord
from hpsearch.errors import UserError
from hpsearch.running.checkpoint_folders import (
    MARKER,
    TRACKING,
    Mark,
    folders_of,
    mark_of,
    trials_in,
)
from trials.checkpoints.folders import LOGS, folder_at, trial_folder

MOST_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Emptied:
    """A folder in which a study's trials have no files any more."""

    folder: str  # it has the mark of the study
    trials: int  # how many trials had files there

    def dissolve(self) -> str:
        """Remove the mark, and the folder if it is empty. Returns a line for people."""
        done = f"removed its checkpoints, of {self.trials} trials, in {self.folder}"
        try:
            folder_at(self.folder).dissolve(MARKER)
            rest = folder_at(self.folder).entries()
        except Exception as error:  # noqa: BLE001 - each store has errors of its own
            return f"{done} - but not {MARKER} in it: {error}"
        return f"{done} - other files in it are left" if rest else done


def remove_checkpoints(
    record: StudyRecord, named_in: Callable[[str], bool], go_on: Callable[[], None]
) -> tuple[list[Emptied], list[str]]:
    """Remove the folders of a study's trials that lie beside its marks, after a look at all its
    folders. Returns the emptied folders, and lines for people about the other ones. Raises
    UserError if a folder cannot be read from this machine, or not all of it could be removed.

    Args:
        named_in: Whether the database names a checkpoint in a folder.
        go_on: Called before each trial's files are removed; may raise to stop.
    """
    try:
        marks = {folder: mark_of(folder) for folder in folders_of(record)}
        ours = [folder for folder, mark in marks.items() if mark and mark.uid == record.uid]
        others = [folder for folder in marks if folder not in ours]
        reasons = {each: _why_left(record, each, marks[each], named_in) for each in others}
        links = [f"{folder}/{name}" for folder in ours for name in _links_in(folder)]
        emptied = [_emptied(folder, go_on) for folder in ours]
    except UserError as error:
        once = f"once that is fixed, hpsearch rm {record.name} removes the rest"
        hint = f"{once}; with --keep-checkpoints it leaves them"
        raise UserError(error.message, hint) from error
    left = [f"left as it is: what {link}, a link, led to" for link in links]
    left += [f"left as it is: {folder} - {why}" for folder, why in reasons.items() if why]
    return emptied, left


def _why_left(
    record: StudyRecord, folder: str, owner: Mark | None, named_in: Callable[[str], bool]
) -> str | None:
    """The reason to leave another study's folder as it is; None if there is nothing in it."""
    if owner is not None:
        return f"it is marked as the folder of another study, {owner.study}"
    if not _is_empty(folder):
        return "it carries no mark of this study, and other studies may keep checkpoints there"
    if record.uid is not None and named_in(folder):
        what = f"study {record.name} has checkpoints in {folder}"
        raise UserError(f"{what}, which is not there on this machine")
    return None


def _is_empty(folder: str) -> bool:
    try:
        return not folder_at(folder).entries()
    except Exception as error:
        raise UserError(f"{folder} cannot be read: {error}") from error


def _names_in(folder: str) -> list[str]:
    """Everything that is removed from a study's folder, in order, but for its mark."""
    return [*map(trial_folder, trials_in(folder)), LOGS, TRACKING]


def _links_in(folder: str) -> list[str]:
    return list(filter(folder_at(folder).is_link, _names_in(folder)))


def _emptied(folder: str, go_on: Callable[[], None]) -> Emptied:
    where = folder_at(folder)
    numbers = trials_in(folder)
    errors = []
    for name in _names_in(folder):
        go_on()
        error = where.remove(name)
        if error is not None:
            errors.append(f"{name} could not be removed from {folder}: {error}")
    if errors:
        raise UserError("\n".join(errors[:MOST_SHOWN]))
    return Emptied(folder, len(numbers))
