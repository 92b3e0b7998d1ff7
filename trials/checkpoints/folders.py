"""Names of the folders of trials and of their checkpoints, by a path or by a URL."""

import os
import re
from pathlib import Path

from trials.checkpoints.checkpoint_folder import CheckpointFolder
from trials.checkpoints.disk_folder import DiskFolder
from trials.checkpoints.store_folder import StoreFolder

LOGS = "logs"  # the folder of logs inside a study's folder

_TRIAL = re.compile(r"trial-([0-9]{5,})")


def folder_at(folder: Path | str) -> CheckpointFolder:
    """The folder that a path or a URL names; made with the first checkpoint. Raises FolderError if
    no installed library can read or write such URLs."""
    return StoreFolder(str(folder)) if is_url(folder) else DiskFolder(Path(folder))


def is_url(folder: Path | str) -> bool:
    return isinstance(folder, str) and "://" in folder


def is_there(path: Path | str) -> bool:
    """True if this process finds something at a path; its name may be too long for a path."""
    return os.path.exists(path)  # noqa: PTH110 - `Path.exists` raises there


def absolute(folder: Path | str) -> str:
    """The name of a folder in every process: an absolute path, or the URL."""
    if is_url(folder):
        return str(folder).rstrip("/")
    return str(Path(folder).absolute())


def inside(folder: Path | str, name: str) -> Path | str:
    return f"{folder}/{name}" if is_url(folder) else Path(folder) / name


def split(source: Path | str) -> tuple[Path | str, str]:
    if not is_url(source):
        path = Path(source)
        return path.parent, path.name
    folder, _, name = str(source).rstrip("/").rpartition("/")
    return folder, name


def trial_folder(number: int) -> str:
    return f"trial-{number:05d}"


def trial_of(name: str) -> int | None:
    """The number of the trial whose folder has this name; None for other folders."""
    match = _TRIAL.fullmatch(name)
    if match is None:
        return None
    number = int(match[1])
    return number if trial_folder(number) == name else None


def log_of(study: Path | str, trial: int, attempt: int) -> Path | str:
    """The file for the output of an attempt's programs. It is outside the trial's own folder, which
    is removed if nothing of the trial is kept."""
    return inside(inside(study, LOGS), f"{trial_folder(trial)}-attempt-{attempt}.log")


def used_bytes(folder: Path | str) -> int:
    """The bytes of all files in a folder; 0 if it does not exist. Raises FolderError if no
    installed library can read such URLs, OSError if the folder cannot be read."""
    return sum(folder_at(folder).sizes().values())
