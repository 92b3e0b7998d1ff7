"""The full budget of a run: its resource, its levels and its learning rate at a position."""

from dataclasses import replace

from trials.contract import Budget, Unit
from trials.data.batching import Ints
from trials.data.order import BatchOrder
from trials.loop.optim.schedules import multiplier
from trials.loop.position import Position
from trials.settings import Settings

SLACK = 1e-9  # 3 steps of 10 reach 0.1 * 3 of a run, which floats make a little more than 0.3


class Horizon:
    """The full budget of a run, which is the horizon of its schedule whatever rung it reaches.
    `lengths`: tokens of each training sample, shape (n,) or (n, parts)."""

    def __init__(
        self, budget: Budget, settings: Settings, order: BatchOrder, lengths: Ints
    ) -> None:
        self._budget = budget
        self._settings = settings
        self._order = order
        self._lengths = lengths

    def resource(self, position: Position) -> float:
        match self._budget.unit:
            case Unit.STEPS:
                return float(position.step)
            case Unit.EPOCHS:
                return self._order.epochs(position.step)
            case Unit.SAMPLES:
                return float(position.samples)
            case Unit.TOKENS:
                return float(position.tokens)
            case Unit.SECONDS:
                return position.seconds
        raise AssertionError("a round is trained by its own budget")

    def is_reached(self, position: Position) -> bool:
        return position.reported >= self._budget.total

    def level_due(self, position: Position) -> float | None:
        """The lowest level that is reached and not yet reported, or None."""
        reached = self.resource(position) * (1 + SLACK)
        for level in self._budget.report_at:
            if position.reported < level <= reached:
                return level
        return None

    def learning_rate(self, position: Position, rows: Ints) -> float:
        """The learning rate of the next step, on the samples `rows`. The schedule is read halfway
        through the step, so that neither the first step of a warm-up nor the last of a decay has a
        rate of zero."""
        tokens = int(self._lengths[rows].sum())
        after = replace(position.after_step(len(rows)), tokens=position.tokens + tokens)
        halfway = (self.resource(position) + self.resource(after)) / 2
        progress = halfway / self._budget.total
        settings = self._settings
        share = multiplier(settings.schedule, progress, settings.warmup, settings.decay_fraction)
        return settings.learning_rate * share
