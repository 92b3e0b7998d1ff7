"""The progress of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Position:
    """The progress of a run, from which and from the seed everything random derives.

    Args:
        step: Optimizer steps taken.
        samples, tokens: Trained on.
        seconds: Trained, over all attempts.
        reported: The level of the last report; 0 before the first.
        metrics: Measured at this very step, which may reach several levels; None if it was not
            measured.
    """

    step: int = 0
    samples: int = 0
    tokens: int = 0
    seconds: float = 0.0
    reported: float = 0.0
    metrics: Mapping[str, float] | None = None

    def after_step(self, samples: int) -> Position:
        """The position after one more optimizer step, without its tokens and seconds."""
        return replace(self, step=self.step + 1, samples=self.samples + samples, metrics=None)
