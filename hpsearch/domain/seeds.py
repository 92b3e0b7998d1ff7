"""Randomness that is derived: seeds that follow from their parts, and what is decided by them.

Nothing here keeps state. A study that is resumed derives what it derived before.
"""

from __future__ import annotations

import hashlib

SEEDS = 2.0**31
"""How many derived seeds there are."""


def derived_seed(*parts: object) -> int:
    """A seed of 31 bits that depends on all of the parts and nothing else."""
    text = "/".join(map(str, parts))
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def is_spared(study_seed: int, number: int, share: float) -> bool:
    """Whether a trial goes on at every rung, to measure what the rungs tell.

    Args:
        study_seed: The seed of its study.
        number: The trial's number.
        share: The expected share of spared trials, from 0 to 1.
    """
    return derived_seed(study_seed, number, "spare") < share * SEEDS
