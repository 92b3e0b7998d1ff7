"""The ledger: what a study may spend, has reserved, and has spent; and what the next stretch may cost at most.

Amounts are GPU-seconds: seconds a slot was held times its share of GPUs (a slot without a GPU counts as one, so that
a budget means something on a laptop too). Nothing starts unless its reservation fits in what is left; an attempt that
outgrows its reservation must extend it or stop. The ledger is rebuilt from the attempts in the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hpsearch.records import Attempt, History, Outcome, Trial
from hpsearch.spec import StudyBudget
from trials.contract import Unit

Key = tuple[int, int]
"""(trial, attempt)"""


def gpu_share(gpus: float) -> float:
    """GPU-seconds a slot costs a second."""
    return gpus if gpus > 0 else 1.0


def _enough_for_s(attempt: Attempt, gpus: float) -> float:
    """For how long after its start an attempt may train before it must have more reserved, or stop."""
    reserved_s = attempt.reserved_gpu_seconds / gpu_share(gpus)
    return max(reserved_s - STOPPING_S, reserved_s * 0.9)


STOPPING_S = 5.0
"""How long an attempt may take to stop, where a tenth of its reservation is not less."""


ROUNDING_S = 1e-6
"""What a clock may be behind of a moment it was told to come back at."""


@dataclass
class Ledger:
    """The books of one study.

    Args:
        limit: GPU-seconds the study may spend; None for no limit.
        price: Money a GPU-second; None where the study states no price.
    """

    limit: float | None = None
    price: float | None = None
    spent: float = 0.0
    reserved: dict[Key, float] = field(default_factory=dict)

    @classmethod
    def of(cls, budget: StudyBudget, attempts: Iterable[Attempt]) -> Ledger:
        """The books as the attempts tell them; of two limits, in hours and in money, the lower one holds."""
        limits = [budget.gpu_hours * 3600.0] if budget.gpu_hours is not None else []
        price = budget.cost_per_gpu_hour / 3600.0 if budget.cost_per_gpu_hour else None
        if budget.cost is not None and price:
            limits.append(budget.cost / price)
        return cls(min(limits, default=None), price, sum(attempt.gpu_seconds for attempt in attempts))

    @property
    def left(self) -> float | None:
        """GPU-seconds neither spent nor reserved; None for no limit."""
        if self.limit is None:
            return None
        return max(0.0, self.limit - self.spent - sum(self.reserved.values()))

    def reserve(self, key: Key, amount: float) -> bool:
        """Set aside (more of) the budget for an attempt; False, and nothing changed, if it does not fit."""
        left = self.left
        if left is not None and amount > left:
            return False
        self.reserved[key] = self.reserved.get(key, 0.0) + amount
        return True

    def settle(self, key: Key, used: float) -> None:
        """An attempt has ended: what it used is spent, the rest of its reservation is free again."""
        self.reserved.pop(key, None)
        self.spent += used

    def cost_of(self, gpu_seconds: float) -> float | None:
        """Money for an amount of GPU-seconds; None where no price is stated."""
        return None if self.price is None else gpu_seconds * self.price


class Books:
    """The ledger of a study together with how fast its trials train.

    Before a stretch of training its worst case is reserved: the trial's own pace, or the slowest one seen, with a
    margin, within the trial's time limit; a fair share of the budget before anything was seen. A pace is seconds for a
    unit of the trial budget.

    Args:
        budget: The study's.
        history: Its records so far, which the books are rebuilt from.
    """

    MARGIN = 1.5
    """How much slower than the slowest trial so far the next one may be."""

    def __init__(self, budget: StudyBudget, history: History) -> None:
        self._per_trial = budget.per_trial
        self._history = history
        self._paces: dict[int, float] = {}
        self._sum = self._slowest = 0.0
        self._fruitless = 0.0  # the most GPU-seconds that an attempt took without a report: it takes more
        attempts = [attempt for trial in history.trials for attempt in trial.attempts]
        self.ledger = Ledger.of(budget, attempts)
        for trial in history.trials:
            if trial.resource > 0 and trial.gpu_seconds > 0:
                self.saw(trial, trial.resource, trial.gpu_seconds)
            for attempt in trial.attempts:
                self._note_fruitless(trial, attempt)

    def saw(self, trial: Trial, trained: float, seconds: float) -> None:
        """A trial trained this much in this time, over its latest attempt."""
        pace = seconds / trained
        self._sum += pace - self._paces.get(trial.number, 0.0)
        self._paces[trial.number] = pace
        self._slowest = max(self._slowest, pace)

    @property
    def pace(self) -> float | None:
        """The mean pace of all trials; None before one has reported."""
        return self._sum / len(self._paces) if self._paces else None

    def need(self, stretch: float, gpus: float, slots: int, pace: float | None = None) -> float:
        """GPU-seconds that training so much further may take at most, on one of so many slots; at the trial's own
        pace, where that is known."""
        if self.ledger.limit is None:
            return 0.0
        slowest = pace or self._slowest
        worst = self.MARGIN * stretch * slowest if slowest else None
        if self._per_trial.unit is Unit.SECONDS:
            worst = max(worst or 0.0, stretch)
        if (limit := self._per_trial.time_limit_s) is not None:
            worst = limit if worst is None else min(worst, limit)
        if worst is None:
            fair = max(0.0, self.ledger.limit - self.ledger.spent) / max(1, slots) * 0.99
            return max(fair, self._fruitless)
        return worst * gpu_share(gpus)

    def affordable(self, amount: float) -> bool:
        """Whether something of that cost could start now."""
        left = self.ledger.left
        return left is None or 0 < left >= amount

    def reserve(self, attempt: Attempt, amount: float) -> bool:
        """Set aside (more) GPU-seconds for an attempt; False, and nothing changed, if they are not left."""
        if not self.ledger.reserve((attempt.trial, attempt.number), amount):
            return False
        attempt.reserved_gpu_seconds += amount
        if attempt.number <= len(self._history.trials[attempt.trial].attempts):  # not one that is only being planned
            self._history.touch_attempt(attempt)
        return True

    def due(self, running: Iterable[tuple[Attempt, float]]) -> float | None:
        """When the first of these attempts, each on a slot of so many GPUs, will have outgrown what is reserved for it.

        That is a little before its reservation is used up, since it takes a step and a save to stop.
        """
        if self.ledger.limit is None:
            return None
        return min((attempt.started + _enough_for_s(attempt, gpus) for attempt, gpus in running), default=None)

    def outgrown(self, attempt: Attempt, now: float, gpus: float) -> bool:
        """Whether an attempt has used up what was reserved for it, and no more could be."""
        if self.ledger.limit is None or now + ROUNDING_S < attempt.started + _enough_for_s(attempt, gpus):
            return False
        return not self.reserve(attempt, max(1.0, attempt.reserved_gpu_seconds / 4))

    def settle(self, attempt: Attempt, outcome: Outcome, now: float, gpus: float, note: str | None) -> None:
        """An attempt has ended: charge it and its trial for the time it held its slot."""
        trial = self._history.trials[attempt.trial]
        attempt.ended, attempt.outcome, attempt.note = now, outcome, note
        attempt.gpu_seconds = max(0.0, now - attempt.started) * gpu_share(gpus)
        self.ledger.settle((attempt.trial, attempt.number), attempt.gpu_seconds)
        trial.gpu_seconds += attempt.gpu_seconds
        trial.cost = self.ledger.cost_of(trial.gpu_seconds)
        self._note_fruitless(trial, attempt)
        self._history.touch_attempt(attempt)
        self._history.touch(trial)

    def _note_fruitless(self, trial: Trial, attempt: Attempt) -> None:
        if trial.resource <= attempt.start_resource:
            self._fruitless = max(self._fruitless, attempt.gpu_seconds)
