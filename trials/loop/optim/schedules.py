"""Learning-rate schedules: pure functions from progress to a multiplier of the peak learning rate.

Progress is the share of the *full* trial budget that is used, whatever rung the trial reaches:
trials that are compared at a rung then had the same learning rate there, and one that is promoted
continues without a jump.
"""

import math
from collections.abc import Callable

ONE_CYCLE_START = 1 / 25
"""The beginning of one_cycle, as a share of the peak (Smith and Topin 2018)."""
ONE_CYCLE_RISE = 0.3  # the rising share of one_cycle if no warm-up is set
STEP_FACTOR = 0.1
STEP_AT = (0.5, 0.75)
"""The drops of `step`, as shares of the budget after the warm-up (He et al. 2016, on CIFAR-10)."""


def multiplier(schedule: str, progress: float, warmup: float, decay_fraction: float = 0.2) -> float:
    """The learning rate at `progress` as a share of its peak, in [0, 1].

    Args:
        schedule: A name in `SHAPES`, one_cycle or wsd.
        progress: The used share of the full budget, clipped to [0, 1].
        warmup: The share of the full budget in which the rate rises, in [0, 1).
        decay_fraction: The share of the full budget in which wsd falls, in (0, 1].
    """
    progress = min(max(progress, 0.0), 1.0)
    if schedule == "one_cycle":
        return _one_cycle(progress, warmup or ONE_CYCLE_RISE)
    if progress < warmup:
        return progress / warmup
    if schedule == "wsd":
        return _stable_then_down(progress, max(warmup, 1.0 - decay_fraction))
    after_warmup = (progress - warmup) / (1.0 - warmup)
    return SHAPES[schedule](after_warmup)


def _one_cycle(progress: float, rise: float) -> float:
    if progress < rise:
        risen = 1.0 - cosine(progress / rise)
        return ONE_CYCLE_START + (1.0 - ONE_CYCLE_START) * risen
    return cosine((progress - rise) / (1.0 - rise))


def _stable_then_down(progress: float, stable: float) -> float:
    """The peak until `stable`, then a line to 0: wsd (Hu et al. 2024, arXiv 2404.06395)."""
    if progress < stable:
        return 1.0
    return linear((progress - stable) / (1.0 - stable))


def constant(progress: float) -> float:
    return 1.0


def linear(progress: float) -> float:
    return 1.0 - progress


def cosine(progress: float) -> float:
    """Half a cosine wave from 1 to 0 (Loshchilov and Hutter 2017, without restarts)."""
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def step(progress: float) -> float:
    """The peak, then a tenth of it, then a hundredth."""
    drops = sum(progress >= at for at in STEP_AT)
    return STEP_FACTOR**drops


SHAPES: dict[str, Callable[[float], float]] = {
    "constant": constant,
    "linear": linear,
    "cosine": cosine,
    "step": step,
}
"""Schedules after the warm-up: from 0 (its end) to 1 (the end of the budget)."""
