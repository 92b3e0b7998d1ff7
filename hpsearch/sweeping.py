"""Removes checkpoints that no record names any more, in a thread: a slow disk or store never holds the driver up.

It watches what the driver has written. So files go only after the database has forgotten them, and whatever a driver
that died had not removed yet, the next one removes. A trial that a worker still holds is waited for.
"""

from __future__ import annotations

import threading
from pathlib import Path
from queue import SimpleQueue

from hpsearch.records import Changes, Trial
from hpsearch.study import Study
from trials.places import place, trial_folder

PATIENCE_S = 30.0
"""How long the end of a driver waits for removals; the next driver does the rest."""


class Sweeper:
    """The removals of one study.

    Args:
        checkpoints: The study's folder of checkpoints, a path or a URL.
    """

    def __init__(self, checkpoints: Path | str) -> None:
        self._place = place(checkpoints)
        self._waiting: set[int] = set()
        self._orders: SimpleQueue[int | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="sweeper", daemon=True)
        self._thread.start()

    def begin(self, trials: list[Trial]) -> None:
        """Take in a study as it was left: what its last driver had not removed."""
        self._waiting |= {trial.number for trial in trials if _gone(trial)}

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Called after every tick with what it wrote."""
        self._waiting |= {trial.number for trial in changes.trials if _gone(trial)}
        if not self._waiting:
            return
        held = {slot.holds[0] for slot in study.slots.values() if slot.holds is not None}
        for number in sorted(self._waiting - held):
            self._orders.put(number)
        self._waiting &= held

    def close(self) -> None:
        """Remove what is left to remove, for a while."""
        self._orders.put(None)
        self._thread.join(PATIENCE_S)

    def _work(self) -> None:
        while (number := self._orders.get()) is not None:
            self._place.remove(trial_folder(number))


def _gone(trial: Trial) -> bool:
    """Whether nothing of a trial is kept that may have left files."""
    return trial.state.terminal and trial.checkpoint is None and bool(trial.attempts)
