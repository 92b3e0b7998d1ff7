"""Whose checkpoints a folder holds.

Many studies may share a folder for checkpoints (`--checkpoints`, the root). Each has its own folder
inside it, named after the study and its `uid`, which is unique whatever database the study is in. A
marker file in that folder says the same. A folder with the mark of a study is written and cleared
by that study alone. A folder without a mark may hold checkpoints of
several studies, and nothing in it is ever removed.

    root/
      flowers-3f2a9c0d1e4b/
        hpsearch-study.json     {"study": "flowers", "uid": "3f2a9c0d1e4b..."}
        trial-00000/  trial-00001/  ...
"""

from __future__ import annotations

import json
import unicodedata
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpsearch.errors import UserError
from trials.checkpoints.places import inside, place, split, trial_of

if TYPE_CHECKING:  # workers import this module too, and need no records
    from hpsearch.domain.records import StudyRecord

MARKER = "hpsearch-study.json"
TRACKING = "tracking"
"""The folder in a study's for what experiment trackers have been told of it."""
LONGEST_NAME = 60
"""Characters of a study's name in its folder's: at most 255 bytes, whatever letters they are."""
SHOWN_UID = 12
"""Characters of the uid in the folder's name."""


@dataclass(frozen=True, slots=True)
class Mark:
    """What a marker says: whose folder it is in."""

    study: str
    uid: str


@dataclass(frozen=True, slots=True)
class Home:
    """A study's own folder.

    Args:
        mark: The study.
        folder: An absolute path, or a URL.
    """

    mark: Mark
    folder: str

    def claim(self) -> None:
        """Mark the folder as this study's, where it is not marked yet.

        Raises:
            UserError: It is another study's, or cannot be written.
        """
        if self.refuse_foreign():
            return
        said = {"study": self.mark.study, "uid": self.mark.uid}
        text = json.dumps(said, indent=1) + "\n"
        try:
            place(self.folder).write(MARKER, text)
        except Exception as error:
            raise _unusable(self.folder, error) from error

    def refuse_foreign(self) -> bool:
        """Whether the folder carries this study's mark; False if it carries no mark.

        Raises:
            UserError: It carries another study's mark, or cannot be read.
        """
        found = mark_of(self.folder)
        if found is not None and found.uid != self.mark.uid:
            raise _anothers(self.folder, found)
        return found is not None


def new_uid() -> str:
    """A name that no other study of any database has."""
    return uuid.uuid4().hex


def home_in(root: str, study: str, uid: str) -> Home:
    """The folder of a study in a root; the root itself where that is the study's folder already.

    Args:
        root: An absolute path or a URL.
        study: The study's name.
        uid: The study's.

    Raises:
        UserError: The root is another study's own folder, or lies in a study's, or cannot be read.
    """
    _refuse_inside(root)
    mark, owner = Mark(study, uid), mark_of(root)
    if owner is None:
        return Home(mark, str(inside(root, folder_name(study, uid))))
    if owner.uid != uid:
        raise _anothers(root, owner)
    return Home(mark, root)


def _refuse_inside(root: str) -> None:
    """Refuse what lies in a trial's folder: it would go with the trial.

    Raises:
        UserError: It does.
    """
    folder, name = split(root)
    while name:
        owner = mark_of(str(folder)) if trial_of(name) is not None else None
        if owner is not None:
            what = (
                f"{root} is in the folder of a trial of the study {owner.study},"
                " and would be removed with it"
            )
            raise UserError(what, "name another folder with --checkpoints")
        folder, name = split(folder)


def folder_name(study: str, uid: str) -> str:
    """A name that every file system and store takes, and that says whose folder it is."""
    letters = map(_letter, unicodedata.normalize("NFKC", study))
    readable = "".join(letters)[:LONGEST_NAME].strip("-._")
    return f"{readable or 'study'}-{uid[:SHOWN_UID]}"


def _letter(character: str) -> str:
    """A character that may stand in a folder's name; others become a dash."""
    is_safe = character.isalnum() or character in "._-"
    return character if is_safe else "-"


def mark_of(folder: str) -> Mark | None:
    """The study whose folder it is; None if it carries no mark.

    Raises:
        UserError: It cannot be read, or what it says cannot be.
    """
    try:
        text = place(folder).text(MARKER)
    except Exception as error:
        raise _unusable(folder, error) from error
    if text is None:
        return None
    try:
        said = json.loads(text)
        return Mark(str(said["study"]), str(said["uid"]))
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"the mark of the checkpoint folder {folder} cannot be read",
            f"it says whose folder it is: restore {MARKER} in it,"
            " or name another folder with --checkpoints",
        ) from None


def trials_in(folder: str) -> list[int]:
    """The numbers of the trials that have a folder in a study's.

    Raises:
        Exception: It cannot be read; each store has errors of its own.
    """
    numbers = [trial_of(name) for name in place(folder).entries()]
    return sorted(number for number in numbers if number is not None)


def folders_of(record: StudyRecord) -> list[str]:
    """All folders that a study keeps or has kept checkpoints in, the present one first."""
    present = [record.checkpoints] if record.checkpoints else []
    return [*present, *record.former_checkpoints]


def settle(record: StudyRecord, home: Home) -> None:
    """Record where a study keeps its checkpoints from now on, and where it did before."""
    former = [folder for folder in folders_of(record) if folder != home.folder]
    record.uid = home.mark.uid
    record.checkpoints = home.folder
    record.former_checkpoints = former


def _anothers(folder: str, owner: Mark) -> UserError:
    what = f"{folder} holds the checkpoints of another study, {owner.study} (uid {owner.uid})"
    return UserError(
        what, "name another folder with --checkpoints, such as the one that this folder is in"
    )


def _unusable(folder: str, error: Exception) -> UserError:
    what = f"checkpoints cannot be kept at {folder}: {str(error) or type(error).__name__}"
    return UserError(
        what,
        "name a folder with --checkpoints that this machine and all workers can read and write",
    )
