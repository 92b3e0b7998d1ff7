"""The folder of checkpoints of a study: where it is, and moving into it."""

from __future__ import annotations

from pathlib import Path

from hpsearch.domain.history import History
from hpsearch.domain.records import StudyRecord
from hpsearch.errors import StudyHeld, UserError
from hpsearch.folders import Home, Mark, folders_of, home_in, new_uid, settle
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec
from trials.checkpoints import places
from trials.checkpoints.protocol import PlaceError

DEFAULT_ROOT = "hpsearch-studies"
"""Studies get their folders in this one beside the study file, unless it names another."""


def checkpoint_root(spec: StudySpec, asked_for: str | None) -> str:
    """The folder that the study's own folder of checkpoints goes into.

    Args:
        spec: The study file. Where it names no folder, one beside it is taken.
        asked_for: The folder that the command line names instead; None if it names none.

    Returns: An absolute path, or a URL.

    Raises:
        UserError: A URL that cannot be used from here, or a path that cannot be a folder.
    """
    if asked_for:
        return usable(asked_for)
    stated = spec.checkpoints.folder or DEFAULT_ROOT
    return usable(stated if places.is_url(stated) else spec.base / stated)


def home_of_new(spec: StudySpec, asked_for: str | None) -> Home:
    """The folder of a study that is to be created.

    Raises:
        UserError: Checkpoints cannot be kept there.
    """
    return home_in(checkpoint_root(spec, asked_for), spec.study, new_uid())


def home_of(spec: StudySpec, record: StudyRecord, asked_for: str | None) -> Home:
    """The folder of a study that is in the database: the one it has, or one in a root asked for.

    A study of an earlier version has no folder of its own yet. It gets one inside the folder where
    its checkpoints are.

    Raises:
        UserError: Checkpoints cannot be kept there.
    """
    present = next(iter(folders_of(record)), None)
    moves = asked_for is not None and usable(asked_for) != present
    if record.uid is None or present is None or moves:
        root = checkpoint_root(spec, asked_for or present)
        uid = record.uid or new_uid()
        return home_in(root, record.name, uid)
    mark = Mark(record.name, record.uid)
    home = Home(mark, usable(present))
    home.refuse_foreign()
    return home


def usable(checkpoints: Path | str) -> str:
    """A folder for checkpoints by its absolute name.

    Raises:
        UserError: A URL that cannot be used from here, or a path that cannot be a folder.
    """
    try:
        places.place(checkpoints)
    except PlaceError as error:
        hint = "install the package it names, or give a folder that all workers share"
        raise UserError(str(error), hint) from error
    if not places.is_url(checkpoints):
        _refuse_no_folder(Path(checkpoints))
    return places.absolute(checkpoints)


def _refuse_no_folder(path: Path) -> None:
    """Check that a path is a folder, or that a folder could be made there.

    Raises:
        UserError: Something else is in its place, or no file system accepts it.
    """
    if not str(path).isprintable():
        what = f"checkpoints cannot be kept at {str(path)!r}"
        raise UserError(what, "name a folder of printable letters")
    try:
        obstacle = _obstacle(path)
    except OSError as error:
        what = f"checkpoints cannot be kept at {str(path)[:60]!r}: {error.strerror}"
        raise UserError(what, "name another folder with --checkpoints") from None
    if obstacle is not None:
        what = f"checkpoints cannot be kept at {path}: {obstacle} is not a folder"
        raise UserError(what, "name another with --checkpoints")


def _obstacle(path: Path) -> Path | None:
    """What is there already on the way to a folder, and is not a folder."""
    for part in (path, *path.parents):
        if part.exists() and not part.is_dir():
            return part
    return None


def move_in(store: Store, history: History, home: Home, lease: Lease) -> None:
    """Record a study's folder of checkpoints, and then mark it.

    In this order, every folder that carries a mark is in the database.

    Args:
        store: The database.
        history: The study, as the database has it.
        home: Its folder from now on.
        lease: The caller's.

    Raises:
        StudyHeld: Another driver has given the study another uid since it was read.
        UserError: The folder cannot be used.
    """
    record = history.study
    if record.uid not in (None, home.mark.uid):
        raise StudyHeld(
            f"another driver took over study {record.name}",
            f"try again: hpsearch resume {record.name}",
        )
    present = next(iter(folders_of(record)), None)
    if (record.uid, present) != (home.mark.uid, home.folder):
        settle(record, home)
        history.touch_study()
        store.commit(record.id, history.drain(), lease)
    home.claim()
