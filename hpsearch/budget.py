"""The ledger: what a study may spend, has reserved, and has spent.

Amounts are GPU-seconds: seconds a slot was held times its share of GPUs (a slot without a GPU counts as one, so that
a budget means something on a laptop too). Nothing starts unless its reservation fits in what is left; an attempt that
outgrows its reservation must extend it or stop. The ledger is rebuilt from the attempts in the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hpsearch.records import Attempt

Key = tuple[int, int]
"""(trial, attempt)"""


def gpu_share(gpus: float) -> float:
    """GPU-seconds a slot costs a second."""
    return gpus if gpus > 0 else 1.0


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
    def of(
        cls, attempts: Iterable[Attempt], *, gpu_hours: float | None, cost: float | None, cost_per_gpu_hour: float | None
    ) -> Ledger:
        """The books as the attempts tell them; of two limits, in hours and in money, the lower one holds."""
        limits = [gpu_hours * 3600.0] if gpu_hours is not None else []
        price = cost_per_gpu_hour / 3600.0 if cost_per_gpu_hour else None
        if cost is not None and price:
            limits.append(cost / price)
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


@dataclass
class Pace:
    """How fast trials of a study have trained so far, to know what the next stretch may cost at most.

    The worst case of a stretch is the slowest speed seen, with a margin, plus the longest start seen.
    """

    margin: float = 1.5
    slowest: float | None = None
    """Resource a second."""
    longest_start: float = 0.0
    """Seconds from launch to the first report beyond what training at the trial's speed explains."""

    def saw(self, resource: float, seconds: float) -> None:
        """A trial trained this much in this time."""
        if resource > 0 and seconds > 0:
            speed = resource / seconds
            self.slowest = speed if self.slowest is None else min(self.slowest, speed)

    def worst_case_s(self, resource: float) -> float | None:
        """Seconds that training so much further may take; None before anything was seen."""
        return None if self.slowest is None else self.longest_start + self.margin * resource / self.slowest
