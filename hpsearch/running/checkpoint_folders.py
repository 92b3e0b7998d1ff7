"""The folders of checkpoints of studies, and the marks that say whose they are.

Many studies may share a folder for checkpoints (`--checkpoints`, the root). Each has its own folder
in it, named after the study and its `uid`, which is unique in all databases. A marker file in that
folder says the same. A folder with the mark of a study is written and cleared by that study alone.
A folder without a mark may hold checkpoints of several studies, and nothing in it is ever removed.

    root/
      flowers-3f2a9c0d1e4b/
        hpsearch-study.json     {"study": "flowers", "uid": "3f2a9c0d1e4b..."}
        trial-00000/  trial-00001/  ...
"""

from __future__ import annotations

import json
import re
import unicodedata
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hpsearch.errors import UserError
from trials.checkpoints.checkpoint_folder import FolderError
from trials.checkpoints.folders import absolute, folder_at, inside, is_url, trial_of

if TYPE_CHECKING:  # workers import this module too, and need no records
    from hpsearch.domain.records import StudyRecord
    from hpsearch.study_file.models import StudySpec

MARKER = "hpsearch-study.json"
DEFAULT_ROOT = "hpsearch-studies"
"""Studies get their folders in this one beside the study file, unless it names another."""
TRACKING = "tracking"  # in a study's folder: the record of what its trackers were sent
LONGEST_NAME = 60
"""Characters of a study's name in its folder's: at most 255 bytes, whatever letters they are."""
SHOWN_UID = 12  # characters of the uid in the folder's name


@dataclass(frozen=True, slots=True)
class Mark:
    """The content of a marker: the study whose folder it is in."""

    study: str
    uid: str


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """A study's own folder: an absolute path, or a URL."""

    mark: Mark
    folder: str

    def claim(self) -> None:
        """Mark it as this study's. Raises UserError if it is another's, or cannot be written."""
        if self.refuse_foreign():
            return
        text = json.dumps(asdict(self.mark), indent=1) + "\n"
        try:
            folder_at(self.folder).write(MARKER, text)
        except Exception as error:
            raise _unusable(self.folder, error) from error

    def refuse_foreign(self) -> bool:
        """True if the folder carries this study's mark; False if it carries no mark. Raises
        UserError if it carries another study's mark, or cannot be read."""
        found = mark_of(self.folder)
        if found is not None and found.uid != self.mark.uid:
            raise _anothers(self.folder, found)
        return found is not None


def checkpoint_root(spec: StudySpec, requested: str | None) -> str:
    """The folder around the study's own folder of checkpoints: `requested` by the command line,
    else the study file's, else one beside the study file. An absolute path, or a URL. Raises
    UserError for a URL that cannot be used from here, or a path that cannot be a folder."""
    if requested:
        return usable(requested)
    stated = spec.checkpoints.folder or DEFAULT_ROOT
    return usable(stated if is_url(stated) else spec.base / stated)


def folder_of_new(spec: StudySpec, requested: str | None) -> StudyFolder:
    """The folder of a study that is to be created."""
    return folder_in(checkpoint_root(spec, requested), spec.study, new_uid())


def folder_of(spec: StudySpec, record: StudyRecord, requested: str | None) -> StudyFolder:
    """The folder of a study in the database; in the root `requested` if it has none. Raises
    UserError if checkpoints cannot be kept there, or another folder is asked for."""
    present = next(iter(folders_of(record)), None)
    if record.uid is None or present is None:
        root = checkpoint_root(spec, requested or present)
        uid = record.uid or new_uid()
        return folder_in(root, record.name, uid)
    mark = Mark(record.name, record.uid)
    if requested is not None:
        root = usable(requested)
        if present not in (root, str(inside(root, folder_name(mark.study, mark.uid)))):
            what = f"study {record.name} keeps its checkpoints in {present}, and cannot move"
            raise UserError(what, "leave --checkpoints out")
    home = StudyFolder(mark, usable(present))
    home.refuse_foreign()
    return home


def usable(checkpoints: Path | str) -> str:
    """A folder for checkpoints by its absolute name. Raises UserError for a URL that cannot be used
    from here, or a path that cannot be a folder."""
    try:
        folder_at(checkpoints)
    except FolderError as error:
        hint = "install the package it names, or give a folder that all workers share"
        raise UserError(str(error), hint) from error
    if not is_url(checkpoints):
        path = Path(checkpoints)
        for part in (path, *path.parents):
            if part.exists() and not part.is_dir():
                what = f"checkpoints cannot be kept at {path}: {part} is not a folder"
                raise UserError(what, "name another with --checkpoints")
    return absolute(checkpoints)


def new_uid() -> str:
    """A name that no other study of any database has."""
    return uuid.uuid4().hex


def folder_in(root: str, study: str, uid: str) -> StudyFolder:
    """The folder of a study in a root; the root itself where that is the study's folder already.
    Raises UserError if the root is another study's own folder, or cannot be read."""
    mark, owner = Mark(study, uid), mark_of(root)
    if owner is None:
        return StudyFolder(mark, str(inside(root, folder_name(study, uid))))
    if owner.uid != uid:
        raise _anothers(root, owner)
    return StudyFolder(mark, root)


def folder_name(study: str, uid: str) -> str:
    """A name that every file system and store takes, and that says whose folder it is."""
    letters = re.sub(r"[^\w.-]", "-", unicodedata.normalize("NFKC", study))
    readable = letters[:LONGEST_NAME].strip("-._")
    return f"{readable or 'study'}-{uid[:SHOWN_UID]}"


def mark_of(folder: str) -> Mark | None:
    """The study whose folder it is; None without a mark. Raises UserError if it is unreadable."""
    try:
        text = folder_at(folder).text(MARKER)
    except Exception as error:
        raise _unusable(folder, error) from error
    if text is None:
        return None
    try:
        content = json.loads(text)
        return Mark(str(content["study"]), str(content["uid"]))
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"the mark of the checkpoint folder {folder} cannot be read",
            f"it says whose folder it is: restore {MARKER} in it,"
            " or name another folder with --checkpoints",
        ) from None


def trials_in(folder: str) -> list[int]:
    """The trials that have a folder in a study's. Raises what its store raises."""
    numbers = [trial_of(name) for name in folder_at(folder).entries()]
    return sorted(number for number in numbers if number is not None)


def folders_of(record: StudyRecord) -> list[str]:
    """All folders that a study has kept checkpoints in, the present one first."""
    present = [record.checkpoints] if record.checkpoints else []
    return [*present, *record.former_checkpoints]


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
