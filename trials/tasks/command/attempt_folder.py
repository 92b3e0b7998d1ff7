"""The folder that a program writes into: one for each attempt, and what is sealed of it.

It begins with what the last sealed checkpoint holds. A program of an earlier attempt that still
runs somewhere has another folder, so what it writes spoils nothing. The program's files are in a
folder of their own inside a checkpoint, beside what is known about the trial.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trials.checkpoints import folders
from trials.disk import drafts, trees
from trials.disk.whole_folders import make_folder

FILES = "folder"
"""The program's own files, in a checkpoint and in the attempt's folder."""
PROGRESS = "progress.json"
"""The file of a checkpoint with the progress of the trial."""
PARAMS = "params.json"
_PREFIX = "attempt-"

Signature = tuple[tuple[str, int, int, int], ...]
"""The name of each file, its number in the file system, its size and the time of its last
change."""


class AttemptFolder:
    """The folder of one attempt.

    Args:
        trial: The trial's own folder, a path or a URL.
        attempt: The number of the attempt.
        checkpoint: The files of the checkpoint that is continued from; None to begin with nothing.
    """

    def __init__(self, trial: Path | str, attempt: int, checkpoint: Path | None) -> None:
        self._trial = trial
        self._home = _new_home(trial, attempt)
        self.path = self._home / FILES
        self.progress: dict[str, Any] = {}
        self._sealed: Signature = ()
        if checkpoint is None:
            self.path.mkdir()
            return
        trees.copy(checkpoint / FILES, self.path)
        self.progress = json.loads((checkpoint / PROGRESS).read_text())
        self._sealed = self.signature()

    @property
    def is_empty(self) -> bool:
        """The program has written nothing, or has removed its folder."""
        try:
            return next(self.path.iterdir(), None) is None
        except PermissionError:
            return False
        except (FileNotFoundError, NotADirectoryError):
            return True

    @property
    def has_changed(self) -> bool:
        """The program has written something since this was last copied, or filled."""
        return self.signature() != self._sealed

    def clear(self) -> None:
        """Begin with nothing."""
        trees.remove(self.path)
        self.path.mkdir()

    def write_params(self, params: Mapping[str, Any]) -> Path:
        """Write all parameters as JSON beside the program's files; the file is returned."""
        file = self._home / PARAMS
        file.write_text(json.dumps(dict(params), indent=1))
        return file

    def copy_into(self, draft: Path, progress: Mapping[str, Any]) -> list[str]:
        """Fill a checkpoint; the names of what is not copied are returned."""
        left_out = trees.copy(self.path, draft / FILES)
        (draft / PROGRESS).write_text(json.dumps(progress))
        self._sealed = self.signature()
        return left_out

    def remove(self) -> None:
        """Remove everything."""
        drafts.discard(self._home)
        if not folders.is_url(self._trial):
            _remove_if_empty(Path(self._trial))

    def signature(self) -> Signature:
        """The state of all files, which differs if the program has written something since."""
        found = []
        for entry in trees.entries(self.path):
            facts = entry.facts
            found.append((entry.name, facts.st_ino, facts.st_size, facts.st_mtime_ns))
        return tuple(found)


def _new_home(trial: Path | str, attempt: int) -> Path:
    prefix = f"{_PREFIX}{attempt}-"
    if folders.is_url(trial):
        temporary = Path(tempfile.gettempdir())
        drafts.remove_abandoned(temporary, f"hpsearch-{_PREFIX}")
        return drafts.private(f"hpsearch-{prefix}").resolve()
    folder = Path(trial)
    make_folder(folder)
    drafts.remove_abandoned(folder, _PREFIX)
    return drafts.new(folder, prefix).resolve()


def _remove_if_empty(folder: Path) -> None:
    if folder.is_dir() and next(folder.iterdir(), None) is None:
        folder.rmdir()
