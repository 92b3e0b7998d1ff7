"""The progress of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Position:
    """The progress of a run, from which and from the seed everything random derives."""

    step: int = 0  # optimizer steps taken
    samples: int = 0  # trained on
    tokens: int = 0  # trained on
    seconds: float = 0.0  # trained, over all attempts
    reported: float = 0.0  # the level of the last report; 0 before the first
    metrics: Mapping[str, float] | None = None
    """Measured at this very step, which may reach several levels; None if it was not measured."""

    def after_step(self, samples: int) -> Position:
        """The position after one more optimizer step, without its tokens and seconds."""
        return replace(self, step=self.step + 1, samples=self.samples + samples, metrics=None)
