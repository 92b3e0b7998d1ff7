"""The budget that is left for one slot at one moment, and what still fits into it.

Before anything starts, its worst case must fit into what the ledger has left. Near the end, only
work that can still win is begun: it is expected, at the pace of its trial or of all trials so far,
to get far enough before the GPU time, the money or the wall clock is used up. Where the leaders are
to be confirmed, what their repeats are expected to take is kept back from the search: at most a
third of the whole, and nothing once not even one of them would fit.
"""

from dataclasses import dataclass, field, replace
from typing import Self

from hpsearch.brain.budget.ledger import MARGIN, Spending, StartUp, charged_gpus
from hpsearch.domain.records import Trial

MOST_KEPT_BACK = 1 / 3
"""The largest share of a budget that is kept back for repeats, which need a search before them."""


@dataclass(frozen=True)
class Headroom:
    """The budget that is left for one slot, with so many GPUs and so many slots in all."""

    spending: Spending
    now: float
    gpus: float
    slots: int
    device: str | None = None  # the type of the slot's device; None for any
    kept_back: float = 0.0  # resource to keep back: of the repeats that are to confirm the winners
    start_up: StartUp = field(default_factory=StartUp)  # the start-up of an attempt on the slot
    begins: bool = True  # true for a new attempt, which has its start-up before it
    search_is_idle: bool = False
    """True if no trial of the search runs, so that none will give back what it has reserved."""

    def under_way(self) -> Self:
        """The same for an attempt that trains already."""
        return replace(self, begins=False)

    def including_kept_back(self) -> Self:
        """The same with nothing kept back: for a repeat, or a trial that leads."""
        return replace(self, kept_back=0.0)

    @property
    def is_limited(self) -> bool:
        """True if time, GPU time or money may run out."""
        spending = self.spending
        return spending.time.limit_s is not None or spending.ledger.is_limited

    def can_start(self, stretch: float, trial: Trial | None = None) -> bool:
        """True if a further stretch of training can be afforded, and is expected to end in time."""
        return self.affords(stretch, trial) and self.in_time(stretch, trial)

    def affords(self, stretch: float, trial: Trial | None = None) -> bool:
        """True if the worst case of a further stretch of training can be reserved now."""
        left = self.spending.ledger.left(self.device)
        return left is None or 0 < left >= self.cost(stretch, trial) + self._kept_back_gpu_seconds()

    def cost(self, stretch: float, trial: Trial | None = None) -> float:
        """The most GPU-seconds that a further stretch of training may take."""
        start_up_s = self.start_up.worst_s if self.begins else 0.0
        return self.spending.need(stretch, self.gpus, self.slots, trial, start_up_s, self.device)

    def reaches(self, distance: float, trial: Trial | None = None) -> bool:
        """True if this much training is expected to fit into what is left."""
        pace = self._pace(trial)
        if pace is None:
            return True
        left = self.spending.ledger.left(self.device)
        if left is not None:
            expected = self._expected_s(distance, pace) * charged_gpus(self.gpus)
            free = left - self._kept_back_gpu_seconds()
            if expected > free:
                return False
        return self.in_time(distance, trial)

    def in_time(self, distance: float, trial: Trial | None = None) -> bool:
        """True if this much training is expected to end before the wall-clock limit."""
        if self.spending.time.limit_s is None:
            return True
        pace = self._pace(trial) or 0.0
        left_s = self.spending.time.left(self.now)
        return self._expected_s(distance, pace) <= left_s - self._kept_back_seconds()

    def _expected_s(self, distance: float, pace: float) -> float:
        start_up_s = self.start_up.expected_s if self.begins else 0.0
        return start_up_s + distance * pace

    def _pace(self, trial: Trial | None) -> float | None:
        spending = self.spending
        return spending.pace_of(trial, self.device) or spending.paces.mean(self.device)

    def _kept_back_gpu_seconds(self) -> float:
        """The part of the ledger kept back; nothing if not even one repeat can begin any more."""
        ledger, pace = self.spending.ledger, self.spending.paces.mean()
        whole, unspent = ledger.whole(self.device), ledger.unspent(self.device)
        if whole is None or unspent is None or pace is None or not self.kept_back:
            return 0.0
        one_repeat = self._repeat_s(pace) * charged_gpus(self.gpus)
        if MARGIN * one_repeat > unspent:
            return 0.0
        expected = self._repeats * one_repeat
        return min(whole * MOST_KEPT_BACK, expected)

    def _kept_back_seconds(self) -> float:
        """The part of the time kept back; nothing if not even one repeat would end in it."""
        time, pace = self.spending.time, self.spending.paces.mean()
        if time.limit_s is None or pace is None or not self.kept_back:
            return 0.0
        one_repeat = self._repeat_s(pace)
        if one_repeat > time.left(self.now):
            return 0.0
        side_by_side = max(1, self.slots)
        expected = max(one_repeat, self._repeats * one_repeat / side_by_side)
        return min(time.limit_s * MOST_KEPT_BACK, expected)

    @property
    def _repeats(self) -> float:
        return self.kept_back / self.spending.trial_total

    def _repeat_s(self, pace: float) -> float:
        return self.start_up.expected_s + self.spending.trial_total * pace
