"""How far a run has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any


@dataclass(frozen=True)
class Position:
    """How far a run has come. Everything random derives from this and the seed, so a run continues
    from it bit for bit.

    Args:
        step: Optimizer steps taken.
        samples: Samples trained on.
        tokens: Tokens trained on.
        seconds: Seconds trained, over all attempts.
        reported: The level of the last report; 0 before the first.
        metrics: What was measured at this very step; None if nothing was. A step may reach
            several levels.
    """

    step: int = 0
    samples: int = 0
    tokens: int = 0
    seconds: float = 0.0
    reported: float = 0.0
    metrics: Mapping[str, float] | None = None

    def after_step(self, samples: int) -> Position:
        """After one more optimizer step, on so many samples; its tokens and seconds are still to be
        counted."""
        return replace(self, step=self.step + 1, samples=self.samples + samples, metrics=None)

    def state_dict(self) -> dict[str, Any]:
        """As plain values, for checkpoints."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Position:
        """What `state_dict` gave; the state may have other keys."""
        return cls(**{each.name: state[each.name] for each in fields(cls)})
