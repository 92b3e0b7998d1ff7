"""The ledger of a study: what it may spend, has reserved and has spent; and the time it has taken.

Amounts are GPU-seconds: the seconds for which a slot was held, times its share of GPUs. A slot
without a GPU counts as one, so that a budget means something on a laptop too. Nothing starts unless
its reservation fits into what is left; an attempt that outgrows its reservation must extend it or
stop. The ledger is rebuilt from the attempts in the database.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from hpsearch.domain.history import History
from hpsearch.domain.records import Attempt
from hpsearch.study_file.models import StudyBudget

NOTE_S = 10.0
"""Seconds between two records of the time worked."""

Key = tuple[int, int]
"""(trial, attempt)"""


def gpu_share(gpus: float) -> float:
    """GPU-seconds that a slot costs per second."""
    return gpus if gpus > 0 else 1.0


@dataclass
class Ledger:
    """The GPU-seconds that one study may spend, has spent and has reserved."""

    limit: float | None = None
    """None without a limit."""
    price: float | None = None
    """Money per GPU-second; None if the study states none."""
    spent: float = 0.0
    reserved: dict[Key, float] = field(default_factory=dict)

    @classmethod
    def of(cls, budget: StudyBudget, attempts: Iterable[Attempt]) -> Ledger:
        """The ledger as it follows from the attempts.

        Of two limits, in hours and in money, the lower one holds.
        """
        hourly = budget.cost_per_gpu_hour
        price = hourly / 3600.0 if hourly else None
        spent = sum(attempt.gpu_seconds for attempt in attempts)
        ledger = cls(None, price, spent)
        ledger.keep_to(budget)
        return ledger

    def keep_to(self, budget: StudyBudget) -> None:
        """Take the limit of a budget whose price is the same."""
        limits = []
        if budget.gpu_hours is not None:
            limits.append(budget.gpu_hours * 3600.0)
        if budget.cost is not None and self.price:
            limits.append(budget.cost / self.price)
        self.limit = min(limits, default=None)

    @property
    def left(self) -> float | None:
        """GPU-seconds neither spent nor reserved; None for no limit."""
        if self.limit is None:
            return None
        reserved = sum(self.reserved.values())
        return max(0.0, self.limit - self.spent - reserved)

    def reserve(self, key: Key, amount: float) -> bool:
        """Reserve more of the budget for an attempt; False, and nothing changed, if it does not
        fit."""
        left = self.left
        if left is not None and amount > left:
            return False
        before = self.reserved.get(key, 0.0)
        self.reserved[key] = before + amount
        return True

    def settle(self, key: Key, used: float) -> None:
        """Record what an ended attempt used as spent, and free the rest of its reservation."""
        self.reserved.pop(key, None)
        self.spent += used

    def cost_of(self, gpu_seconds: float) -> float | None:
        """Money for an amount of GPU-seconds; None if no price is stated."""
        return None if self.price is None else gpu_seconds * self.price


class WorkingTime:
    """The seconds that drivers have worked on one study; `limit_s` is None without a limit."""

    def __init__(self, history: History, limit_s: float | None) -> None:
        self._history = history
        self.limit_s = limit_s
        self._before = 0.0
        self._began = 0.0
        self._noted = 0.0

    def begin(self, now: float, before_s: float | None = None) -> None:
        """Count from now on, after so many seconds; None for those on record."""
        self._before = self._history.study.active_seconds if before_s is None else before_s
        self._began = now
        self._noted = now

    def so_far(self, now: float) -> float:
        """Seconds that drivers have worked on the study, over all of them."""
        return self._before + max(0.0, now - self._began)

    def left(self, now: float) -> float:
        """Seconds left of the limit; infinite without one."""
        return math.inf if self.limit_s is None else self.limit_s - self.so_far(now)

    def is_used(self, now: float) -> bool:
        """True if the limit is reached."""
        return self.left(now) <= 0

    def note(self, now: float) -> None:
        """Record the time every `NOTE_S` seconds, for the next driver if this one dies."""
        if now - self._noted < NOTE_S:
            return
        self._noted = now
        self._history.study.active_seconds = self.so_far(now)
        self._history.touch_study()
