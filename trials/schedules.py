"""Learning-rate schedules: pure functions from progress to a multiplier of the peak learning rate.

Progress is the share of the *full* trial budget that is used, whatever rung the trial reaches: trials that are
compared at a rung then had the same learning rate there, and one that is promoted goes on without a jump.
"""

from __future__ import annotations

import math
from collections.abc import Callable

ONE_CYCLE_START = 1 / 25
"""Where one_cycle begins, as a share of the peak (Smith and Topin 2018; the default of torch's OneCycleLR)."""
ONE_CYCLE_RISE = 0.3
"""The rising share of one_cycle where no warm-up is set."""


def multiplier(schedule: str, progress: float, warmup: float) -> float:
    """The learning rate at `progress` as a share of its peak.

    Args:
        schedule: A name in `SHAPES`, or one_cycle.
        progress: Share of the full budget used, clipped to [0, 1].
        warmup: Share of the full budget in which the rate rises, in [0, 1).
    """
    progress = min(max(progress, 0.0), 1.0)
    if schedule == "one_cycle":
        return _one_cycle(progress, warmup or ONE_CYCLE_RISE)
    if progress < warmup:
        return progress / warmup
    return SHAPES[schedule]((progress - warmup) / (1.0 - warmup))


def _one_cycle(progress: float, rise: float) -> float:
    """A cosine up from 1/25 of the peak, then a cosine down to nothing."""
    if progress < rise:
        return ONE_CYCLE_START + (1.0 - ONE_CYCLE_START) * (1.0 - cosine(progress / rise))
    return cosine((progress - rise) / (1.0 - rise))


def constant(progress: float) -> float:
    """The peak all the way."""
    return 1.0


def linear(progress: float) -> float:
    """A straight line from 1 to 0."""
    return 1.0 - progress


def cosine(progress: float) -> float:
    """Half a cosine wave from 1 to 0 (Loshchilov and Hutter 2017, without restarts)."""
    return 0.5 * (1.0 + math.cos(math.pi * progress))


SHAPES: dict[str, Callable[[float], float]] = {"constant": constant, "linear": linear, "cosine": cosine}
"""What follows the warm-up: from 0 (its end) to 1 (the end of the budget)."""
