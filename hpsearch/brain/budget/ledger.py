"""The ledger: what a study may spend, has reserved, and has spent.

Amounts are GPU-seconds: the seconds for which a slot was held, times its share of GPUs. A slot
without a GPU counts as one, so that a budget means something on a laptop too. Nothing starts unless
its reservation fits into what is left; an attempt that outgrows its reservation must extend it or
stop. The ledger is rebuilt from the attempts in the database.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hpsearch.domain.records import Attempt
from hpsearch.study_file.models import StudyBudget

Key = tuple[int, int]
"""(trial, attempt)"""


def gpu_share(gpus: float) -> float:
    """GPU-seconds that a slot costs per second."""
    return gpus if gpus > 0 else 1.0


@dataclass
class Ledger:
    """The GPU-seconds that one study may spend, has spent and has reserved, by attempt.

    Without a limit, `limit` is None. The price is money per GPU-second, if the study states one.
    """

    limit: float | None = None
    price: float | None = None
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
        """Reserve (more of) the budget for an attempt.

        False, and nothing changed, if it does not fit.
        """
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
        if self.price is None:
            return None
        return gpu_seconds * self.price
