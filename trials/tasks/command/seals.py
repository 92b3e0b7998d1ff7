"""The checkpoints of an attempt of a command: what it begins with, and what it leaves."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.manifests import CheckpointError, Label
from trials.contract import Setup
from trials.tasks.command.attempt_folder import PROGRESS, AttemptFolder
from trials.tasks.command.output import Output
from trials.tasks.function.report_history import ReportHistory

SHARE = 0.01
"""The share of the time that a program may be suspended for checkpoints that nobody waits for."""
FIRST_COST_S = 0.05
"""The expected cost of the first checkpoint."""


class Seals:
    """The attempt's folder, and the checkpoints that are made of it.

    Attributes:
        folder: The folder that the program writes into, filled from the checkpoint.
        history: The reports of the trial.
        sealed_at: The resource of the newest checkpoint of this attempt; None if there is none.

    Args:
        resumes: Whether a program continues from what it has written.

    Raises:
        CheckpointError: The checkpoint is damaged, or is another trial's that has nothing left to
            train.
    """

    def __init__(self, setup: Setup, output: Output, *, resumes: bool) -> None:
        self._setup = setup
        self._output = output
        self._checkpoints = Checkpoints(setup.folder, unit=setup.budget.unit)
        self.folder = self._filled_folder(setup.resume_from if resumes else None)
        state = self.folder.progress.get("history")
        self.history = ReportHistory(setup, self._checkpoints, state)
        self.newest: Path | str | None = None
        self.sealed_at: float | None = None
        self._sealed_time = time.monotonic()
        self._cost_s = FIRST_COST_S
        self._has_noted = False

    def _filled_folder(self, source: Path | str | None) -> AttemptFolder:
        setup = self._setup
        with ExitStack() as stack:
            files: Path | None = None
            if source is not None:
                checkpoint = stack.enter_context(opened(source))
                files = checkpoint.files
                if setup.takes_over:
                    self._refuse_trained(files)
                    self._checkpoints.begin_anew()
                else:
                    self._checkpoints.continue_from(source, checkpoint.path)
            return AttemptFolder(setup.folder, setup.attempt, files)

    def _refuse_trained(self, files: Path) -> None:
        trained, total = trained_to(json.loads((files / PROGRESS).read_text())), self._setup.budget
        if trained < total.total:
            return
        what = f"its program had trained to {trained:g} of {total.total:g} {total.unit.value}"
        raise CheckpointError(f"{what} by the time it was suspended: nothing is left to train")

    @property
    def is_due(self) -> bool:
        """There is something new to seal, and time for it although nobody waits for it."""
        allowed_s = SHARE * (time.monotonic() - self._sealed_time)
        return self._cost_s <= allowed_s and self.folder.has_changed

    @property
    def best(self) -> Path | str | None:
        """The checkpoint of the best report; None if this attempt has made none."""
        return None if self.newest is None else self._checkpoints.best_until(self.newest)

    def recorded(self, resource: float) -> None:
        """Remove checkpoints that are older than a report that is recorded."""
        self._checkpoints.recorded(resource)

    def seal(self, progress: Mapping[str, Any], metrics: Mapping[str, float]) -> Path | str | None:
        """Make a checkpoint of what the program has written; None if that is nothing.

        Args:
            progress: The progress of the trial.
            metrics: The last report.
        """
        if self.folder.is_empty:
            return None
        began = time.monotonic()
        with self._checkpoints.drafting() as draft:
            left_out = self.folder.copy_into(draft, progress)
        self._note_left_out(left_out)
        reached: float = progress["reached"]
        path = self._checkpoints.commit(draft, Label(reached))
        self.history.mark_best(metrics, path)
        self._checkpoints.reported(reached, path)
        self.newest, self.sealed_at = path, reached
        self._sealed_time = time.monotonic()
        self._cost_s = self._sealed_time - began
        return path

    def _note_left_out(self, names: list[str]) -> None:
        """Say once that pipes and sockets are not in the checkpoints."""
        if names and not self._has_noted:
            self._has_noted = True
            listed = ", ".join(map(repr, names))
            self._output.note(f"left out of the checkpoint: {listed} (not files)")


def trained_to(progress: Mapping[str, Any]) -> float:
    """How far the files of a checkpoint were trained: the resource of the last report that its
    program had made, handed over or not."""
    pending = progress.get("pending")
    return float(pending[-1][0] if pending else progress["reached"])
