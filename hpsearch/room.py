"""What is left of a study's budget for one slot at one moment, and what still fits into it.

Two questions are asked. Before anything starts, its worst case must fit into what the ledger has left. And near the
end, only what can still win is begun: what is expected, at the pace of its trial or of all trials so far, to get far
enough before the GPU time, the money or the wall clock is used up.

Where the leading configurations are to be confirmed, part of the budget is kept back from the search: what their
repeats are expected to take, and at most a third of the whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from hpsearch.budget import Books, gpu_share
from hpsearch.records import Trial

MOST_KEPT = 1 / 3
"""The share of a budget that is kept back for confirmation at most: it is worth little without a search."""


@dataclass(frozen=True)
class Room:
    """What one slot may still begin.

    Args:
        books: The study's.
        gpus: GPUs of the slot.
        slots: How many slots the study has.
        wall_clock_s: The study's limit; None for none.
        time_left_s: What is left of it.
        kept: Resource to keep back: of the repeats that are to confirm the winners.
    """

    books: Books
    gpus: float
    slots: int
    wall_clock_s: float | None
    time_left_s: float
    kept: float = 0.0

    def without_reserve(self) -> Room:
        """The same for a repeat, which the rest was kept back for."""
        return replace(self, kept=0.0)

    def bears(self, stretch: float, trial: Trial | None = None) -> bool:
        """Whether training so much further can be afforded, and is expected to end in time."""
        return self.affords(stretch, trial) and self.in_time(stretch, trial)

    def affords(self, stretch: float, trial: Trial | None = None) -> bool:
        """Whether the worst case of training so much further can be reserved now."""
        need = self.books.need(stretch, self.gpus, self.slots, pace_of(trial))
        return self.books.affordable(need + self._kept_gpu_seconds())

    def reaches(self, distance: float, trial: Trial | None = None) -> bool:
        """Whether training so far is expected to fit into what is left."""
        pace = pace_of(trial) or self.books.pace
        if pace is None:
            return True
        expected = distance * pace * gpu_share(self.gpus)
        left = self.books.ledger.left
        return (left is None or expected <= left - self._kept_gpu_seconds()) and self.in_time(distance, trial)

    def in_time(self, distance: float, trial: Trial | None = None) -> bool:
        """Whether training so far is expected to end before the wall clock does; 0 asks whether there is time."""
        if self.wall_clock_s is None:
            return True
        pace = pace_of(trial) or self.books.pace or 0.0
        return distance * pace <= self.time_left_s - self._kept_seconds()

    def _kept_gpu_seconds(self) -> float:
        limit = self.books.ledger.limit
        if limit is None or self.books.pace is None:
            return 0.0
        return min(limit * MOST_KEPT, self.kept * self.books.pace * gpu_share(self.gpus))

    def _kept_seconds(self) -> float:
        if self.wall_clock_s is None or self.books.pace is None or not self.kept:
            return 0.0
        return min(self.wall_clock_s * MOST_KEPT, self.kept * self.books.pace / max(1, self.slots))


def pace_of(trial: Trial | None) -> float | None:
    """Seconds a trial trains for a unit of its budget, by its latest attempt."""
    return None if trial is None or not trial.speed or not math.isfinite(trial.speed) else 1 / trial.speed
