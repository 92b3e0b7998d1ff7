"""The part of a study's budget that a slot may use now, and what is reserved of it."""

from __future__ import annotations

from hpsearch.brain.agenda.confirmation import Confirmation
from hpsearch.brain.attempts import Attempts, Live, Slot
from hpsearch.brain.budget.headroom import Headroom, WorkingTime
from hpsearch.brain.budget.spending import Spending
from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.records import Trial


class Allowance:
    """The part of the budget of one study that is left.

    Args:
        history: Its records.
        spending: What it may spend, and has spent.
        time: How long it may be worked on.
        attempts: What runs.
        confirmation: The race, for whose repeats a part is kept back.
    """

    def __init__(
        self,
        history: History,
        spending: Spending,
        time: WorkingTime,
        attempts: Attempts,
        confirmation: Confirmation,
    ) -> None:
        self._history = history
        self.spending = spending
        self._time = time
        self._attempts = attempts
        self._confirmation = confirmation

    @property
    def running(self) -> int:
        """The number of trials of the search that run."""
        trials = self._history.trials
        return sum(trials[number].role is not Role.CONFIRM for number in self._attempts.live)

    def headroom(self, slot: Slot, now: float, *, last_call: bool = False) -> Headroom:
        """The part of the budget for a slot, less what is kept back for repeats to come.

        Args:
            slot: The slot.
            now: The time.
            last_call: As `Headroom` has it.
        """
        self._confirmation.refresh()
        return Headroom(
            self.spending,
            slot.gpus,
            len(self._attempts.slots),
            self._time.limit_s,
            self._time.left(now),
            kept=self._confirmation.to_come * self.spending.total,
            start_up=self.spending.start_up(is_warm=slot.is_warm),
            running=self.running,
            last_call=last_call,
        )

    def reserve(self, live: Live, trial: Trial, stretch: float, now: float) -> bool:
        """Reserve what the next stretch of an attempt may cost.

        Returns: False, and nothing changed, if the budget does not allow it.
        """
        room = self._confirmation.room_for(trial, self.headroom(live.slot, now).under_way())
        before_repeats = stretch if room.kept else 0.0
        if not room.affords(stretch, trial) or not room.in_time(before_repeats, trial):
            return False
        return self._attempts.reserve(live.attempt, stretch, live.slot, trial)
