"""The budget that is left for one slot at one moment, and what still fits into it.

Two questions are asked. Before anything starts, its worst case must fit into what the ledger has
left. And near the end, only work that can still win is begun: work that is expected, at the pace of
its trial or of all trials so far and with the start-up of an attempt on the slot, to get far enough
before the GPU time, the money or the wall clock is used up.

Where the leading configurations are to be confirmed, part of the budget is kept back from the
search: what their repeats are expected to take, at most a third of the whole, and nothing once not
even one of them would fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from hpsearch.brain.budget.ledger import gpu_share
from hpsearch.brain.budget.spending import MARGIN, Spending, StartUp
from hpsearch.domain.history import History
from hpsearch.domain.records import Trial

NOTE_S = 10.0
"""How often the time worked is recorded, in seconds."""

MOST_KEPT = 1 / 3
"""The largest share of a budget that is kept back for confirmation: without a search it is worth
little."""


@dataclass(frozen=True)
class Headroom:
    """The budget that is left for one slot.

    Args:
        spending: Of the study.
        gpus: GPUs of the slot.
        slots: How many slots the study has.
        wall_clock_s: The study's limit; None for none.
        time_left_s: What is left of it.
        kept: Resource to keep back: of the repeats that are to confirm the winners.
        start_up: What an attempt on the slot takes before it trains.
        begins: True for a new attempt, which has its start-up before it.
        running: How many trials of the search run, which may still change the standings.
        last_call: True if none of the search ran before slots were given work just now: nothing
            will be given back of what is reserved.
    """

    spending: Spending
    gpus: float
    slots: int
    wall_clock_s: float | None
    time_left_s: float
    kept: float = 0.0
    start_up: StartUp = field(default_factory=StartUp)
    begins: bool = True
    running: int = 0
    last_call: bool = False

    def under_way(self) -> Headroom:
        """The same for an attempt that trains already."""
        return replace(self, begins=False)

    def without_reserve(self) -> Headroom:
        """The same for what the rest was kept back for."""
        return replace(self, kept=0.0)

    @property
    def is_limited(self) -> bool:
        """True if time, GPU time or money may run out."""
        return self.wall_clock_s is not None or self.spending.ledger.limit is not None

    def can_start(self, stretch: float, trial: Trial | None = None) -> bool:
        """True if a further stretch of training can be afforded, and is expected to end in time."""
        return self.affords(stretch, trial) and self.in_time(stretch, trial)

    def affords(self, stretch: float, trial: Trial | None = None) -> bool:
        """True if the worst case of a further stretch of training can be reserved now."""
        spending = self.spending
        start_up_s = self.start_up.worst_s if self.begins else 0.0
        need = spending.need(stretch, self.gpus, self.slots, trial, start_up_s)
        left = spending.ledger.left
        return left is None or 0 < left >= need + self._kept_gpu_seconds()

    def reaches(self, distance: float, trial: Trial | None = None) -> bool:
        """True if this much training is expected to fit into what is left."""
        pace = self._pace(trial)
        if pace is None:
            return True
        left = self.spending.ledger.left
        if left is not None:
            expected = self._expected_s(distance, pace) * gpu_share(self.gpus)
            free = left - self._kept_gpu_seconds()
            if expected > free:
                return False
        return self.in_time(distance, trial)

    def in_time(self, distance: float, trial: Trial | None = None) -> bool:
        """True if this much training is expected to end before the wall-clock limit.

        With a distance of 0: whether any time is left.
        """
        if self.wall_clock_s is None:
            return True
        pace = self._pace(trial) or 0.0
        return self._expected_s(distance, pace) <= self.time_left_s - self._kept_seconds()

    def _expected_s(self, distance: float, pace: float) -> float:
        """Seconds that this much training is expected to take, with the start-up before it."""
        start_up_s = self.start_up.expected_s if self.begins else 0.0
        return start_up_s + distance * pace

    def _pace(self, trial: Trial | None) -> float | None:
        """The pace that is expected of a trial: its own, or else the mean one."""
        spending = self.spending
        return spending.pace_of(trial) or spending.pace

    def _kept_gpu_seconds(self) -> float:
        """The part of the ledger kept back; nothing if not even one repeat can begin any more."""
        spending = self.spending
        ledger = spending.ledger
        limit = ledger.limit
        pace = spending.pace
        if limit is None or pace is None or not self.kept:
            return 0.0
        one_repeat = self._repeat_s(pace) * gpu_share(self.gpus)
        if ledger.spent + MARGIN * one_repeat > limit:
            return 0.0
        expected = self._repeats * one_repeat
        return min(limit * MOST_KEPT, expected)

    def _kept_seconds(self) -> float:
        """The part of the time kept back; nothing if not even one repeat would end in it."""
        limit_s = self.wall_clock_s
        spending = self.spending
        pace = spending.pace
        if limit_s is None or pace is None or not self.kept:
            return 0.0
        one_repeat = self._repeat_s(pace)
        if one_repeat > self.time_left_s:
            return 0.0
        side_by_side = max(1, self.slots)
        expected = max(one_repeat, self._repeats * one_repeat / side_by_side)
        return min(limit_s * MOST_KEPT, expected)

    @property
    def _repeats(self) -> float:
        """The number of repeats for which something is kept back."""
        return self.kept / self.spending.total

    def _repeat_s(self, pace: float) -> float:
        """Seconds that a repeat is expected to take."""
        return self.start_up.expected_s + self.spending.total * pace


class WorkingTime:
    """The time that one study has been worked on, in seconds; without a limit, `limit_s` is
    None."""

    def __init__(self, history: History, limit_s: float | None) -> None:
        self._history = history
        self.limit_s = limit_s
        self._before = 0.0
        self._began = 0.0
        self._noted = 0.0

    def begin(self, now: float, before_s: float | None = None) -> None:
        """Count from now on; the study has been worked on for so long, or as its record says."""
        self._before = self._history.study.active_seconds if before_s is None else before_s
        self._began = now
        self._noted = now

    def so_far(self, now: float) -> float:
        """Seconds that drivers have worked on the study, over all of them."""
        return self._before + max(0.0, now - self._began)

    def left(self, now: float) -> float:
        """Seconds left of the limit; 0 without one."""
        return 0.0 if self.limit_s is None else self.limit_s - self.so_far(now)

    def is_used(self, now: float) -> bool:
        """True if the limit is reached."""
        return self.limit_s is not None and self.so_far(now) >= self.limit_s

    def note(self, now: float) -> None:
        """Record the time every `NOTE_S` seconds, for the next driver if this one dies."""
        if now - self._noted < NOTE_S:
            return
        self._noted = now
        history = self._history
        history.study.active_seconds = self.so_far(now)
        history.touch_study()
