"""Randomness that is derived, never stored: every random draw of a run is a function of its seed
and a place.

Before each optimizer step the generators are seeded from (trial seed, step). A resumed run thus
needs no saved generator state to draw what it would have drawn undisturbed, and nothing that
happens between two steps (an evaluation, another run in the same process) can change what the next
step draws.
"""

from __future__ import annotations

import enum
import random

import numpy as np


class Use(enum.IntEnum):
    """What a seed is for: different uses of one trial seed get unrelated streams."""

    WEIGHTS = 1
    ORDER = 2
    STEP = 3


def derive(seed: int, use: Use, index: int = 0) -> int:
    """A 63-bit seed for one use of a trial's seed at one place (a step, an epoch)."""
    sequence = np.random.SeedSequence([seed, int(use), index])
    mixed = sequence.generate_state(1, np.uint64)
    return int(mixed[0] >> np.uint64(1))


def seed_everything(seed: int) -> None:
    """Seed the generators that a model may draw from: torch's on the CPU and every GPU, Python's
    and numpy's."""
    import torch

    # What torch.manual_seed does; but that one, where CUDA is not in use, spends longer on noting
    # who called it than a small model on a step.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]  # torch leaves it untyped
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)
