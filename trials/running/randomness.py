"""Derived randomness: every random draw of a run is a function of its seed and a place.

Before each optimizer step the generators are seeded from (trial seed, step). A resumed run thus
needs no saved generator state, and nothing between two steps (an evaluation, another run in the
same process) can change the next draws.
"""

import enum
import random
import sys

import numpy as np


class Use(enum.IntEnum):
    """The uses of a trial's seed, which get unrelated streams."""

    WEIGHTS = 1
    ORDER = 2
    STEP = 3
    ROUND = 4


def derive(seed: int, use: Use, index: int = 0) -> int:
    """A 63-bit seed for one use of a trial's seed at one place (a step, an epoch)."""
    sequence = np.random.SeedSequence([seed, int(use), index])
    mixed = sequence.generate_state(1, np.uint64)
    return int(mixed[0] >> np.uint64(1))


def seed_everything(seed: int) -> None:
    """Seed the generators of Python, numpy and, if it is imported, torch (on the CPU and GPUs)."""
    random.seed(seed)
    np.random.seed(seed % 2**32)
    torch = sys.modules.get("torch")
    if torch is None:  # a script may do without
        return
    # As torch.manual_seed, which without CUDA takes longer than a step of a small model.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
