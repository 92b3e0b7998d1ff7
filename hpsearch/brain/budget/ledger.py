"""The ledger of a study: what it may spend, has reserved and has spent; and the time it has taken.

Amounts are GPU-seconds: the seconds for which a slot was held, times its share of GPUs. A slot
without a GPU counts as one, so that a budget means something on a laptop too. Nothing starts unless
its reservation fits into what is left; an attempt that outgrows its reservation must extend it or
stop. The ledger is rebuilt from the attempts in the database.

A limit on money is said in the GPU-seconds that it pays on the type of device that asks.
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

    budget: StudyBudget
    """The limits and the prices."""
    spent: float = 0.0
    paid: float = 0.0
    """Money, as far as a limit counts it (`StudyBudget.most_price_of`)."""
    reserved: dict[Key, float] = field(default_factory=dict)
    to_pay: dict[Key, float] = field(default_factory=dict)
    """The money that is reserved."""

    @classmethod
    def of(cls, budget: StudyBudget, attempts: Iterable[Attempt]) -> Ledger:
        """The ledger as it follows from the attempts."""
        ledger = cls(budget)
        for attempt in attempts:
            ledger.settle(attempt)
        return ledger

    @property
    def is_limited(self) -> bool:
        """True if GPU time or money may run out."""
        return self.budget.gpu_hours is not None or self.budget.cost is not None

    def whole(self, device: str | None) -> float | None:
        """GPU-seconds that may be spent on a type of device in all; None without a limit."""
        return self._beyond(device, 0.0, 0.0)

    def unspent(self, device: str | None) -> float | None:
        """GPU-seconds of a type of device that are not spent; None without a limit."""
        return self._beyond(device, self.spent, self.paid)

    def left(self, device: str | None) -> float | None:
        """GPU-seconds of a type of device neither spent nor reserved; None without a limit."""
        reserved, to_pay = sum(self.reserved.values()), sum(self.to_pay.values())
        return self._beyond(device, self.spent + reserved, self.paid + to_pay)

    def _beyond(self, device: str | None, seconds: float, money: float) -> float | None:
        """GPU-seconds beyond so many, and so much money: of two limits the lower one holds."""
        hours, cost = self.budget.gpu_hours, self.budget.cost
        rests = [] if hours is None else [hours * 3600.0 - seconds]
        if cost is not None:
            rests.append((cost - money) / self._price(device))
        return max(0.0, min(rests)) if rests else None

    def _price(self, device: str | None) -> float:
        """Money for a GPU-second by which limits count; 0 if no price is stated."""
        return (self.budget.most_price_of(device) or 0.0) / 3600.0

    def reserve(self, attempt: Attempt, amount: float) -> bool:
        """Reserve more of the budget for an attempt; False, and nothing changed, if it does not
        fit."""
        left = self.left(attempt.device)
        if left is not None and amount > left:
            return False
        self.hold(attempt, amount)
        return True

    def hold(self, attempt: Attempt, amount: float) -> None:
        """Reserve more for an attempt, whether or not it fits."""
        key = (attempt.trial, attempt.number)
        self.reserved[key] = self.reserved.get(key, 0.0) + amount
        self.to_pay[key] = self.reserved[key] * self._price(attempt.device)

    def settle(self, attempt: Attempt) -> None:
        """Record what an ended attempt used as spent, and free the rest of its reservation."""
        key = (attempt.trial, attempt.number)
        self.reserved.pop(key, None)
        self.to_pay.pop(key, None)
        self.spent += attempt.gpu_seconds
        self.paid += attempt.gpu_seconds * self._price(attempt.device)


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
