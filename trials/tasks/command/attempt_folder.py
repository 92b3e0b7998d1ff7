"""The folder that a program writes into: one for each attempt, with its checkpoints.

It begins with the files of the checkpoint that the attempt continues from. A program of an earlier
attempt that still runs somewhere has another folder, so it spoils nothing. Inside a checkpoint, the
program's files are in a folder of their own, beside the progress of the trial.
"""

import json
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trials.checkpoints import folders
from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.disk import drafts, trees
from trials.checkpoints.disk.whole_folders import make_folder, removed_on_error
from trials.checkpoints.manifests import Label
from trials.contract import Setup
from trials.tasks.command.program import EVENTS
from trials.tasks.function.report_history import ReportHistory

FILES, PROGRESS, PARAMS = "folder", "progress.json", "params.json"
SHARE = 0.01
"""The share of the time that a program may be suspended for checkpoints that nobody waits for."""
FIRST_COST_S = 0.05  # the expected cost of the first checkpoint
_PREFIX = "attempt-"

Signature = tuple[tuple[str, int, int, int], ...]
"""The name, inode, size and time of change of each file."""


class AttemptFolder:
    """The folder of one attempt, and its checkpoints. Raises CheckpointError if the checkpoint is
    damaged.

    Attributes:
        home: The folder around it, for files of ours.
        path: The folder that the program writes into.
        progress: The progress of the trial, from the checkpoint; empty for a trial that starts.
    """

    def __init__(self, setup: Setup, *, resumes: bool) -> None:
        self._trial = setup.folder
        self.checkpoints = Checkpoints(setup.folder, unit=setup.budget.unit)
        self.home = _new_home(setup.folder, setup.attempt)
        self.path = self.home / FILES
        self.progress: dict[str, Any] = {}
        if resumes and setup.resume_from is not None:
            self._fill(setup.resume_from)
        else:
            self.path.mkdir()
        self._saved_signature = self.signature()
        self.history = ReportHistory(setup, self.checkpoints, self.progress.get("history"))
        self.newest: Path | str | None = None
        self.saved_at: float | None = None
        self._saved_time = time.monotonic()
        self._cost_s = FIRST_COST_S

    def _fill(self, source: Path | str) -> None:
        with removed_on_error(self.home), opened(source) as checkpoint:
            self.checkpoints.continue_from(source, checkpoint.path)
            trees.copy(checkpoint.files / FILES, self.path)
            self.progress = json.loads((checkpoint.files / PROGRESS).read_text())

    def write_params(self, params: Mapping[str, Any]) -> Path:
        file = self.home / PARAMS
        file.write_text(json.dumps(dict(params), indent=1))
        return file

    def signature(self) -> Signature:
        """The state of all files but TensorBoard's; another one if the program has changed
        something that it may continue from."""
        found = []
        for path in trees.entries(self.path):
            if EVENTS in path.name:
                continue
            with suppress(FileNotFoundError):  # the program may remove it meanwhile
                facts = path.lstat()
                found.append((str(path), facts.st_ino, facts.st_size, facts.st_mtime_ns))
        return tuple(found)

    @property
    def is_due(self) -> bool:
        """There is something new to save, and time for it although nobody waits."""
        allowed_s = SHARE * (time.monotonic() - self._saved_time)
        return self._cost_s <= allowed_s and self.signature() != self._saved_signature

    @property
    def best(self) -> Path | str | None:
        """The checkpoint of the best report; None if this attempt has made none."""
        return None if self.newest is None else self.checkpoints.best_until(self.newest)

    def save(
        self, progress: Mapping[str, Any], metrics: Mapping[str, float], *, is_last: bool = False
    ) -> Path | str | None:
        """Make a checkpoint of the program's files after a report; None if there are none, or, but
        for the last one, only those of TensorBoard."""
        signature = self.signature()
        if not (signature or (is_last and any(True for _ in trees.entries(self.path)))):
            return None
        began = time.monotonic()
        with self.checkpoints.drafting() as draft:
            trees.copy(self.path, draft / FILES)
            (draft / PROGRESS).write_text(json.dumps(progress))
        reached: float = progress["reached"]
        path = self.checkpoints.commit(draft, Label(reached))
        self.history.mark_best(metrics, path)
        self.checkpoints.reported(reached, path)
        self.newest, self.saved_at = path, reached
        self._saved_signature = signature
        self._saved_time = time.monotonic()
        self._cost_s = self._saved_time - began
        return path

    def remove(self) -> None:
        """Remove everything that is not in a checkpoint."""
        drafts.discard(self.home)
        if folders.is_url(self._trial):
            return
        with suppress(OSError):  # it is not empty, or a link to somewhere
            Path(self._trial).rmdir()


def _new_home(trial: Path | str, attempt: int) -> Path:
    prefix = f"{_PREFIX}{attempt}-"
    if folders.is_url(trial):
        drafts.remove_abandoned(Path(tempfile.gettempdir()), f"hpsearch-{_PREFIX}")
        return drafts.private(f"hpsearch-{prefix}").resolve()
    folder = Path(trial)
    make_folder(folder)
    drafts.remove_abandoned(folder, _PREFIX)
    return drafts.new(folder, prefix).resolve()
